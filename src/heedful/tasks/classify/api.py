"""Classifiers in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from heedful.errors import DataError
from heedful.tasks.api import Model
from heedful.tasks.classify.predict import Classification, classify_lines


class Classifier(Model):
    """A text classifier."""

    @overload
    def __call__(self, inputs: str, **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Sequence[str], **options: Any) -> list[str]: ...
    def __call__(self, inputs: str | Sequence[str], **options: Any) -> str | list[str]:
        """Return the label of a text, or of each of several; "" for a blank one."""
        self._check_no_decoding_options(options)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        labels = ["" if result is None else result.label for result in classify_lines(self.loaded, texts)]
        return labels[0] if isinstance(inputs, str) else labels

    def explain(self, text: str) -> Classification:
        """Return the probabilities of all labels and the attention weight of each word."""
        (result,) = classify_lines(self.loaded, [text], weights=True)
        if result is None:
            raise DataError("there is nothing to classify in an empty text")
        return result
