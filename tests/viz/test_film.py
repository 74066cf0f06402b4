"""The film of a training: a GIF with a frame per validation."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from heedful.errors import TraceError
from heedful.trace.schema import Trace
from heedful.viz.film import FilmFrame, choose_frames, film_gif


def frame(step: int, first: float) -> FilmFrame:
    weights = [[first, 1 - first], [1 - first, first]]
    return FilmFrame(f"step {step}", Trace.from_weights(["le", "chat"], ["the", "cat"], weights))


def test_a_film_has_a_frame_per_validation_and_shows_the_last_longest() -> None:
    film = Image.open(io.BytesIO(film_gif([frame(40, 0.5), frame(80, 0.9), frame(120, 1.0)])))
    assert film.format == "GIF"
    assert getattr(film, "n_frames", 1) == 3
    durations = []
    for i in range(3):
        film.seek(i)
        durations.append(film.info["duration"])
    assert durations[0] < durations[2]


def test_a_long_film_keeps_its_first_and_last_frame() -> None:
    chosen = choose_frames(1000, 60)
    assert len(chosen) == 60
    assert (chosen[0], chosen[-1]) == (0, 999)


def test_a_film_of_nothing_is_refused() -> None:
    with pytest.raises(TraceError, match="no frames"):
        film_gif([])
