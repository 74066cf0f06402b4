"""What the tests of this room share: scenes of prime sizes, attentions with lively parameters."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from heedful.attention import NORMALISERS, SCORES, Attention, Detail, Watch, build_attention
from heedful.config import AttentionConfig

SENTENCES, QUERIES, POSITIONS = 5, 3, 7
QUERY, KEY, VALUE, HIDDEN = 2, 11, 13, 17
TABLE = 19  # rows of a location score
BETA, WINDOW = 0.3, 2  # neither is a default, so that a setting which is dropped on the way shows

M = TypeVar("M", bound=nn.Module)

FULL = Watch(Detail.FULL)
SEEN = Watch(Detail.WEIGHTS)
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

COVERED = "additive+coverage"
SCORE_NAMES = (*SCORES, COVERED)
ONE_SIZE = ("dot", "scaled-dot", "prod-relu")  # scores whose queries and keys are of one size

# Every placement with every setting that changes what it does.
PLACEMENT_SETTINGS: dict[str, dict[str, Any]] = {
    "global": {"placement": "global"},
    "local-m": {"placement": "local-m"},
    "local-p": {"placement": "local-p"},
    "local-p renormalised": {"placement": "local-p", "renormalise": True},
    "hard sample": {"placement": "hard", "read": "sample"},
    "hard argmax": {"placement": "hard", "read": "argmax"},
    "hard expectation": {"placement": "hard", "read": "expectation"},
    "uniform": {"placement": "uniform"},
}

# Every (score, normaliser, placement) that a recipe may name: hard cannot draw from smoothed weights.
COMBINATIONS = [
    (score, normaliser, placement)
    for score in SCORE_NAMES
    for normaliser in NORMALISERS
    for placement in PLACEMENT_SETTINGS
    if not (placement.startswith("hard") and normaliser == "smoothed-softmax")
]


class Scene(NamedTuple):
    """Five sentences of up to seven positions: full, padded, with holes, empty, and of one position."""

    query: Tensor
    keys: Tensor
    values: Tensor
    keep: Tensor
    at: Tensor  # target positions that are not 0, 1, 2
    allow: Tensor  # a mask per query: first queries may read all, the last of the first sentence nothing

    def to(self, dtype: torch.dtype) -> Scene:
        return self._replace(
            query=self.query.to(dtype), keys=self.keys.to(dtype), values=self.values.to(dtype)
        )

    def sentence(self, index: int) -> Scene:
        return Scene(*(part[index : index + 1] for part in self))


def mask(*rows: str) -> Tensor:
    """A mask from words such as "110": 1 may be read."""
    return torch.tensor([[letter == "1" for letter in row] for row in rows])


def query_size(score: str) -> int:
    return KEY if score in ONE_SIZE else QUERY


def scene(score: str = "additive", seed: int = 1) -> Scene:
    """A scene in float64 whose queries fit the score."""
    rng = torch.Generator().manual_seed(seed)
    allow = torch.rand(SENTENCES, QUERIES, POSITIONS, generator=rng) < 0.7
    allow[:, 0] = True
    allow[0, -1] = False
    return Scene(
        query=torch.randn(SENTENCES, QUERIES, query_size(score), generator=rng, dtype=torch.float64),
        keys=torch.randn(SENTENCES, POSITIONS, KEY, generator=rng, dtype=torch.float64),
        values=torch.randn(SENTENCES, POSITIONS, VALUE, generator=rng, dtype=torch.float64),
        keep=mask("1111111", "1111000", "0101101", "0000000", "0010000"),
        at=torch.randint(0, POSITIONS + 2, (SENTENCES, QUERIES), generator=rng),
        allow=allow,
    )


def build(
    score: str = "additive",
    normaliser: str = "softmax",
    placement: str = "global",
    *,
    dtype: torch.dtype = torch.float64,
    query: int | None = None,
    key: int = KEY,
    value: int | None = None,
    **settings: Any,
) -> Attention:
    """An attention by the names a recipe gives it, in training mode, with parameters that matter."""
    chosen: dict[str, Any] = {
        "score": "additive" if score == COVERED else score,
        "normaliser": normaliser,
        "coverage": score == COVERED,
        "hidden": HIDDEN,
        "table": TABLE,
        "window": WINDOW,
        "beta": BETA,
    }
    config = AttentionConfig(**{**chosen, **PLACEMENT_SETTINGS[placement], **settings})
    attention = build_attention(
        config, query=query_size(score) if query is None else query, key=key, value=value
    )
    return enliven(attention).to(dtype)


def enliven(module: M, seed: int = 3, spread: float = 0.5) -> M:
    """The module with every parameter drawn anew, so that none stays 0, 1 or too small to be seen."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng) * spread)
    return module


def rng(seed: int = 7) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def see(attention: Attention, given: Scene, **options: Any) -> tuple[Tensor, Tensor]:
    """Context and weights of one look from the start."""
    memory = attention.prepare(given.keys, given.keep, given.values)
    carry = attention.start(memory, given.query.shape[1])
    context, look, _ = attention.look(
        given.query, memory, **{"at": given.at, "carry": carry, "watch": SEEN, "rng": rng(), **options}
    )
    assert look.weights is not None
    return context, look.weights


def close(found: Tensor, wanted: Any, within: float = 1e-10) -> None:
    """Equal in shape and, up to rounding, in value."""
    wanted = wanted if isinstance(wanted, Tensor) else torch.tensor(wanted, dtype=found.dtype)
    torch.testing.assert_close(found.detach(), wanted.detach(), rtol=within, atol=within)
