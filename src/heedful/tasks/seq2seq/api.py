"""Sequence-to-sequence models in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from heedful.tasks.api import Model
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.predict import generate_texts, make_predictor


class TextGenerator(Model):
    """Lines to lines: translations, summaries, replies."""

    def __init__(self, loaded: LoadedSeq2Seq) -> None:
        super().__init__(loaded)
        self.predictor = make_predictor([loaded])

    @overload
    def __call__(self, inputs: str, **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Sequence[str], **options: Any) -> list[str]: ...
    def __call__(self, inputs: str | Sequence[str], **options: Any) -> str | list[str]:
        """Return the best output of a line, or of each of several lines."""
        lines = [inputs] if isinstance(inputs, str) else list(inputs)
        outputs = [best[0] for best in generate_texts(self.predictor, lines, self._decoding(options))]
        return outputs[0] if isinstance(inputs, str) else outputs
