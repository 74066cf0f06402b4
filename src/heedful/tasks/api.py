"""The base class of trained models as Python users see them; each task has a subclass that can be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.config import DecodingOptions, decoding_options
from heedful.tasks.base import LoadedModel, TraceRequest
from heedful.tasks.registry import get_task
from heedful.trace.edits import parse_edit
from heedful.trace.schema import Edit, Gold, Trace, TraceDetail


class Model:
    """A trained model. Calls accept decoding options (`beam=5`, `method="sample"`, ...) if the model generates text."""

    def __init__(self, loaded: LoadedModel[Any, Any]) -> None:
        self.loaded = loaded

    def __call__(self, inputs: Any, **options: Any) -> Any:
        """Return the model's output; inputs and outputs are those of its task."""
        raise NotImplementedError

    def trace(
        self,
        text: str,
        *,
        detail: TraceDetail = "steps",
        target: str | None = None,
        gold: Gold | None = None,
        edits: Sequence[str | Edit] = (),
        what_if: bool = False,
        **options: Any,
    ) -> Trace:
        """Record every step of the model on one input; with `edits`, the steps after changing its attention.

        `text` is a line, an image's file name, or `user:ID`. The trace of an edited run names the unedited one as
        its parent. `what_if` adds what attending to each single position would have changed.
        """
        task, decoding = get_task(self.loaded.recipe.task.kind), self._decoding(options)
        request = TraceRequest(str(text), detail, target, gold=gold, with_counterfactuals=what_if)
        trace = task.trace(self.loaded, request, decoding)
        if not edits:
            return trace
        parsed = [parse_edit(edit) if isinstance(edit, str) else edit for edit in edits]
        edited = TraceRequest(
            str(text), detail, target, gold=gold, edits=parsed, parent=trace, with_counterfactuals=what_if
        )
        return task.trace(self.loaded, edited, decoding)

    def _decoding(self, options: dict[str, Any]) -> DecodingOptions:
        """Return the recipe's decoding options, replaced by those of a call."""
        return self.loaded.recipe.decoding.override(decoding_options(options))

    def _check_no_decoding_options(self, options: dict[str, Any]) -> None:
        if options:
            raise TypeError(f"{next(iter(options))}: decoding options are for models that generate text")

    def __repr__(self) -> str:
        return f"<heedful model {self.loaded.name}: {self.loaded.recipe.task.kind}>"
