"""Language models in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from heedful.arguments import as_texts, python_errors
from heedful.tasks.api import Model
from heedful.tasks.language_model.predict import read_lines
from heedful.tasks.limits import OnTooLong

Surprisals = list[tuple[str, float]]


class LanguageModel(Model):
    """A language model; a call returns the surprisal of each word."""

    @overload
    def __call__(self, inputs: str, *, on_too_long: OnTooLong = "cut", **options: Any) -> Surprisals: ...
    @overload
    def __call__(
        self, inputs: Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any
    ) -> list[Surprisals]: ...
    def __call__(self, inputs: str | Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> Any:
        """Return each word of a line with its surprisal in bits, or that of each of several lines.

        The end of the line counts as a word. `on_too_long` says what becomes of a line with more tokens than the
        model reads: "cut", "skip" or "error".
        """
        self._check_no_decoding_options(options, "on_too_long")
        with python_errors():
            lines = list(read_lines(self.loaded, as_texts(inputs), on_too_long=on_too_long))
        answers = [[(word.text, word.bits) for word in line.words] for line in lines]
        return answers[0] if isinstance(inputs, str) else answers
