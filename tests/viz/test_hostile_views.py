"""No view raises anything but a TraceError, whatever trace is loaded, and no figure is larger than its limit."""

from __future__ import annotations

import base64
import io
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import small_models
from heedful.errors import TraceError
from heedful.trace.schema import BeamTree, Candidate, PackedTensor, Step, Trace
from heedful.trace.schema.side import SourceImage, Token
from heedful.viz import alignment_text
from heedful.viz.base import TextStyle, ViewOptions
from heedful.viz.figure import draw
from heedful.viz.history import history_text
from heedful.viz.image import unpack_image
from heedful.viz.limits import MAX_LABEL_LETTERS
from heedful.viz.views import VIEWS, get_view
from small_traces import subword_trace

OPTIONS = (ViewOptions(), ViewOptions(words=False, specials=False), ViewOptions(head=0))


def data_uri(image: Image.Image, kind: str = "png") -> str:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def odd_traces() -> Iterator[Trace]:
    """Loadable traces at the edges of what a view may expect."""
    yield Trace.from_weights(["a"], ["b"], [[1.0]])
    yield Trace.from_weights(["</s>"], ["</s>"], [[1.0]])
    yield Trace.from_weights(["a", "b"], ["c"], [[1e6, -1e6]])
    yield Trace.from_weights(["a", "b"], ["c"], [[0.0, 0.0]])
    yield Trace.from_weights(["", "\x00\x1b\n", "x" * 3_000], ["$\\frac{", "\u202e\u0300"], np.full((2, 3), 0.3))
    trace = small_models.small_trace()
    yield trace.model_copy(update={"beam": BeamTree(beam_size=1, nodes=[], best=[])})
    yield trace.model_copy(update={"sites": [], "alignment_site": None})
    side = trace.source.model_copy(update={"tokens": [Token(text="x", role="end")] * 4})
    yield trace.model_copy(update={"source": side})
    for kind in ("self", "pool", "history", "tape"):
        site = trace.sites[0].model_copy(update={"kind": kind})
        yield trace.model_copy(update={"sites": [site]})
        inner = site.model_copy(update={"query_side": "source", "key_side": "source"})
        yield trace.model_copy(update={"sites": [inner]})
    for shape in ((1, 1), (1, 900), (900, 1), (4, 4)):
        image = SourceImage(data_uri=data_uri(Image.new("RGB", shape)), width=9, height=9, grid=(2, 2))
        yield trace.model_copy(update={"source": trace.source.model_copy(update={"image": image})})
    broken = SourceImage(data_uri="data:image/png;base64,AAAA", width=9, height=9, grid=(2, 2))
    yield trace.model_copy(update={"source": trace.source.model_copy(update={"image": broken})})


@pytest.mark.parametrize("view", VIEWS)
def test_odd_traces_are_drawn_or_refused(tmp_path: Path, view: str) -> None:
    function = get_view(view).text
    for number, trace in enumerate(odd_traces()):
        for options in OPTIONS:
            try:
                if function is not None:
                    function(trace, options, TextStyle(10))
                if options == OPTIONS[number % 3]:  # figures are slow
                    _draw(trace, tmp_path / f"t{random.Random(number).choice(('.png', '.svg'))}", view, options)
            except TraceError as error:
                assert str(error)  # noqa: PT017 - a view may also succeed
    assert {path.stem for path in tmp_path.iterdir()} <= {"t"}


def _draw(trace: Trace, path: Path, view: str, options: ViewOptions) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="no installed font")
        warnings.filterwarnings("ignore", message=r".*layout", category=UserWarning)
        draw(trace, path, view, options)


