"""Language models in Python."""

from __future__ import annotations

from typing import Any

from heedful.tasks.api import Model
from heedful.tasks.language_model.predict import read_lines


class LanguageModel(Model):
    """A language model; a call returns the surprisal of each word."""

    def __call__(self, inputs: str, **options: Any) -> list[tuple[str, float]]:
        """Return each word of a line with its surprisal in bits; the end of the line counts as a word."""
        self._check_no_decoding_options(options)
        (line,) = read_lines(self.loaded, [inputs])
        return [(word.text, word.bits) for word in line.words]
