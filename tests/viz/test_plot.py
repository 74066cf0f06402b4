"""Traces and plain weights drawn from Python: into the user's axes, with their options, and as data."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

import heedful
import small_models
from heedful.errors import ArgumentError, TraceError
from heedful.trace.schema import Trace
from heedful.viz import open_page
from heedful.viz.page import BUILT


@pytest.fixture(autouse=True)
def _no_windows() -> Iterator[None]:
    with matplotlib.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


@pytest.fixture
def ax() -> Axes:
    axes: Axes = Figure().subplots(1, 2)[1]
    return axes


def test_a_trace_is_drawn_into_given_axes_only(ax: Axes) -> None:
    trace = small_models.small_trace()
    image = trace.plot(ax=ax, title="reordering", cmap="viridis", specials=True)
    assert isinstance(image, AxesImage)
    assert image.axes is ax
    assert image.get_cmap().name == "viridis"
    np.testing.assert_allclose(np.asarray(image.get_array()), trace.matrix())
    assert ax.get_title() == "reordering"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["le", "chat", "noir", "</s>"]
    assert not ax.figure.axes[0].images, "the other axes of the figure are left alone"
    assert not pyplot.get_fignums()


def test_words_and_special_tokens_are_options(ax: Axes) -> None:
    small_models.small_trace().plot(ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["the", "black", "cat"]


@pytest.mark.parametrize("view", ["lines", "arcs"])
def test_other_views_for_one_axes_return_them(ax: Axes, view: str) -> None:
    trace = small_models.small_trace()
    if view == "arcs":
        trace = trace.model_copy(update={"sites": [trace.site().model_copy(update={"query_side": "source"})]})
    assert trace.plot(ax=ax, view=view) is ax
    assert "cat" in {text.get_text() for text in ax.texts}


def test_a_notebooks_backend_stays_interactive_so_that_every_figure_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first figure loads the backend of a notebook, which turns interactive mode on; the next ones need it."""
    assert not matplotlib.is_interactive()
    figure = pyplot.figure

    def load_backend(*args: Any) -> Figure:
        matplotlib.interactive(True)
        return figure(*args)

    monkeypatch.setattr(pyplot, "figure", load_backend)
    try:
        heedful.plot([[0.9, 0.1], [0.2, 0.8]])
        assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(False)


def test_without_axes_a_figure_of_pyplot_is_drawn() -> None:
    image = small_models.small_trace().plot(size=(4, 3), title="mine")
    assert isinstance(image, AxesImage)
    figure = image.figure
    assert pyplot.gcf() is figure
    assert figure.get_size_inches().tolist() == [4, 3]
    assert image.axes.get_title() == "mine"
    heads = small_models.small_trace().plot(view="heads", title="all heads")
    assert isinstance(heads, Figure)
    assert heads.get_suptitle() == "all heads"


@pytest.mark.parametrize("view", ["alignment", "lines"])
def test_nothing_of_a_figure_is_cut_off(view: str) -> None:
    words = ["a", "cat"] if view == "lines" else ["a rather long title of a film (2012)", "x"]
    trace = Trace.from_weights(words, words[::-1], [[0.9, 0.1], [0.4, 0.6]])
    figure = trace.plot(view=view).figure
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    (left, bottom), (right, top) = figure.get_tightbbox().get_points()
    width, height = figure.get_size_inches()
    pixel = 1 / figure.dpi  # constrained layout rounds
    assert -pixel <= left < right <= width + pixel
    assert -pixel <= bottom < top <= height + pixel


def test_small_axes_have_no_numbers_or_labels_that_overlap() -> None:
    figure = Figure()
    whole, quarter = figure.subplots(1, 2, width_ratios=[3, 1])
    words = [f"word{n}" for n in range(16)]
    weights = np.full((3, 16), 1 / 16)
    for ax in (whole, quarter):
        heedful.plot(weights, ax=ax, source=words)
    assert len(whole.texts) == 0, "0.2 inches per cell"
    assert [len(ax.get_xticklabels()) for ax in (whole, quarter)] == [16, 6]
    whole.clear()
    heedful.plot(weights[:, :8], ax=whole)
    assert len(whole.texts) == 24
    for ax in (whole, quarter):
        ax.clear()
        heedful.plot(weights, ax=ax, view="lines", source=words)
    assert {text.get_rotation() for text in whole.texts if text.get_text() in words} == {40.0}
    boxes = [text.get_window_extent() for text in whole.texts]
    assert min(box.x0 for box in boxes) > 0, "the notes on the left are in the figure"


