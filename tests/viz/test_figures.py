"""Figures are read as they are: right numbers, words on the axes, no marks of the vocabulary, a size that fits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import small_models
from command_line import heedful
from heedful.config import DecodingOptions
from heedful.tasks.base import TraceRequest
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.schema import BeamNode, BeamTree, Side, Token, Trace
from heedful.viz import ViewOptions
from heedful.viz.alignment import alignment_figure
from heedful.viz.arcs import arcs_figure
from heedful.viz.beam import beam_figure
from heedful.viz.figure import draw
from heedful.viz.heads import heads_figure


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.fixture(scope="module")
def transformer_trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    loaded = small_models.random_model_folder(tmp_path_factory.mktemp("m"), small_models.small_preset("transformer"))
    options = DecodingOptions(method="beam", beam=3, max_length=7)
    return trace_line(loaded, TraceRequest("the black cat sees a dog", "weights"), options)


def piece_trace() -> Trace:
    """Return a trace of "old chair." -> "La vieille chaise." in subwords, with end tokens."""
    source = [("▁old", 0), ("▁chair", 1), (".", 1)]
    target = [("▁La", 0), ("▁vie", 1), ("ille", 1), ("▁chaise", 2), (".", 2)]
    trace = Trace.from_weights(
        [text for text, _ in source] + ["</s>"], [text for text, _ in target] + ["</s>"], np.full((6, 4), 0.25)
    )
    end = Token(text="</s>", role="end")

    def side(text: str, pieces: list[tuple[str, int]]) -> Side:
        tokens = [*(Token(text=piece, word=word) for piece, word in pieces), end]
        return Side(text=text, tokens=tokens, words=text.split())

    return trace.model_copy(update={"source": side("old chair.", source), "target": side("La vieille chaise.", target)})


# arcs


def test_a_hidden_weight_of_nothing_is_not_negative() -> None:
    heads = np.random.default_rng(9).uniform(0.1, 0.3, (5, 3, 5)) * np.tri(5)[:, None]  # all that is hidden: rounding
    trace = Trace.from_weights(list("abcde"), list("abcde"), heads)
    trace = trace.model_copy(update={"sites": [trace.site().model_copy(update={"query_side": "source"})]})
    assert "are not drawn: 0% of a word" in texts(arcs_figure(trace, ViewOptions()))[-1].replace("\n", " ")


def test_arcs_of_an_encoder_have_no_surprisal_and_go_both_ways(transformer_trace: Trace) -> None:
    figure = arcs_figure(transformer_trace, ViewOptions(site="enc.0.self"))
    words = "the black cat sees a dog".split()
    *labels, legend = texts(figure)
    assert labels == words, "no numbers: the model predicts its output, not its input"
    assert "surprisal" not in legend
    assert "later words" in legend.replace("\n", " ")
    arcs = figure.axes[0].patches
    assert all(arc.height > 0 for arc in arcs)  # type: ignore[attr-defined]
    below = [arc for arc in arcs if arc.theta1 == 180]  # type: ignore[attr-defined]
    assert 0 < len(below) < len(arcs)
    assert all(arc.center[1] < -4 for arc in below), "below the words, not through them"  # type: ignore[attr-defined]


def test_arcs_of_a_decoder_have_surprisals_and_go_to_earlier_words(transformer_trace: Trace) -> None:
    figure = arcs_figure(transformer_trace, ViewOptions(site="dec.0.self"))
    shown = texts(figure)
    assert "attention of each word to earlier words" in shown[-1].replace("\n", " ")
    assert f"{-transformer_trace.steps[0].logp / np.log(2):.1f}" in shown
    assert all(arc.theta1 == 0 for arc in figure.axes[0].patches)  # type: ignore[attr-defined]


# words


def test_figures_split_punctuation_and_leave_out_end_tokens() -> None:
    (axes, *_) = alignment_figure(piece_trace(), ViewOptions()).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["old", "chair", "."]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["La", "vieille", "chaise", "."]
    assert "not shown: 25% of the weight, on start and end tokens" in [text.get_text() for text in axes.texts]
    (axes, *_) = alignment_figure(piece_trace(), ViewOptions(specials=True)).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["old", "chair", ".", "</s>"]
    assert not [text.get_text() for text in axes.texts if "not shown" in text.get_text()]


def test_pieces_are_shown_without_the_mark_of_the_vocabulary() -> None:
    (axes, *_) = alignment_figure(piece_trace(), ViewOptions(words=False)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["La", "vie", "…ille", "chaise", "."]


def test_show_takes_special_tokens_into_a_figure_when_asked(tmp_path: Path) -> None:
    piece_trace().save(tmp_path / "t.json")
    for options, shown in (((), False), (("--special-tokens",), True)):
        assert heedful("show", tmp_path / "t.json", "-o", tmp_path / "f.svg", *options).returncode == 0
        assert ("&lt;/s&gt;" in (tmp_path / "f.svg").read_text(encoding="utf-8")) is shown
    assert "</s>" in heedful("show", tmp_path / "t.json").stdout
    assert "</s>" not in heedful("show", tmp_path / "t.json", "--no-special-tokens").stdout


def test_an_output_that_ends_at_once_is_still_drawn(tmp_path: Path) -> None:
    draw(Trace.from_weights(["the", "cat"], ["</s>"], [[0.5, 0.5]]), tmp_path / "v.svg")
    assert "&lt;/s&gt;" in (tmp_path / "v.svg").read_text(encoding="utf-8")


def test_words_stand_on_the_axes_of_the_heads(transformer_trace: Trace) -> None:
    figure = heads_figure(transformer_trace, ViewOptions())
    words = "the black cat sees a dog".split()
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == words
    rows = transformer_trace.table(specials=False).rows
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == rows
    many = [f"w{i}" for i in range(90)]
    (axes,) = heads_figure(Trace.from_weights(many, ["a"], np.full((1, 90), 1 / 90)), ViewOptions()).axes
    assert 20 <= len(axes.get_xticklabels()) <= 45, "only as many words as are legible"


# the beam


def test_a_long_beam_continues_in_rows() -> None:
    texts_of_nodes = [*(f"▁w{step}" for step in range(39)), "</s>"]
    nodes = [
        BeamNode(
            id=step, parent=step - 1, step=step, token=5, text=text, logp=-0.1, total_logp=-0.1,
            state="finished" if text == "</s>" else "active",
        )
        for step, text in enumerate(texts_of_nodes)
    ]  # fmt: skip
    tree = BeamTree(beam_size=1, nodes=nodes, best=[39])
    figure = beam_figure(piece_trace().model_copy(update={"beam": tree}), ViewOptions())
    assert figure.get_size_inches()[0] * 150 < 2500
    rows = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert len(rows) == 4
    assert rows[0] == [f"w{i}" for i in range(10)]
    assert rows[1][-1] == "… w9", "the word before, repeated once"
    assert rows[3][-2:] == ["■", "… w29"], "an end token is its mark"
