"""The base class of trained models as Python users see them; each task has a subclass that can be called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from heedful import registry
from heedful.arguments import as_list, as_texts, is_several, one_per_input, python_errors
from heedful.config import DecodingOptions, Recipe, decoding_options
from heedful.config.decoding import MAX_ITEMS
from heedful.decoding import StopCondition
from heedful.errors import ArgumentError, ConfigError, nearest
from heedful.tasks.base import EvaluationRequest, LoadedModel, TraceRequest
from heedful.tasks.data_files import evaluation_files
from heedful.tasks.global_state import preserved_state
from heedful.tasks.model_folder import copy_model
from heedful.tasks.registry import get_task
from heedful.tasks.results import Evaluation, Measurement
from heedful.trace.edits import parse_edit
from heedful.trace.schema import Edit, Gold, Trace, TraceDetail
from heedful.trace.steps import N_CANDIDATES

EXPORT_FOLDER, PUSH_TO_HUB = "heedful.integrations.hub:export_folder", "heedful.integrations.hub:push_to_hub"
MEASURE = "heedful.analysis.measure:measure_data"  # further down the rooms; imported when it is first used


class Model:
    """A trained model: call it with one input or with several.

    >>> import heedful
    >>> model = heedful.load("en-fr")
    >>> model("The cat sleeps.")
    'Le chat dort.'
    >>> model(["The cat sleeps.", "A dog eats."], beam=5)
    ['Le chat dort.', 'Un chien mange.']

    What goes in and comes out depends on the task: lines become lines, texts labels, images captions, histories
    items, and a language model returns the surprisal of each word. Models that generate text take the options of
    decoding as keywords (`beam`, `method`, `n_best`, `max_length`, ...; `heedful.config.DecodingOptions` lists them).

    Their calls also take `max_seconds`, a time limit, and `should_stop`, a `threading.Event` or a function that cancels
    the call; both are checked between decoding steps and raise DecodingTimeoutError or DecodingCancelledError.

    A model can be used by several threads at the same time.
    """

    def __init__(self, loaded: LoadedModel[Any, Any]) -> None:
        self.loaded = loaded

    @property
    def name(self) -> str:
        """The name of the model: that of its folder."""
        return self.loaded.name

    @property
    def task(self) -> str:
        """The task it was trained for, such as "translate"."""
        return self.loaded.recipe.task.kind

    @property
    def recipe(self) -> Recipe:
        """The recipe it was trained with, every setting resolved."""
        return self.loaded.recipe

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return the model's output; inputs and outputs are those of its task."""
        raise NotImplementedError

    @overload
    def trace(self, inputs: str | bytes | Path, **options: Any) -> Trace: ...
    @overload
    def trace(self, inputs: list[Any] | tuple[Any, ...], **options: Any) -> list[Trace]: ...
    @overload
    def trace(self, inputs: Any = None, **options: Any) -> Any: ...
    def trace(
        self,
        inputs: Any = None,
        *,
        detail: TraceDetail = "steps",
        target: str | Sequence[str] | None = None,
        gold: Gold | Sequence[Gold] | None = None,
        edits: str | Edit | Sequence[str | Edit] = (),
        what_if: bool | None = None,
        prefix: str | Sequence[int] = (),
        **options: Any,
    ) -> Trace | list[Trace]:
        """Record every step of the model on one input, or on each of several.

        `detail` is "weights", "steps" or "full". `target` is an output to compute in place of the model's own, and
        `gold` has the gold links; for several inputs both are lists. `what_if` adds what attending to each single
        position, or not at all to it, would have changed; by default for short inputs. `prefix` is text, or token ids
        as in a trace, that the output begins with; the rest is generated.

        With `edits`, such as `"onehot:step=1,position=0"`, record the run with other attention weights; that trace
        names the unedited one as its parent.

        >>> import heedful
        >>> trace = heedful.load("en-fr").trace("The cat sleeps.")
        >>> trace.matrix().shape  # output tokens, source tokens
        (5, 6)
        """
        several, items = is_several(inputs), as_list(inputs)
        self._check_count(len(items))
        stop = self._stop_condition(options)
        decoding = self._trace_decoding(options)
        targets = one_per_input(target, len(items), several, "target")
        golds = one_per_input(gold, len(items), several, "gold")
        parsed = _parse_edits(edits)
        with python_errors():
            request = TraceRequest("", detail, with_counterfactuals=what_if, stop=stop)
            request, parsed = _with_prefix(request, parsed, prefix)
            traces = [
                self._trace_edited(item, replace(request, target=t, gold=g), parsed, decoding)
                for item, t, g in zip(items, targets, golds, strict=True)
            ]
        return traces if several else traces[0]

    def trace_change(
        self,
        inputs: Any,
        edits: str | Edit | Sequence[str | Edit] = (),
        *,
        prefix: str | Sequence[int] = (),
        detail: TraceDetail = "steps",
        candidates: int = N_CANDIDATES,
        **options: Any,
    ) -> tuple[Trace, Trace]:
        """Return two traces of one input: as the model computes it, and after edits or with a forced prefix.

        `edits` and `prefix` as in `trace`; `candidates` is the number of likely tokens recorded per step. What comes
        before the first edited step is kept, and the rest is generated again.

        >>> import heedful
        >>> before, after = heedful.load("en-fr").trace_change("The cat sleeps.", prefix="Un")
        >>> before.target.text, after.target.text
        ('Le chat dort.', 'Un chat dort.')
        """
        stop = self._stop_condition(options)
        decoding, parsed = self._trace_decoding(options), _parse_edits(edits)
        if not parsed and not prefix:
            raise ArgumentError("edits, prefix: give at least one; without a change there is nothing to compare")
        with python_errors():
            item = self._trace_input(inputs)
            request = TraceRequest("", detail, stop=stop, candidates=candidates)
            before = self._trace_one(item, request, decoding)
            changed, parsed = _with_prefix(request, parsed, prefix)
            return before, self._trace_one(item, replace(changed, edits=parsed, parent=before), decoding)

    def _trace_input(self, inputs: Any) -> Any:
        """Return one input as `_trace_one` takes it."""
        return inputs

    def evaluate(
        self, data: Any = None, *, split: str | None = None, metrics: str | Sequence[str] = (), **options: Any
    ) -> Evaluation:
        """Return the metrics of the model on data, or on a split of the data it was trained with.

        `data` is what `heedful.train` takes: pairs, a table, or the name of a file. Without it, `split` is "test"
        where there is test data, else "valid". `metrics` are names such as "bleu" (default: those of the task);
        options of decoding, `max_seconds` and `should_stop` are keywords, as in a call.

            model.evaluate([("The cat sleeps.", "Le chat dort.")])["BLEU"]
            print(model.evaluate("test.tsv", metrics=["bleu", "chrf"], beam=5))
        """
        task = get_task(self.task)
        files = [] if data is None else evaluation_files(data, self.task, self.recipe.data.columns)
        stop, decoding = self._stop_condition(options), call_options(options)
        request = EvaluationRequest(files, metrics=as_texts(metrics, "metrics"), decoding=decoding, stop=stop)
        with python_errors(), preserved_state():
            if split is None:
                split = "test" if files or task.has_test_data(self.recipe, Path()) else "valid"
            return Evaluation(task.evaluate([self.loaded.path], request._replace(split=split)))

    def measure(
        self,
        data: Any = None,
        *,
        split: str = "test",
        gold: str | Path | None = None,
        tests: str | Sequence[str] | None = None,
        limit: int = 500,
        steps: int = 4,
        seed: int = 1,
    ) -> Measurement:
        """Measure the attention of the model: agreement with gold links, and faithfulness tests.

        `data` and `split` as in `evaluate`; `gold` is a file of gold word links, `tests` are names of tests
        (docs/faithfulness.md; default: all but "counterfactual"; "none" runs none), `limit` is the number of items to
        use, 0 for all, and `steps` the number of decisions tested per output.

            print(model.measure("test.tsv", limit=100))
        """
        files = [] if data is None else evaluation_files(data, self.task, self.recipe.data.columns)
        return self._measure(files, split, gold, tests, limit=limit, steps=steps, seed=seed)

    def _measure(
        self, files: Sequence[str], split: str, gold: str | Path | None, tests: Any, **options: int
    ) -> Measurement:
        names = None if tests is None else as_texts(tests, "tests")
        with python_errors(), preserved_state():
            report, conclusions = registry.resolve(MEASURE)(self.loaded, files, split, gold, names, **options)
        return Measurement(report, conclusions)

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder, which `heedful.load` and the command line read."""
        with python_errors():
            copy_model(self.loaded.path, Path(folder))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the model to a folder as `save` does, with a README.md that the Hugging Face hub shows as its card."""
        registry.resolve(EXPORT_FOLDER)(self.loaded.path, Path(folder), self.name)

    def push_to_hub(self, name: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model and its card to the Hugging Face hub as `owner/name`, and return the address.

        `heedful.load("hub:owner/name")` loads it again. Needs the extra `hub`; `token` is by default that of
        `huggingface-cli login`.
        """
        with python_errors():
            address: str = registry.resolve(PUSH_TO_HUB)(self.loaded.path, name, private=private, token=token)
        return address

    def _trace_edited(
        self, item: Any, request: TraceRequest, edits: Sequence[Edit], decoding: DecodingOptions
    ) -> Trace:
        """Return the trace of one input; with edits, that of the edited run."""
        trace = self._trace_one(item, request if not edits else replace(request, prefix=()), decoding)
        return self._trace_one(item, replace(request, edits=edits, parent=trace), decoding) if edits else trace

    def _trace_one(self, item: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        if not isinstance(item, str):
            raise ArgumentError(f"inputs: expected text, got {type(item).__name__}")
        return get_task(self.task).trace(self.loaded, replace(request, input=item), decoding)

    def _trace_decoding(self, options: dict[str, Any]) -> DecodingOptions:
        decoding = self._decoding(options)
        if options.get("n_best", 1) != 1:
            raise ArgumentError(f"n_best={options['n_best']}: a trace records one output; give others as target")
        return decoding

    def _check_count(self, count: int) -> None:
        if count > MAX_ITEMS:
            raise ArgumentError(f"inputs: a call takes at most {MAX_ITEMS:,}, got {count:,}; make several calls")

    def _stop_condition(self, options: dict[str, Any]) -> StopCondition:
        """Remove what ends a call early from its options; the time limit starts now."""
        return StopCondition(options.pop("max_seconds", None), options.pop("should_stop", None))

    def _decoding(self, options: dict[str, Any]) -> DecodingOptions:
        """Return the recipe's decoding options, replaced by those of a call."""
        return self.loaded.recipe.decoding.override(call_options(options))

    def _check_no_decoding_options(self, options: dict[str, Any], *known: str) -> None:
        """Raise an ArgumentError for an option that this model does not have; `known` are those that it has."""
        if options:
            name = next(iter(options))
            reason = f"{self.name} was trained to {self.task} and generates no text"
            if name not in DecodingOptions.model_fields and known:
                reason = nearest(name, known)
            raise ArgumentError(f"{name}: no such argument; {reason}")

    def __repr__(self) -> str:
        return f"<heedful model {self.name}: {self.task}>"


def _with_prefix(
    request: TraceRequest, edits: list[Edit], prefix: str | Sequence[int]
) -> tuple[TraceRequest, list[Edit]]:
    """Return a request and edits that force the beginning of the output: text by an edit, token ids by the request."""
    if isinstance(prefix, str):
        return request, [*edits, Edit(op="prefix", text=prefix)] if prefix else edits
    return replace(request, prefix=tuple(prefix)), edits


def call_options(options: dict[str, Any]) -> DecodingOptions:
    """Return the decoding options of a call; errors name arguments."""
    try:
        return decoding_options(options)
    except ConfigError as error:
        texts = [problem.text.replace("no such setting", "no such argument", 1) for problem in error.problems]
        raise ArgumentError("\n".join(text.replace(" = ", "=", 1) for text in texts)) from None


def _parse_edits(edits: str | Edit | Sequence[str | Edit]) -> list[Edit]:
    single = isinstance(edits, str | Edit)
    listed: Sequence[str | Edit] = [edits] if single else edits  # type: ignore[list-item, assignment]
    with python_errors():
        return [parse_edit(edit) if isinstance(edit, str) else edit for edit in listed]