def test_fonts_are_options_and_the_users_style_is_kept(ax: Axes) -> None:
    trace = small_models.small_trace()
    with matplotlib.rc_context({"font.family": ["serif"], "font.size": 7.0}):
        own = Figure().subplots()
        trace.plot(ax=own)
        assert own.get_xticklabels()[0].get_fontsize() == 7.0
        assert own.get_xticklabels()[0].get_fontfamily() == ["serif"]
    trace.plot(ax=ax, font=5)
    assert {label.get_fontsize() for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]} == {5.0}
    trace.plot(ax=ax, font="DejaVu Serif")
    assert ax.get_xticklabels()[0].get_fontfamily() == ["DejaVu Serif"]
    other = Figure().subplots()
    small_models.small_trace().plot(ax=other, view="lines", font=19)
    assert {text.get_fontsize() for text in other.texts} >= {19.0}
    other.clear()
    small_models.small_trace().plot(ax=other, view="lines", font="DejaVu Serif")
    assert {text.get_fontfamily()[0] for text in other.texts} == {"DejaVu Serif"}


@pytest.mark.parametrize("weights", [[[0.9, 0.1]], np.array([[0.9, 0.1]]), torch.tensor([[[0.8, 0.2], [1.0, 0.0]]])])
def test_any_weights_are_drawn(ax: Axes, weights: Any) -> None:
    image = heedful.plot(weights, ax=ax, source=["a", "b"])
    assert isinstance(image, AxesImage)
    np.testing.assert_allclose(np.asarray(image.get_array()), [[0.9, 0.1]], atol=1e-6)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cmap": "blues"}, 'cmap="blues": no such color map; did you mean "Blues"\\?$'),
        ({"size": (3, 3)}, "size: axes have the size of their figure"),
        ({"view": "heads"}, 'view="heads": fills a figure of its own, so it takes no ax; .*alignment, lines'),
        ({"view": "matrix"}, '^view="matrix": no such view; '),
        ({"source": ["a"]}, "source, target: a trace has words of its own"),
        ({"site": "enc"}, 'no site "enc"'),
    ],
)
def test_wrong_options_are_named(ax: Axes, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, TraceError), match=message):
        small_models.small_trace().plot(ax=ax, **options)


@pytest.mark.parametrize(
    ("weights", "message"),
    [("text", "expected a trace or a matrix of weights, got str"), ([0.5], r"got \(1,\)")],
)
def test_what_is_no_matrix_is_an_error(weights: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        heedful.plot(weights)


def test_arrays_and_data_frames_have_the_same_numbers() -> None:
    pandas = pytest.importorskip("pandas")
    trace = small_models.small_trace()
    frame = trace.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.index) == ["le", "chat", "noir", "</s>"]
    assert (frame.index.name, frame.columns.name) == ("output word", "input word")
    assert frame.loc["chat", "cat"] == pytest.approx(0.9)
    np.testing.assert_array_equal(frame.to_numpy(), trace.to_numpy())
    np.testing.assert_allclose(trace.to_numpy(), trace.matrix())
    assert trace.to_numpy(specials=False).shape == (3, 3)


@pytest.mark.parametrize("screen", [True, False])
def test_the_page_is_opened_where_there_is_a_screen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, screen: bool
) -> None:
    if not BUILT.is_dir():
        pytest.skip("the page is not built")
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(open_page, "has_screen", lambda: screen)
    file = small_models.small_trace().show(str(tmp_path / "t.html"))
    assert file == tmp_path / "t.html"
    assert "<!doctype html>" in file.read_text(encoding="utf-8")
    assert opened == ([file.as_uri()] if screen else [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert small_models.small_trace().show().parent.parent == tmp_path
