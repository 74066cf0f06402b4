"""The types that tasks and their callers share: the task interface, loaded models, requests and results.

Commands such as `train`, `evaluate` and `trace` call a `Task` and contain no code for words, images or ratings. A new
task is a package with a class that implements `Task`, and a line in `tasks/registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from torch import nn

from heedful.config import DecodingOptions, ModelConfig, Recipe
from heedful.decoding import NEVER, StopCondition
from heedful.errors import DataError, TraceError
from heedful.metrics import Comparison, Metric
from heedful.tasks.model_card import hash_weights
from heedful.tasks.probes import MeasureAdapter
from heedful.trace.replay import Parameters, Replay
from heedful.trace.schema import Edit, Gold, ModelInfo, Side, Trace, TraceDetail
from heedful.trace.steps import N_CANDIDATES
from heedful.training.types import Callbacks, Trainable


class Assets(Protocol):
    """What a model needs besides its weights: vocabularies, labels, an item catalog. Each has a file in the folder."""

    def save(self, folder: Path) -> None: ...
    def sizes(self) -> dict[str, int]: ...  # vocabulary sizes, for the model card


AssetsT = TypeVar("AssetsT")
ModelT = TypeVar("ModelT")


class LoadedModel(NamedTuple, Generic[AssetsT, ModelT]):
    """A model folder in memory, ready for inference."""

    name: str
    recipe: Recipe
    assets: AssetsT
    model: ModelT
    card: Mapping[str, Any]
    path: Path

    def sha256(self) -> str:
        """Return the hash of the weights file: the card's, which loading has checked."""
        return hash_weights(self.path, self.card)

    def describe(self) -> ModelInfo:
        """Return the model's entry in a trace."""
        assert isinstance(self.model, nn.Module)
        return ModelInfo(
            name=self.name,
            task=self.recipe.task.kind,
            settings=self.recipe.model.model_dump(),
            parameters=sum(weight.numel() for weight in self.model.parameters()),
            sha256=self.sha256(),
        )


class SelfTest(NamedTuple):
    """How a task tests a stored model: a fixed input for its card, and a few numbers that the model makes of it."""

    make_input: Callable[[Any], Any]  # from the assets; a JSON value
    outputs: Callable[[Any, Any, Any], Sequence[float]]  # from the model, the assets and the input


def all_files(task: Task) -> tuple[str, ...]:
    """Return the name of every file that the assets of a task may have."""
    return (*task.files, *getattr(task, "optional_files", ()))


def check_no_decoding_options(loaded: LoadedModel[Any, Any], options: DecodingOptions) -> None:
    """Raise DataError if decoding options are given for a model that does not generate text."""
    if options != loaded.recipe.decoding.model_copy(update={"n_best": 1}):
        task = loaded.recipe.task.kind
        raise DataError(f"--beam, --sample, --seed: {loaded.name} was trained to {task} and generates no text")


def keep_initialization(_: nn.Module) -> Sequence[str]:
    """Keep the random initial weights of a new model."""
    return ()


class TrainingSetup(NamedTuple):
    """Everything a training run needs except the model: data, assets, and lines for the log."""

    task: Trainable[Any, Any]
    assets: Assets
    summary: Sequence[str]  # joined into the first line of the log
    notes: Sequence[str] = ()  # one line each
    initialize: Callable[[Any], Sequence[str]] = keep_initialization  # sets initial weights; returns lines for the log


def no_log(_: str) -> None:
    """Drop a line of the log."""


class EvaluationRequest(NamedTuple):
    """The options of `heedful evaluate`."""

    data: Sequence[str] = ()
    split: str = "test"
    metrics: Sequence[str] = ()
    decoding: DecodingOptions = DecodingOptions()  # overrides the recipe's
    int8: bool = False
    threads: int = 0  # 0: one per processor
    gallery: Path | None = None  # HTML page of example captions to write
    stop: StopCondition = NEVER
    log: Callable[[str], None] = no_log  # is told how the tables of `data` are read


