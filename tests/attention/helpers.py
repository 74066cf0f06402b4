"""What the tests of this room share: inputs of prime sizes, attentions with random parameters."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from heedful import registry
from heedful.attention import (
    Attention,
    AttentionOutput,
    Carry,
    Detail,
    Hooks,
    Memory,
    Normalizer,
    Placement,
    Score,
    build_attention,
)
from heedful.config import AttentionConfig

SENTENCES, QUERIES, POSITIONS = 5, 3, 7
QUERY, KEY, VALUE, HIDDEN = 2, 11, 13, 17
TABLE = 19  # rows of a location score
BETA, WINDOW = 0.3, 2  # neither is a default, so that a lost setting shows

M = TypeVar("M", bound=nn.Module)

FULL = Hooks(Detail.FULL)
WEIGHTS = Hooks(Detail.WEIGHTS)
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

SCORES: dict[str, type[Score]] = {name: registry.get("score", name) for name in registry.built_in_names("score")}
PLACEMENTS: dict[str, type[Placement]] = {
    name: registry.get("placement", name) for name in registry.built_in_names("placement")
}
NORMALIZERS: dict[str, Normalizer] = {
    name: registry.get("normalizer", name)() for name in registry.built_in_names("normalizer")
}
COVERED = "additive+coverage"
SCORE_NAMES = (*SCORES, COVERED)
SAME_SIZE = tuple(name for name, score in SCORES.items() if score.same_size)

# Every placement with every setting that changes what it does.
PLACEMENT_SETTINGS: dict[str, dict[str, Any]] = {
    "global": {"placement": "global"},
    "local-m": {"placement": "local-m"},
    "local-p": {"placement": "local-p"},
    "local-p renormalized": {"placement": "local-p", "renormalize": True},
    "hard sample": {"placement": "hard", "hard_training": "sample"},
    "hard argmax": {"placement": "hard", "hard_training": "argmax"},
    "hard expectation": {"placement": "hard", "hard_training": "expectation"},
    "uniform": {"placement": "uniform"},
}

# Every (score, normalizer, placement) that a recipe may name: hard cannot sample from smoothed weights.
COMBINATIONS = [
    (score, normalizer, placement)
    for score in SCORE_NAMES
    for normalizer in NORMALIZERS
    for placement in PLACEMENT_SETTINGS
    if not (placement.startswith("hard") and normalizer == "smoothed-softmax")
]


class Inputs(NamedTuple):
    """Five sentences of up to seven positions: full, padded, with holes, empty, and of one position."""

    query: Tensor
    keys: Tensor
    values: Tensor
    keep: Tensor
    positions: Tensor  # target positions that are not 0, 1, 2
    allowed: Tensor  # a mask per query: first queries may read every key, the last of the first sentence none

    def to(self, dtype: torch.dtype) -> Inputs:
        return self._replace(query=self.query.to(dtype), keys=self.keys.to(dtype), values=self.values.to(dtype))

    def sentence(self, index: int) -> Inputs:
        return Inputs(*(part[index : index + 1] for part in self))


def mask(*rows: str) -> Tensor:
    """Return a mask from rows such as "110", where 1 may be read."""
    return torch.tensor([[letter == "1" for letter in row] for row in rows])


def query_size(score: str) -> int:
    return KEY if score in SAME_SIZE else QUERY


def make_inputs(score: str = "additive", seed: int = 1) -> Inputs:
    """Return inputs in float64 whose queries have the size that the score needs."""
    rng = torch.Generator().manual_seed(seed)
    allowed = torch.rand(SENTENCES, QUERIES, POSITIONS, generator=rng) < 0.7
    allowed[:, 0] = True
    allowed[0, -1] = False
    return Inputs(
        query=torch.randn(SENTENCES, QUERIES, query_size(score), generator=rng, dtype=torch.float64),
        keys=torch.randn(SENTENCES, POSITIONS, KEY, generator=rng, dtype=torch.float64),
        values=torch.randn(SENTENCES, POSITIONS, VALUE, generator=rng, dtype=torch.float64),
        keep=mask("1111111", "1111000", "0101101", "0000000", "0010000"),
        positions=torch.randint(0, POSITIONS + 2, (SENTENCES, QUERIES), generator=rng),
        allowed=allowed,
    )


def build(
    score: str = "additive",
    normalizer: str = "softmax",
    placement: str = "global",
    *,
    dtype: torch.dtype = torch.float64,
    query: int | None = None,
    key: int = KEY,
    value: int | None = None,
    **settings: Any,
) -> Attention:
    """Build an attention from the settings of a recipe, in training mode, with random parameters."""
    chosen: dict[str, Any] = {
        "score": "additive" if score == COVERED else score,
        "normalizer": normalizer,
        "coverage": score == COVERED,
        "hidden": HIDDEN,
        "max_source_positions": TABLE,
        "window": WINDOW,
        "beta": BETA,
    }
    config = AttentionConfig(**{**chosen, **PLACEMENT_SETTINGS[placement], **settings})
    attention = build_attention(
        config, query_size=query_size(score) if query is None else query, key_size=key, value_size=value
    )
    return randomize_parameters(attention).to(dtype)


def randomize_parameters(module: M, seed: int = 3, spread: float = 0.5) -> M:
    """Draw every parameter of a module anew, so that none stays 0, 1 or too small to matter."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) * spread)
    return module


def rng(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def attend(
    attention: Attention, query: Tensor, memory: Memory, **options: Any
) -> tuple[Tensor, AttentionOutput, Carry]:
    """Return context, output and carry of one call."""
    output, carry = attention(query, memory, **options)
    assert output.context is not None
    return output.context, output, carry


def context_and_weights(attention: Attention, inputs: Inputs, **options: Any) -> tuple[Tensor, Tensor]:
    """Return context and weights of a first call."""
    memory = attention.prepare(inputs.keys, inputs.keep, inputs.values)
    carry = attention.initial_carry(memory, inputs.query.shape[1])
    options = {"positions": inputs.positions, "carry": carry, "hooks": WEIGHTS, "rng": rng(), **options}
    context, output, _ = attend(attention, inputs.query, memory, **options)
    assert output.weights is not None
    return context, output.weights


def close(actual: Tensor, expected: Any, within: float = 1e-10) -> None:
    """Assert that tensors are equal in shape and, up to rounding, in value."""
    expected = expected if isinstance(expected, Tensor) else torch.tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual.detach(), expected.detach(), rtol=within, atol=within)
