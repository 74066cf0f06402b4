"""Inputs of self-tests for tasks with text: a line made of tokens from the whole vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from heedful.data.tokenizer import END, SPECIALS, Tokenizer

N_TOKENS = 6  # of a line before it is encoded again
MAX_TOKENS = 16


def sample_line(tokenizer: Tokenizer) -> str:
    """Return a line of tokens at equal distances in the vocabulary."""
    count = len(tokenizer) - len(SPECIALS)
    return tokenizer.decode([len(SPECIALS) + n * count // N_TOKENS for n in range(min(N_TOKENS, count))])


def encode_line(tokenizer: Tokenizer, line: Any) -> list[int]:
    """Return the ids of a stored line, at most `MAX_TOKENS` with the end token."""
    if not isinstance(line, str):
        raise TypeError("the input is not a text")
    return [*tokenizer.encode(line[:1_000])[: MAX_TOKENS - 1][:-1], END]


def token_logp(logits: Tensor, ids: Sequence[int]) -> list[float]:
    """Return the log-probability of each of these tokens by logits (token, vocabulary)."""
    chosen = logits.float().log_softmax(dim=-1)[torch.arange(len(ids)), torch.tensor(ids)]
    return [float(number) for number in chosen]
