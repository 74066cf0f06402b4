"""Classifiers in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from heedful.arguments import as_texts, python_errors
from heedful.errors import DataError
from heedful.tasks.api import Model
from heedful.tasks.classify.predict import Classification, classify_lines
from heedful.tasks.limits import OnTooLong


class Classifier(Model):
    """A text classifier."""

    @overload
    def __call__(self, inputs: str, *, on_too_long: OnTooLong = "cut", **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> list[str]: ...
    def __call__(self, inputs: str | Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> Any:
        """Return the label of a text, or of each of several; "" for a blank one.

        `on_too_long` says what becomes of a text with more tokens than the model reads: "cut", "skip" or "error".
        """
        self._check_no_decoding_options(options, "on_too_long")
        texts = as_texts(inputs)
        self._check_count(len(texts))
        with python_errors():
            results = classify_lines(self.loaded, texts, on_too_long=on_too_long)
        labels = ["" if result is None else result.label for result in results]
        return labels[0] if isinstance(inputs, str) else labels

    @overload
    def explain(self, inputs: str) -> Classification: ...  # type: ignore[overload-overlap]
    @overload
    def explain(self, inputs: Iterable[str]) -> list[Classification]: ...
    def explain(self, inputs: str | Iterable[str]) -> Classification | list[Classification]:
        """Return the probabilities of all labels and the attention weight of each word, of one text or several."""
        with python_errors():
            results = classify_lines(self.loaded, as_texts(inputs), weights=True)
        explained = [result for result in results if result is not None]
        if len(explained) < len(results):
            raise DataError("there is nothing to classify in an empty text")
        return explained[0] if isinstance(inputs, str) else explained