MAX_DEFAULT_PAIRS = 256  # of an output token and an input position; their counterfactuals take about 0.5 KB each
MAX_DEFAULT_REGION_PAIRS = 1_000  # of an output token and a region of an image
MAX_PAIRS = 20_000  # with --what-if; a trace of four times as many would be too large to be loaded


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """The options of `heedful trace`: an input, and optionally an output to force, gold links, and edits."""

    input: str  # a line, an image's file name, or `user:ID`
    detail: TraceDetail = "steps"
    target: str | None = None  # output to force; None: the model generates one
    reference: str | None = None
    gold: Gold | None = None
    edits: Sequence[Edit] = ()
    parent: Trace | None = None  # the trace without the edits
    seed: int = 1
    with_counterfactuals: bool | None = False  # None: for short inputs
    stop: StopCondition = NEVER
    prefix: Sequence[int] = ()  # token ids that the output begins with; the rest is generated
    candidates: int = N_CANDIDATES  # likely tokens to record per step

    def wants_counterfactuals(self, source: Side, target: Side) -> bool:
        """Return whether to compute the counterfactuals of an input and its output; raise TraceError for too many."""
        pairs = len(source.tokens) * len(target.tokens)
        if self.with_counterfactuals and pairs > MAX_PAIRS:
            raise TraceError(
                f"--what-if: {len(source.tokens):,} input positions and {len(target.tokens):,} output tokens are"
                f" {pairs:,} pairs, and at most {MAX_PAIRS:,} can be changed one by one; shorten the input"
            )
        if self.with_counterfactuals is not None:
            return self.with_counterfactuals
        limit = MAX_DEFAULT_PAIRS if source.image is None else MAX_DEFAULT_REGION_PAIRS
        is_short = pairs <= limit
        return is_short and self.detail != "weights" and not self.edits


class Table(NamedTuple):
    """A table to print: column titles and rows of text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class EvaluationResult(Protocol):
    """The metrics of one model or ensemble on one dataset."""

    @property
    def name(self) -> str: ...
    @property
    def items(self) -> int: ...
    @property
    def unit(self) -> str: ...  # plural noun for the items: "pairs", "users"
    @property
    def metrics(self) -> Sequence[Metric]: ...
    def tables(self) -> Sequence[Table]: ...
    def to_dict(self) -> dict[str, Any]: ...  # for JSON
    def compare_to(self, other: Any) -> Comparison: ...


class Variant(NamedTuple):
    """A row of `heedful compare`: its name, and the recipe settings it overrides."""

    name: str
    overrides: tuple[str, ...]


UNIFORM_WEIGHTS = Variant("baseline: uniform weights", ("model.attention.placement=uniform",))


class Task(Protocol):
    """The interface of a task: everything that differs between translating, captioning, classifying and so on.

    A task may also have `optional_files`, names of files that only some models have, and a `self_test`.
    """

    files: tuple[str, ...]  # the assets' files in a model folder
    adapter: MeasureAdapter
    replay_class: Callable[[Trace, Parameters], Replay]
    api_class: Callable[[Any], Any]  # a subclass of `tasks.api.Model`

    def load_assets(self, folder: Path) -> Assets: ...
    def build(self, recipe: Recipe, assets: Any) -> nn.Module: ...

    def setup_training(self, recipe: Recipe, base: Path, assets: Any | None, callbacks: Callbacks) -> TrainingSetup:
        """Open the data and build the assets, such as vocabularies.

        Relative paths of the recipe start at the folder `base`. A resumed run passes its existing `assets`.
        """

    def has_test_data(self, recipe: Recipe, base: Path) -> bool: ...
    def evaluate(self, folders: Sequence[Path], request: EvaluationRequest) -> EvaluationResult: ...
    def trace(self, loaded: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace: ...

    def baselines(self, model: ModelConfig) -> list[Variant]:
        """Return the variants without learned attention that `heedful compare` adds as baselines."""
