"""The task of transformers models: what `trace` and `measure` call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful import registry
from heedful.config import DecodingOptions
from heedful.decoding import StopCondition
from heedful.errors import ModelError
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.measure import ADAPTER
from heedful.integrations.transformers.predict import answer
from heedful.integrations.transformers.trace import trace_input
from heedful.tasks.base import EvaluationRequest, EvaluationResult, TraceRequest
from heedful.trace.schema import Trace

MODEL = "heedful.integrations.transformers.model:TransformersModel"  # imports this module


class TransformersTask:
    """The task of every model of transformers; the kind of model decides what is done."""

    files = ()
    adapter = ADAPTER

    def api_class(self, loaded: LoadedTransformers) -> Any:
        """Return the model as Python users see it."""
        return registry.resolve(MODEL)(loaded)

    def generate(
        self, loaded: LoadedTransformers, lines: Sequence[str], options: DecodingOptions, stop: StopCondition
    ) -> list[list[str]]:
        """Return the outputs of each line, best first."""
        return [answer(loaded, line, options, stop) for line in lines]

    def trace(self, loaded: LoadedTransformers, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_input(loaded, request.input, request, decoding)

    def evaluate(self, folders: Any, request: EvaluationRequest) -> EvaluationResult:
        raise ModelError("a model of transformers cannot be evaluated here: generate with it, and score its outputs")


TASK: Any = TransformersTask()
