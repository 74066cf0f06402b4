"""What every model that writes has in common: decoding and tracing know this and nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from heedful.attention import PLAIN, Carry, Look, Memory, Watch
from heedful.data.batch import TextBatch
from heedful.record import Site


@dataclass(frozen=True, slots=True)
class State:
    """Where a generation stands: what can be read, what the cells hold, and which step comes next."""

    memory: Mapping[str, Memory]
    cells: tuple[Float[Tensor, "layer row hidden"], ...]
    carry: Mapping[str, Carry]
    at: Int[Tensor, "row"]

    def select(self, rows: Int[Tensor, "kept"]) -> State:
        """The state of these rows only: finished ones leave the batch."""
        return State(
            {site: memory.select(rows) for site, memory in self.memory.items()},
            tuple(cell[:, rows] for cell in self.cells),
            {site: {k: v[rows] for k, v in carry.items()} for site, carry in self.carry.items()},
            self.at[rows],
        )


class Stepped(NamedTuple):
    """What a step gives: scores of the next word, the state after it, and the looks by site."""

    logits: Float[Tensor, "row query vocab"]
    state: State
    looks: Mapping[str, Look]


@runtime_checkable
class Writer(Protocol):
    """A model that writes one token at a time while reading a source."""

    @property
    def sites(self) -> Sequence[Site]: ...
    @property
    def alignment(self) -> str: ...  # the site of the default picture
    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> State: ...
    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped: ...
    def score(self, batch: TextBatch, watch: Watch = PLAIN) -> Stepped: ...  # teacher forcing
