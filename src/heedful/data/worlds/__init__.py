"""Worlds: generated data with exactly known gold attention.

They make first runs, teaching and tests possible within a minute. They are no evidence that a model is good: that
takes real data.
"""

from __future__ import annotations

from collections.abc import Callable

from heedful.data.worlds import moods, phrases, scenes, tastes

WORLDS: dict[str, Callable[..., dict[str, int]]] = {
    "phrases": phrases.write,
    "scenes": scenes.write,
    "tastes": tastes.write,
    "moods": moods.write,
}
