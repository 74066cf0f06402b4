"""Decoding steps and their most likely candidates, from log-probabilities to records."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import TraceError
from heedful.trace.schema import Candidate, Step

N_CANDIDATES = 8  # per step

TokenText = Callable[[int], str]


def top_candidates(logp: Float[Tensor, " vocab"], n: int, token_text: TokenText) -> list[Candidate]:
    """Return the n most likely tokens, without those of probability 0."""
    best = logp.topk(min(n, len(logp)))
    pairs = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return [Candidate(id=i, text=token_text(i), logp=value) for value, i in pairs if value > float("-inf")]


def check_log_probabilities(logp: Tensor, chosen: Tensor) -> None:
    """Raise TraceError for what no trace can hold: NaN, or a chosen token of probability 0."""
    if bool(logp.isnan().any()) or not bool(chosen.isfinite().all()):
        raise TraceError(
            "the model's log-probabilities are not finite (NaN or infinity), so there is nothing to trace; its weights"
            " may be damaged, or too large"
        )


def record_step(
    logp: Float[Tensor, " vocab"],
    token: int,
    token_text: TokenText,
    *,
    input: int | None = None,
    forced: bool = False,
    candidates: int = N_CANDIDATES,
) -> Step:
    """Return the record of a step that generated `token`, given the log-probabilities of all tokens."""
    check_log_probabilities(logp, logp[token])
    return Step(
        logp=float(logp[token]),
        input=input,
        forced=forced,
        rank=int((logp > logp[token]).sum()),
        entropy=float(torch.special.entr(logp.exp()).sum()),
        top=top_candidates(logp, candidates, token_text),
    )
