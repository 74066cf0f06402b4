"""Models of other libraries (`hf:FOLDER_OR_ID`) in the server: they read one text at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from heedful.decoding import StopCondition
from heedful.errors import ArgumentError, ServeError
from heedful.serve.problems import too_large, wrong_request
from heedful.serve.servables import Item, Servable, check_lines
from heedful.serve.settings import Limits
from heedful.tasks.api import Model, call_options

TEXT_TASKS = ("translate", "classify", "read")


class ElsewhereServable(Servable):
    """A model of another library, which reads texts."""

    def parse_options(self, values: Mapping[str, Any], limits: Limits) -> Hashable:
        """Return the options of a request as names and values; those that are not given are the model's own."""
        try:
            options = call_options(dict(values))
        except ArgumentError as error:
            raise wrong_request("\n".join(f"options.{line}" for line in str(error).splitlines())) from None
        for name, most in (("beam", limits.beam), ("n_best", limits.beam), ("max_length", limits.output_tokens)):
            if name in options.model_fields_set and getattr(options, name) > most:
                raise too_large(f"options.{name}={getattr(options, name):,}: this server computes at most {most:,}")
        return tuple((name, getattr(options, name)) for name in sorted(options.model_fields_set))

    def prepare(self, inputs: Sequence[Any], limits: Limits) -> list[Item]:
        """Check that inputs are texts of a length that the server reads."""
        loaded: Any = self.model.loaded
        return check_lines(self.name, inputs, lambda line: len(loaded.text.encode(line)), limits.tokens)

    def run(
        self, payloads: Sequence[Any], options: Hashable, alignments: bool, stop: StopCondition
    ) -> list[dict[str, Any]]:
        """Return the output of each text."""
        assert isinstance(options, tuple)
        records = []
        for line in payloads:
            stop.check(0, 1)
            outputs = self.model(line, should_stop=stop.is_met, **dict(options))
            texts = outputs if isinstance(outputs, list) else [outputs]
            records.append({"text": texts[0], "outputs": [{"text": text} for text in texts]})
        return records


def describe_from_elsewhere(model: Model) -> dict[str, Any]:
    """Return what the card of a model of ours says; raise ServeError if the model does not read texts."""
    loaded: Any = model.loaded
    info = loaded.describe()
    if model.task not in TEXT_TASKS or loaded.family.modality != "text":
        raise ServeError(f"{model.name}: models of transformers that read images or sounds cannot be served")
    architecture = info.settings.get("architecture", "model")
    return {"task": model.task, "about": f"{architecture} of transformers", "parameters": info.parameters}
