"""Views: the numbers of the trace are the numbers shown, in every output of every view."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.text import Text

import small_models
from command_line import heedful
from heedful import register, registry
from heedful.config import DecodingOptions
from heedful.errors import TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.schema import PackedTensor, Trace
from heedful.viz import TextStyle, View, ViewOptions, alignment_text, fonts
from heedful.viz.alignment import alignment_figure
from heedful.viz.figure import draw
from heedful.viz.lines import lines_figure
from heedful.viz.views import VIEWS, default_view, get_view


@pytest.fixture(scope="module")
def beam_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    loaded = small_models.random_model_folder(tmp_path_factory.mktemp("m"), small_models.small_preset("transformer"))
    options = DecodingOptions(method="beam", beam=3, max_length=7)
    return trace_line(loaded, TraceRequest("the black cat sees a dog", "weights"), options)


# the table


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_says_what_it_shows_and_can_be_drawn(name: str) -> None:
    view = get_view(name)
    assert view.summary
    assert "figure" in view.outputs()


@pytest.mark.parametrize(
    ("name", "output", "message"),
    [
        ("aligment", None, '--view "aligment": no such view; did you mean "alignment"'),
        ("beam", "terminal", "--view beam is not available as a terminal; draw it with -o beam.png"),
        ("beam", "page", "--view beam is not available as a page; draw it with -o beam.png"),
        ("photo", "terminal", "draw it with -o photo.png or write it with -o photo.html"),
    ],
)
def test_an_unavailable_view_is_refused_with_advice(name: str, output: str | None, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        get_view(name, output)  # type: ignore[arg-type]


def test_the_default_view_depends_on_the_trace() -> None:
    trace = small_models.small_trace()
    assert default_view(trace, None, "terminal") == "alignment"
    self_attention = trace.site().model_copy(update={"query_side": "target", "key_side": "target", "kind": "self"})
    language_model = trace.model_copy(update={"sites": [self_attention]})
    assert default_view(language_model, None, "figure") == "arcs"
    assert default_view(language_model, None, "terminal") == "alignment", "arcs are drawn to files only"
    assert default_view(language_model, "cross", "figure") == "alignment", "a site that is asked for is a matrix"
    pooled = trace.model_copy(update={"sites": [trace.site().model_copy(update={"kind": "pool"})]})
    assert default_view(pooled, None, "terminal") == "words"
    history = trace.model_copy(update={"sites": [trace.site().model_copy(update={"kind": "history"})]})
    assert default_view(history, None, "page") == "history"


@pytest.fixture
def own_view(monkeypatch: pytest.MonkeyPatch) -> View:
    """A registered view; the registry forgets it afterwards."""
    monkeypatch.setitem(registry._registered, "view", {})
    view = View("one line of text", text=lambda trace, options, style: Text(f"{trace.target.text} {style.width}"))
    register("view", "one-line", view)
    return view


def test_a_registered_view_is_found_and_explained(own_view: View) -> None:
    assert get_view("one-line", "terminal") is own_view
    assert own_view.text is not None
    assert own_view.text(small_models.small_trace(), ViewOptions(), TextStyle(72)).plain == "le chat noir 72"
    with pytest.raises(TraceError, match="--view one-line is not available as a figure; print it without -o"):
        get_view("one-line", "figure")


# the terminal


def printed(width: int = 100, unicode: bool = True) -> str:
    return alignment_text(small_models.small_trace(), style=TextStyle(width, unicode)).plain


def test_the_terminal_shows_every_weight_in_hundredths() -> None:
    lines = printed().splitlines()
    assert lines[0].split() == ["the", "black", "cat", "</s>"]
    assert lines[2].split()[0] == "chat"
    assert "90" in lines[2]
    assert "10" in lines[2]


def test_a_wide_matrix_is_split_into_panels_without_losing_columns() -> None:
    text = printed(width=24)
    assert max(map(len, text.splitlines())) <= 24
    assert [word for word in ("the", "black", "cat") if word not in text] == []


def test_without_unicode_the_matrix_is_ascii() -> None:
    assert printed(unicode=False).isascii()


# figures


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_is_complete_or_absent(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"alignment{suffix}"
    draw(small_models.small_trace(), path)
    content = path.read_bytes()
    assert content[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".svg":  # text stays text
        for word in ("input word", "output word", "chat", "black", ".90"):
            assert word in content.decode("utf-8")


def test_an_unknown_format_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r'did you mean ".png"'):
        draw(small_models.small_trace(), tmp_path / "a.pnj")
    with pytest.raises(TraceError, match="cannot be written"):
        draw(small_models.small_trace(), tmp_path / "nowhere" / "a.png")


@pytest.mark.parametrize(
    ("view", "label"),
    [
        ("alignment", "output word"),
        ("lines", "of the weight"),
        ("heads", "dec.1.cross, head 2"),
        ("steps", "probability of the next word"),
        ("beam", "best output"),
    ],
)
def test_a_generation_is_drawn_in_every_view(tmp_path: Path, beam_trace: Trace, view: str, label: str) -> None:
    draw(beam_trace, tmp_path / "v.svg", view)
    assert label in (tmp_path / "v.svg").read_text(encoding="utf-8")


def test_a_trace_without_the_content_of_a_view_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no beam: record it with --beam 5"):
        draw(small_models.small_trace(), tmp_path / "v.png", "beam")
    with pytest.raises(TraceError, match="does not have the most likely words of each step"):
        draw(small_models.small_trace(), tmp_path / "v.png", "steps")
    with pytest.raises(TraceError, match='no site "cros"; did you mean "cross"'):
        draw(small_models.small_trace(), tmp_path / "v.png", options=ViewOptions(site="cros"))
    with pytest.raises(TraceError, match="no head 1; this site has heads 0 to 0"):
        draw(small_models.small_trace(), tmp_path / "v.png", options=ViewOptions(head=1))
    with pytest.raises(TraceError, match="history: this trace is not of a recommender"):
        draw(small_models.small_trace(), tmp_path / "v.png", "history")
    with pytest.raises(TraceError, match="photo: the input of this trace is not an image"):
        draw(small_models.small_trace(), tmp_path / "v.png", "photo")
    with pytest.raises(TraceError, match="arcs: cross attends from one text to another; use --view lines"):
        draw(small_models.small_trace(), tmp_path / "v.png", "arcs")


@pytest.mark.parametrize("view", ["alignment", "lines", "heads"])
def test_an_empty_output_is_not_drawn(tmp_path: Path, view: str) -> None:
    trace = Trace.from_weights(["the", "cat"], ["</s>"], [[0.5, 0.5]])
    with pytest.raises(TraceError, match="the input or the output has no words"):
        draw(trace, tmp_path / "v.png", view, ViewOptions(specials=False))
    assert not list(tmp_path.iterdir())


def test_panels_of_heads_are_of_sites_with_the_same_sides(tmp_path: Path, beam_trace: Trace) -> None:
    other = beam_trace.site().model_copy(update={"site": "enc.words", "query_side": "source", "key_side": "source"})
    weights = np.full((len(beam_trace.source.tokens), other.heads, len(beam_trace.source.tokens)), 0.1)
    changed = other.model_copy(update={"weights": "w", "scores": None, "extras": {}})
    tensors = {**beam_trace.tensors, "w": PackedTensor.pack(weights, "S", "H", "S")}
    mixed = beam_trace.model_copy(update={"sites": [*beam_trace.sites, changed], "tensors": tensors})
    draw(mixed, tmp_path / "v.svg", "heads")
    assert "enc.words" not in (tmp_path / "v.svg").read_text(encoding="utf-8")
    draw(mixed, tmp_path / "s.svg", "heads", ViewOptions(site="enc.words"))
    text = (tmp_path / "s.svg").read_text(encoding="utf-8")
    assert "enc.words, head 0" in text
    assert "output words" not in text


def test_characters_without_a_font_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["con", "mèo", "đen", "ngủ", "trên", "chiếc", "ghế", "cũ"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(Trace.from_weights(words, words, np.eye(8)), tmp_path / "v.png")
    missing = "\U0010fffd"  # matplotlib ships a font with a box for every character, which does not count
    with pytest.warns(UserWarning, match=f"no installed font has {missing}"):
        draw(Trace.from_weights([missing], [missing], [[1.0]]), tmp_path / "u.png")
    emoji = "\U0001f9ff"
    monkeypatch.setattr(fonts.fonts.fontManager, "ttflist", [])
    with pytest.warns(UserWarning, match=f"no installed font has {emoji}"):
        draw(Trace.from_weights([emoji], [emoji], [[1.0]]), tmp_path / "w.png")


@pytest.mark.parametrize("view", ["alignment", "lines"])
def test_dollar_signs_are_text_not_formulas(tmp_path: Path, view: str) -> None:
    words = ["$5-$6", "$_$", "$\\frac$"]
    draw(Trace.from_weights(words, words, np.eye(3)), tmp_path / "v.svg", view)
    text = (tmp_path / "v.svg").read_text(encoding="utf-8")
    assert all(word in text for word in words)


def test_a_long_source_continues_in_panels() -> None:
    many = [f"w{i}" for i in range(90)]
    figure = alignment_figure(Trace.from_weights(many, ["a"], np.full((1, 90), 1 / 90)), ViewOptions())
    assert len([axes for axes in figure.axes if axes.get_xlabel() == "input word"]) == 3


@pytest.mark.parametrize(
    ("task", "row", "column"),
    [
        ("translate", "output word", "input word"),
        ("classify", "label", "input word"),
        ("recommend", "recommended item", "item of the history"),
    ],
)
def test_axes_are_named_by_the_task(tmp_path: Path, task: str, row: str, column: str) -> None:
    trace = small_models.small_trace()
    trace = trace.model_copy(update={"model": trace.model.model_copy(update={"task": task})})
    draw(trace, tmp_path / "v.svg")
    text = (tmp_path / "v.svg").read_text(encoding="utf-8")
    assert f">{row}<" in text
    assert f">{column}<" in text
    columns = column.replace("word", "words").replace("item ", "items ")
    assert f"rows: {row}s; columns: {columns};" in alignment_text(trace).plain
    draw(trace, tmp_path / "l.svg", "lines")
    assert f">{columns}<" in (tmp_path / "l.svg").read_text(encoding="utf-8")


def test_long_words_beside_lines_are_rotated_and_short_ones_are_not() -> None:
    titles = ["One Flew Over the Cuckoo's Nest (1975)", "My Fair Lady (1964)", "Ben-Hur (1959)"]
    figure = lines_figure(Trace.from_weights(titles, ["a", "b"], np.full((2, 3), 1 / 3)), ViewOptions())
    rotations = {text.get_text(): text.get_rotation() for text in figure.axes[0].texts}
    assert [rotations[title] for title in titles] == [40.0] * 3
    assert (rotations["a"], rotations["b"]) == (0.0, 0.0)


# the command


def test_show_prints_draws_and_refuses(tmp_path: Path) -> None:
    small_models.small_trace().save(tmp_path / "t.json")
    assert "chat" in heedful("show", tmp_path / "t.json").stdout
    assert heedful("show", tmp_path / "t.json", "-o", tmp_path / "t.svg", "--view", "lines").returncode == 0
    refused = heedful("show", tmp_path / "t.json", "--view", "heads")
    assert refused.returncode == 2
    assert "--view heads is not available as a terminal; draw it with -o heads.png" in refused.stderr
    text = heedful("show", "--help").stdout
    assert all(name in text for name in VIEWS)
