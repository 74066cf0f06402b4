"""Worlds: generated data with exactly known gold attention.

They are for first runs, teaching and tests within a minute. Results on them do not show that a model is good; that
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
