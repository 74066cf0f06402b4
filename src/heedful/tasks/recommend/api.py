"""Recommenders in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.arguments import as_list, is_several, python_errors
from heedful.config import DecodingOptions
from heedful.data.histories import Ints
from heedful.errors import ArgumentError
from heedful.tasks.api import Model
from heedful.tasks.base import TraceRequest
from heedful.tasks.recommend.predict import Recommendation, find_history, recommend
from heedful.tasks.recommend.trace import trace_recommendation
from heedful.trace.schema import Trace

Id = str | int


class Recommender(Model):
    """A recommender: for a user that it knows, or for any history of items.

    Items are named by id or by title. A whole number is an id; text is a title or an id, and where it could be both,
    an error says so: `"id:300"` and `"title:300"` are never taken for each other.
    """

    def __call__(
        self,
        *inputs: Any,
        user: Id | Sequence[Id] | None = None,
        items: Sequence[Id] | Sequence[Sequence[Id]] | None = None,
        top: int = 10,
        **options: Any,
    ) -> Any:
        """Return the best items for a user, or for a history of items; for each of several users or histories, a list.

        recommender(user=7)
        recommender(items=["Toy Story", "Heat (1995)"], top=3)
        recommender(user=[7, 8])  # two lists
        """
        _check_keywords(inputs)
        self._check_no_decoding_options(options, "user", "items", "top")
        if type(top) is not int or top < 1:
            raise ArgumentError(f"top={top!r}: expected a whole number, at least 1")
        several, histories = self._histories(user, items)
        with python_errors():
            answers: list[list[Recommendation]] = [recommend(self.loaded, history, top) for history in histories]
        return answers if several else answers[0]

    def trace(  # a history is named by user or items
        self,
        *inputs: Any,
        user: Id | Sequence[Id] | None = None,
        items: Sequence[Id] | Sequence[Sequence[Id]] | None = None,
        **options: Any,
    ) -> Any:
        """Record how items are scored for a user or a history; other arguments as in `Model.trace`.

        `target` names the items to score, separated by semicolons, in place of the best ones.
        """
        _check_keywords(inputs)
        several, histories = self._histories(user, items)
        if several:
            return [super(Recommender, self).trace(history[None], **options) for history in histories]
        return super().trace(histories[0][None], **options)  # two axes: one input, not several

    def find_history(self, inputs: Any) -> Ints:
        """Return the item numbers of `{"user": ID}` or `{"items": [...]}`."""
        if not isinstance(inputs, Mapping) or not set(inputs) <= {"user", "items"}:
            raise ArgumentError('inputs: expected {"user": ID} or {"items": [...]}')
        several, histories = self._histories(inputs.get("user"), inputs.get("items"))
        if several:
            raise ArgumentError("inputs: expected one user or one history")
        return histories[0]

    def _trace_input(self, inputs: Any) -> Any:
        return self.find_history(inputs)[None]

    def _trace_one(self, item: Any, request: TraceRequest, decoding: DecodingOptions) -> Trace:
        return trace_recommendation(self.loaded, request, item[0])

    def _trace_decoding(self, options: dict[str, Any]) -> DecodingOptions:
        self._check_no_decoding_options(options)
        return self.loaded.recipe.decoding

    def _histories(self, user: Any, items: Any) -> tuple[bool, list[Ints]]:
        """Return whether several histories are asked for, and the item numbers of each."""
        if (user is None) == (items is None):
            raise ArgumentError("user, items: give one of them; a known user has a history")
        with python_errors():
            if user is not None:
                return is_several(user), [find_history(self.loaded, str(name)) for name in as_list(user)]
            if isinstance(items, str):  # one title or id
                items = [items]
            if not is_several(items):
                raise ArgumentError(f"items: expected a list of items, got {type(items).__name__}")
            several, listed = any(map(is_several, as_list(items))), as_list(items)
            histories = [as_list(history) for history in listed] if several else [listed]
            return several, [find_history(self.loaded, None, list(map(_name, names))) for names in histories]


def _check_keywords(inputs: tuple[Any, ...]) -> None:
    if inputs:
        raise ArgumentError("say what it is: user=7 for a user, items=[...] for a history of items")


def _name(item: Id) -> str:
    """Return an item as the catalog finds it; a whole number is an id."""
    return item if isinstance(item, str) else f"id:{item}"