def test_a_very_long_word_is_shortened_in_figures(tmp_path: Path) -> None:
    trace = Trace.from_weights(["<s>", "x" * 3_000], ["a", "b"], np.eye(2))
    for view in ("alignment", "lines", "heads"):
        draw(trace, tmp_path / "t.png", view)
        with Image.open(tmp_path / "t.png") as image:
            assert image.width * image.height < 10_000_000, view
    draw(trace, tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text(encoding="utf-8")
    assert "x" * (MAX_LABEL_LETTERS // 2 - 1) + "…" in text
    assert "x" * MAX_LABEL_LETTERS not in text


def test_control_characters_do_not_break_an_svg(tmp_path: Path) -> None:
    draw(Trace.from_weights(["\x00\x1b"], ["b\x0c"], [[1.0]]), tmp_path / "t.svg")
    text = (tmp_path / "t.svg").read_text(encoding="utf-8")
    assert "\\u0000\\u001b" in text
    assert not {"\x00", "\x1b", "\x0c"} & set(text)


def test_a_missing_glyph_is_warned_about_once(tmp_path: Path) -> None:
    trace = Trace.from_weights(["a"], ["\U0010fffd"], [[1.0]])
    trace = trace.model_copy(update={"steps": [Step(logp=0.0, top=[Candidate(id=1, text="\U0010fffd", logp=0.0)])]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draw(trace, tmp_path / "t.png", "steps")
    assert [str(one.message).partition(":")[0] for one in caught] == ["no installed font has \U0010fffd"]


def test_figures_have_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in (140, 2_000):
        words = [str(i) for i in range(n)]
        with pytest.raises(TraceError, match=r"inches, which is too large; write a page"):
            draw(Trace.from_weights(words, words, np.eye(n)), tmp_path / "t.pdf")
    with pytest.raises(TraceError, match=r"1,502 by 3 inches, which is too large"):
        draw(Trace.from_weights(words, words, np.eye(n)), tmp_path / "t.svg", "lines")
    monkeypatch.setattr("heedful.viz.limits.MAX_PIXELS", 1_000_000)
    trace = Trace.from_weights(["a"] * 10, ["b"] * 10, np.eye(10))
    with pytest.raises(TraceError, match=r"pixels, more than 1,000,000 in all; write \.svg, \.pdf or a page"):
        draw(trace, tmp_path / "t.png")
    draw(trace, tmp_path / "t.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["t.svg"]


def test_labels_beside_a_figure_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.viz.limits.MAX_PIXELS", 1_000_000)
    draw(Trace.from_weights(["a"] * 5, ["b"], np.ones((1, 5)) / 5), tmp_path / "t.png")
    with pytest.raises(TraceError, match=r"pixels, more than 1,000,000 in all"):
        draw(Trace.from_weights(["w" * 120] * 5, ["b"], np.ones((1, 5)) / 5), tmp_path / "t.png")


def test_figures_have_a_largest_number_of_parts(tmp_path: Path) -> None:
    heads = Trace.from_weights(["a"], ["b"], np.ones((1, 500, 1)))
    with pytest.raises(TraceError, match="500 panels, more than the 400"):
        draw(heads, tmp_path / "t.png", "heads")
    words = [str(i) for i in range(300)]
    full = Trace.from_weights(words, words, np.ones((300, 300)))
    with pytest.raises(TraceError, match="90,000 lines, more than the 20,000"):
        draw(full, tmp_path / "t.png", "lines")
    words = [str(i) for i in range(500)]
    with pytest.raises(TraceError, match="250,000 cells, more than the 200,000"):
        alignment_text(Trace.from_weights(words, words, np.ones((500, 500))))


def test_a_failed_figure_is_closed_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib import pyplot

    mine = pyplot.figure()
    monkeypatch.setattr("heedful.viz.limits.MAX_PIXELS", 1)
    with pytest.raises(TraceError, match="pixels"):
        draw(small_models.small_trace(), tmp_path / "t.png")
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)


def test_images_inside_a_trace_are_bounded() -> None:
    large = Image.new("L", (5_000, 4_000))
    with pytest.raises(TraceError, match=r"5,000 by 4,000 pixels, more than 16,000,000 in all"):
        unpack_image(SourceImage(data_uri=data_uri(large), width=9, height=9, grid=(2, 2)))
    with pytest.raises(TraceError, match="cannot be decoded"):
        unpack_image(SourceImage(data_uri="data:image/jpeg;base64,AAAA", width=9, height=9, grid=(2, 2)))
    small = unpack_image(SourceImage(data_uri=data_uri(Image.new("L", (1_000, 10))), width=9, height=9, grid=(2, 2)))
    assert small.size == (420, 4)


def test_a_site_that_does_not_attend_to_the_image_has_no_photo(tmp_path: Path) -> None:
    trace = small_models.small_trace()
    image = SourceImage(data_uri=data_uri(Image.new("RGB", (8, 8))), width=8, height=8, grid=(2, 2))
    site = trace.sites[0].model_copy(update={"key_side": "target"})
    source = trace.source.model_copy(update={"image": image})
    with pytest.raises(TraceError, match="cross does not attend to the regions of the image"):
        draw(trace.model_copy(update={"source": source, "sites": [site]}), tmp_path / "t.png", "photo")


def test_a_history_of_special_tokens_is_shown() -> None:
    trace = subword_trace()
    site = trace.sites[0].model_copy(update={"kind": "history"})
    effects = PackedTensor.pack(np.full((4, 5), np.nan), "T", "S")
    update = {"sites": [site], "attributions": {"leave-one-out": "e"}, "tensors": {**trace.tensors, "e": effects}}
    assert "weight" in history_text(trace.model_copy(update=update)).plain
