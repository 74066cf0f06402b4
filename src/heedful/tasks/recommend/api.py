"""Recommenders in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.tasks.api import Model
from heedful.tasks.recommend.predict import Recommendation, find_history, recommend


class Recommender(Model):
    """A recommender."""

    def __call__(
        self, inputs: Sequence[str] = (), *, user: str | None = None, top: int = 10, **options: Any
    ) -> list[Recommendation]:
        """Return the best items for a history (titles or ids), or for a user that the model knows."""
        self._check_no_decoding_options(options)
        history = find_history(self.loaded, user, [inputs] if isinstance(inputs, str) else list(inputs))
        return recommend(self.loaded, history, top)
