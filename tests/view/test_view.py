"""Pictures: the numbers that were recorded are the numbers that are shown."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import small
from heedful.config import DecodingConfig
from heedful.errors import TraceError
from heedful.record import Tensor, Trace, pharaoh, to_csv, to_npz, trace_links
from heedful.tasks.tracing import Wanted, trace_line
from heedful.view import alignment_text, labels
from heedful.view.figure import alignment, draw, lines


def printed(width: int = 100, blocks: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(alignment_text(small.trace(), width, blocks), soft_wrap=True)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_the_terminal_shows_every_weight_in_hundredths() -> None:
    lines = printed().splitlines()
    assert lines[0].split() == ["the", "black", "cat", "</s>"]
    row = lines[2].split()
    assert row[0] == "chat"
    assert "90" in lines[2]
    assert "10" in lines[2]


def test_a_wide_matrix_is_split_and_none_of_it_lost() -> None:
    text = printed(width=24)
    assert max(map(len, text.splitlines())) <= 24
    assert [word for word in ("the", "black", "cat") if word not in text] == []


def test_without_blocks_the_picture_is_ascii() -> None:
    assert printed(blocks=False).isascii()


def test_a_trace_reads_back_as_written(tmp_path: Path) -> None:
    trace = small.trace()
    trace.save(tmp_path / "t.json")
    assert Trace.load(tmp_path / "t.json") == trace
    assert [p.name for p in tmp_path.iterdir()] == ["t.json"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{}", "not a trace of schema attn-trace/1"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"schema": "attn-trace/9"', "not a trace"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(TraceError, match=words):
        Trace.load(tmp_path / "t.json")


def test_a_trace_whose_shapes_disagree_is_refused(tmp_path: Path) -> None:
    good = small.trace().model_dump(by_alias=True)
    bad = good | {"source": good["source"] | {"tokens": good["source"]["tokens"][:-1]}}
    with pytest.raises(ValueError, match=r"site cross: weight of shape \[4, 1, 4\], expected \[4, 1, 3\]"):
        Trace.model_validate(bad)
    with pytest.raises(ValueError, match="4 output tokens but 3 steps"):
        Trace.model_validate(good | {"steps": good["steps"][:-1]})
    with pytest.raises(ValueError, match="not in the trace"):
        Trace.model_validate(good | {"alignment": "other"})


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_figure_is_drawn_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"alignment{suffix}"
    draw(small.trace(), path)
    content = path.read_bytes()
    assert content[:4] in (b"\x89PNG", b"<?xm", b"%PDF")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    if suffix == ".svg":  # text stays text
        for word in ("input word", "output word", "chat", "black", ".90"):
            assert word in content.decode("utf-8")


def test_a_format_that_cannot_be_drawn_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r'did you mean ".png"'):
        draw(small.trace(), tmp_path / "a.pnj")
    with pytest.raises(TraceError, match="cannot be written"):
        draw(small.trace(), tmp_path / "nowhere" / "a.png")


@pytest.fixture(scope="module")
def beam_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    opened = small.folder(tmp_path_factory.mktemp("m"), small.preset("transformer"))
    how = DecodingConfig(method="beam", beam=3, max_length=7)
    return trace_line(opened, Wanted("the black cat sees a dog", "weights"), how)


@pytest.mark.parametrize("view", ["alignment", "lines", "heads", "steps", "beam"])
def test_every_view_can_be_drawn(tmp_path: Path, beam_trace: Trace, view: str) -> None:
    draw(beam_trace, tmp_path / "v.svg", view)
    text = (tmp_path / "v.svg").read_text(encoding="utf-8")
    shown = {
        "alignment": "output word",
        "lines": "of the weight",
        "heads": "dec.1.cross, head 2",
        "steps": "probability of the next word",
        "beam": "the best output",
    }
    assert shown[view] in text


def test_what_a_trace_does_not_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="has no beam: make it with --beam 5"):
        draw(small.trace(), tmp_path / "v.png", "beam")
    with pytest.raises(TraceError, match="does not say which words were likely"):
        draw(small.trace(), tmp_path / "v.png", "steps")
    with pytest.raises(TraceError, match='no site "cros"; did you mean "cross"'):
        draw(small.trace(), tmp_path / "v.png", site="cros")
    with pytest.raises(TraceError, match="no head 1; this site has 0 to 0"):
        draw(small.trace(), tmp_path / "v.png", head=1)
    with pytest.raises(TraceError, match="history: is of what a recommender took into account"):
        draw(small.trace(), tmp_path / "v.png", "history")


@pytest.mark.parametrize("view", ["alignment", "lines", "heads"])
def test_where_nothing_was_written_nothing_is_drawn(tmp_path: Path, view: str) -> None:
    trace = Trace.from_weights(["the", "cat"], ["</s>"], [[0.5, 0.5]])
    with pytest.raises(TraceError, match="nothing was written, or nothing read"):
        draw(trace, tmp_path / "v.png", view, specials=False)
    assert not list(tmp_path.iterdir())


def test_panels_of_heads_are_of_sites_that_ask_and_read_alike(tmp_path: Path, beam_trace: Trace) -> None:
    other = beam_trace.looks().model_copy(update={"site": "enc.words", "asks": "source", "reads": "source"})
    weight = np.full((len(beam_trace.source.tokens), other.heads, len(beam_trace.source.tokens)), 0.1)
    changed = other.model_copy(update={"weight": "w", "score": None, "extra": {}})
    tensors = {**beam_trace.tensors, "w": Tensor.of(weight.astype(np.float32), "query", "head", "key")}
    mixed = beam_trace.model_copy(update={"sites": [*beam_trace.sites, changed], "tensors": tensors})
    draw(mixed, tmp_path / "v.svg", "heads")
    assert "enc.words" not in (tmp_path / "v.svg").read_text(encoding="utf-8")
    draw(mixed, tmp_path / "s.svg", "heads", site="enc.words")
    text = (tmp_path / "s.svg").read_text(encoding="utf-8")
    assert "enc.words, head 0" in text
    assert "output words" not in text


def test_vietnamese_has_its_letters_and_what_no_font_has_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["con", "mèo", "đen", "ngủ", "trên", "chiếc", "ghế", "cũ"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(Trace.from_weights(words, words, np.eye(8)), tmp_path / "v.png")
    nobodys = "\U0010fffd"  # but matplotlib has a font with a box for every letter
    with pytest.warns(UserWarning, match=f"no font on this machine has {nobodys}"):
        draw(Trace.from_weights([nobodys], [nobodys], [[1.0]]), tmp_path / "u.png")
    odd = "\U0001f9ff"
    monkeypatch.setattr(labels.fonts.fontManager, "ttflist", [])
    with pytest.warns(UserWarning, match=f"no font on this machine has {odd}"):
        draw(Trace.from_weights([odd], [odd], [[1.0]]), tmp_path / "w.png")


@pytest.mark.parametrize("view", ["alignment", "lines"])
def test_dollars_are_letters_not_formulas(tmp_path: Path, view: str) -> None:
    words = ["$5-$6", "$_$", "$\\frac$"]
    draw(Trace.from_weights(words, words, np.eye(3)), tmp_path / "v.svg", view)
    text = (tmp_path / "v.svg").read_text(encoding="utf-8")
    assert all(word in text for word in words)


def test_a_long_source_goes_on_in_panels(tmp_path: Path) -> None:
    many = [f"w{i}" for i in range(90)]
    figure = alignment(Trace.from_weights(many, ["a"], np.full((1, 90), 1 / 90)).table())
    assert len([axes for axes in figure.axes if axes.get_xlabel() == "input word"]) == 3


@pytest.mark.parametrize(
    ("task", "asks", "reads"),
    [
        ("translate", "output word", "input word"),
        ("classify", "label", "input word"),
        ("recommend", "recommended item", "item of the history"),
    ],
)
def test_axes_say_what_stands_on_them(tmp_path: Path, task: str, asks: str, reads: str) -> None:
    trace = small.trace()
    trace = trace.model_copy(update={"model": trace.model.model_copy(update={"task": task})})
    draw(trace, tmp_path / "v.svg")
    text = (tmp_path / "v.svg").read_text(encoding="utf-8")
    assert f">{asks}<" in text
    assert f">{reads}<" in text
    many = reads.replace("word", "words").replace("item ", "items ")
    assert f"rows: {asks}s; columns: {many};" in alignment_text(trace, 100).plain
    draw(trace, tmp_path / "l.svg", "lines")
    assert f">{many}<" in (tmp_path / "l.svg").read_text(encoding="utf-8")


def test_long_words_beside_lines_stand_aslant_and_short_ones_do_not() -> None:
    titles = ["One Flew Over the Cuckoo's Nest (1975)", "My Fair Lady (1964)", "Ben-Hur (1959)"]
    drawn = lines(Trace.from_weights(titles, ["a", "b"], np.full((2, 3), 1 / 3)).table())
    turned = {text.get_text(): text.get_rotation() for text in drawn.axes[0].texts}
    assert [turned[title] for title in titles] == [40.0] * 3
    assert (turned["a"], turned["b"]) == (0.0, 0.0)


def test_words_pieces_and_specials() -> None:
    trace = small.trace()
    assert trace.table(specials=False).columns == ["the", "black", "cat"]
    assert trace.table().rows[-1] == "</s>"


def test_a_word_that_is_always_looked_at_is_no_favourite() -> None:
    weights = [[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]]
    trace = Trace.from_weights(["the", "black", "cat"], ["chat", "noir"], weights)
    assert pharaoh(trace_links(trace)) == "0-0 0-1"
    assert pharaoh(trace_links(trace, "shared")) == "1-0 2-1"


def test_other_formats(tmp_path: Path) -> None:
    trace = small.trace()
    assert to_csv(trace).splitlines()[:2] == [",the,black,cat,</s>", "le,0.9,0.05,0.05,0"]
    assert pharaoh(trace_links(trace)) == "0-0 1-2 2-1"
    to_npz(trace, tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz") as arrays:
        assert arrays["source_tokens"].tolist() == ["the", "black", "cat", "</s>"]
        assert arrays["weight"].shape == (4, 1, 4)


def test_anybodys_matrix() -> None:
    with pytest.raises(TraceError, match=r"weights of shape \(2, 2\), but 1 output and 2 source words"):
        Trace.from_weights(["a", "b"], ["c"], np.eye(2))
    with pytest.raises(TraceError, match="not finite"):
        Trace.from_weights(["a"], ["c"], [[float("nan")]])
