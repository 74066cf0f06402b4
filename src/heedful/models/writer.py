"""What every model that writes has in common: decoding and tracing know this and nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Generator, Tensor

from heedful.attention import PLAIN, Look, Watch
from heedful.data.batch import TextBatch
from heedful.layers.state import State, Stepped
from heedful.record import Site


class Next(NamedTuple):
    """The likeliest words of each row, likeliest first, and where the writing stands then."""

    words: Int[Tensor, "row best"]
    logp: Float[Tensor, "row best"]
    state: State
    looks: Mapping[str, Look]


@runtime_checkable
class Writer(Protocol):
    """A model that writes one token at a time while reading a source."""

    @property
    def sites(self) -> tuple[Site, ...]: ...
    @property
    def alignment(self) -> str | None: ...  # the site of the default picture; None without attention
    @property
    def first(self) -> int: ...  # the token that begins an output
    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> tuple[State, Mapping[str, Look]]: ...
    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped: ...
    def score(
        self, batch: TextBatch, watch: Watch = PLAIN, sampling: float = 0.0, rng: Generator | None = None
    ) -> Stepped: ...  # teacher forcing, the fastest path there is
