"""What a task is to everything that knows no task: one object a file, found by its name.

Verbs such as `train`, `evaluate` and `trace` ask a `Kind` and know nothing of words, pictures or ratings. A
new task is a file with a `KIND` in it and a line in `FILES`; what Python users get of it is in `face.FACES`,
how it is measured in `studies.measure.WAYS`, what it is compared with in `studies.compare`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from torch import nn

from heedful.config import DecodingConfig, Recipe
from heedful.errors import DataError
from heedful.record import Model
from heedful.training.types import Ears, Trainable

if TYPE_CHECKING:
    from heedful.evaluation import Comparison, Metric
    from heedful.record import Trace
    from heedful.tasks.tracing import Wanted

WEIGHTS = "model.safetensors"
FILES = {
    "translate": "text",
    "summarise": "text",
    "reply": "text",
    "transduce": "text",
    "caption": "caption",
    "classify": "classify",
    "recommend": "recommend",
    "read": "read",
}


class Assets(Protocol):
    """What a model folder holds beside recipe, weights and card: vocabularies, titles, labels."""

    def save(self, folder: Path) -> None: ...
    def sizes(self) -> dict[str, int]: ...  # for the card


A = TypeVar("A")
M = TypeVar("M")


class Opened(NamedTuple, Generic[A, M]):
    """A model ready for use."""

    name: str
    recipe: Recipe
    words: A
    model: M
    card: Mapping[str, Any]
    path: Path

    def sha256(self) -> str:
        """Of its weights."""
        return hash_of_weights(self.path)

    def described(self) -> Model:
        """As traces know it."""
        assert isinstance(self.model, nn.Module)
        return Model(
            name=self.name,
            task=self.recipe.task.kind,
            settings=self.recipe.model.model_dump(),
            parameters=sum(weight.numel() for weight in self.model.parameters()),
            sha256=self.sha256(),
        )


def hash_of_weights(folder: Path) -> str:
    return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()


def search_nothing(opened: Opened[Any, Any], how: DecodingConfig) -> None:
    """Refuse a way to search of models that search nothing."""
    if how != opened.recipe.decoding.model_copy(update={"n_best": 1}):
        kind = opened.recipe.task.kind
        raise DataError(
            f"--beam, --sample, --seed: {opened.name} was trained to {kind}, and searches nothing"
        )


def as_built(_: nn.Module) -> Sequence[str]:
    """For models that begin with what torch's seed gives them."""
    return ()


class Started(NamedTuple):
    """What a training needs beside a model: its data, its vocabularies, and what is to be said of them."""

    task: Trainable[Any, Any]
    words: Assets
    facts: Sequence[str]  # of one line
    notes: Sequence[str] = ()  # a line each
    prepare: Callable[[Any], Sequence[str]] = as_built  # a new model before its first step; says what it did


class Question(NamedTuple):
    """What `heedful evaluate` is asked."""

    data: Sequence[str] = ()
    split: str = "test"
    metrics: Sequence[str] = ()
    decoding: Mapping[str, Any] = {}
    int8: bool = False
    threads: int = 0
    gallery: Path | None = None


class Table(NamedTuple):
    """Rows of text under their heads."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


class Evaluated(Protocol):
    """What was measured on some items."""

    @property
    def name(self) -> str: ...
    @property
    def items(self) -> int: ...
    @property
    def unit(self) -> str: ...  # what the items are: "pairs", "users"
    @property
    def metrics(self) -> Sequence[Metric]: ...
    def tables(self) -> Sequence[Table]: ...
    def plain(self) -> dict[str, Any]: ...  # for JSON
    def against(self, other: Any) -> Comparison: ...


class Kind(Protocol):
    """One task, or several alike."""

    files: tuple[str, ...]  # in the model folder

    def load(self, folder: Path) -> Assets: ...
    def build(self, recipe: Recipe, words: Any) -> nn.Module: ...
    def start(self, recipe: Recipe, base: Path, words: Any | None, ears: Ears) -> Started: ...
    def tested(self, recipe: Recipe, base: Path) -> bool: ...  # is there something to compare on?
    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated: ...
    def trace(self, opened: Any, wanted: Wanted, how: DecodingConfig) -> Trace: ...


def kind_of(task: str) -> Kind:
    found: Kind = import_module(f"heedful.tasks.{FILES[task]}").KIND
    return found
