"""How to search, and what is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Greedy:
    """The likeliest word at every step."""

    max_length: int = 100


@dataclass(frozen=True, slots=True)
class Beam:
    """The best hypotheses side by side, scored by `log P / lp + beta * cp` (Wu 2016, eq. 14).

    `lp = ((5 + |Y|) / 6)^alpha` with `</s>` counted; `cp = sum_i log min(max(sum_t a_ti, eps), 1)`.
    `exact` goes on until nothing that could still come would change the result; else a sentence is done when
    no hypothesis, ended as it stands, would.
    """

    size: int = 5
    alpha: float = 1.0
    beta: float = 0.0
    n_best: int = 1
    max_length: int = 100
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """Words drawn from the model: by temperature, from the `top_k` likeliest, from the `top_p` mass."""

    temperature: float = 1.0
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    seed: int = 1
    n_best: int = 1  # how many are drawn for each sentence
    max_length: int = 100


@dataclass(frozen=True, slots=True)
class Forced:
    """Write what the batch's targets say: scores and looks of a given output."""


Method = Greedy | Beam | Sample | Forced


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output: its tokens (the end token included if it was reached), and where each step looked."""

    tokens: tuple[int, ...]
    logp: float
    score: float
    token_logp: tuple[float, ...]
    finished: bool
    looks: Mapping[str, Float[Tensor, "query head key"]] = field(default_factory=dict)  # unpadded


class Found(NamedTuple):
    """For every sentence its hypotheses, best first; and the encoder's own looks, a mapping a sentence."""

    best: list[list[Hypothesis]]
    encoder: list[Mapping[str, Tensor]]
