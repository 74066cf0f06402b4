"""Worlds with known answers: generated data whose right attention is known exactly.

They make the first run, the teaching and the tests possible in a minute. They are never the evidence that
the toolkit is good: that evidence is real data.
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
