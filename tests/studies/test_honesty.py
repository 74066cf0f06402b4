"""The honesty tests on a toy whose every number is known, and on real models against single edits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
import torch
from torch import Generator, Tensor

import small
from heedful.config import DecodingConfig
from heedful.evaluation.divergence import jsd, tvd
from heedful.studies.honesty import (
    _median_change,
    correlation,
    counterfactual,
    erasure,
    permutation,
    uniform,
)
from heedful.studies.probe import Corpus, chosen_steps, saliency, scored, text_probes
from heedful.tasks.text import TextModel, answer
from heedful.tasks.tracing import Wanted, trace_line
from heedful.trace import edit_of

LINES = ["the red cat sees a small dog", "she eats the fish", "a black dog sleeps"]


VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
ALIKE = torch.ones(3, 2, dtype=torch.float64)


@dataclass(frozen=True)
class Toy:
    """`p = softmax(c diag(1, 2))`, `c = a V`: the vectors of the definitions."""

    values: Tensor = VALUES

    @property
    def weights(self) -> Tensor:
        return torch.tensor([[[2.0, 1.0, 0.0]]], dtype=torch.float64).softmax(-1)

    @property
    def open(self) -> Tensor:
        return torch.ones(1, 3, dtype=torch.bool)

    valid = open

    def outcome(self, weights: Tensor) -> Tensor:
        scale = torch.tensor([1.0, 2.0], dtype=torch.float64)
        return (weights[:, :, 0].double() @ self.values * scale).softmax(dim=-1)

    @property
    def p(self) -> Tensor:
        return self.outcome(self.weights[:, None])[:, 0]


def test_divergences_have_their_published_values() -> None:
    p, q = (torch.tensor(x, dtype=torch.float64) for x in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]))
    assert float(jsd(p, q)) == pytest.approx(0.25310161544280674, abs=1e-12)
    assert float(tvd(p, q)) == pytest.approx(0.6)
    one, other = torch.eye(2, dtype=torch.float64)
    assert float(jsd(one, other)) == pytest.approx(0.6931471805599453)


def test_the_toy_itself() -> None:
    toy = Toy()
    assert toy.weights.flatten().tolist() == pytest.approx([0.665241, 0.244728, 0.090031], abs=1e-6)
    assert toy.p.flatten().tolist() == pytest.approx([0.521425, 0.478575], abs=1e-6)


def test_permutation() -> None:
    every = torch.tensor([list(permutations(range(3)))])
    assert float(_median_change(Toy(), every)) == pytest.approx(0.216110, abs=1e-6)
    drawn = float(permutation(Toy(), Generator().manual_seed(1)))
    assert 0.16 < drawn < 0.27


def test_uniform() -> None:
    assert float(uniform(Toy())) == pytest.approx(0.182182, abs=1e-6)


def test_erasure() -> None:
    found = erasure(Toy(), Generator().manual_seed(1))
    toy = Toy()
    rest = toy.weights.clone()
    rest[..., 0] = 0
    alone = toy.outcome((rest / rest.sum())[:, None])[:, 0]
    assert alone.flatten().tolist() == pytest.approx([0.150452, 0.849548], abs=1e-6)
    assert float(jsd(alone, toy.p)) == pytest.approx(0.0804440694, abs=1e-8)
    assert found.flips_best.tolist() == [True]
    assert found.share["weight"].tolist() == pytest.approx([1 / 3]), "the first of three flips it"
    assert float(found.best_weight) > 0


def test_what_never_changes_is_no_number() -> None:
    """Values all alike: whatever is read, the outcome is the same."""
    found = erasure(Toy(ALIKE), Generator().manual_seed(1))
    assert found.share["weight"].isnan().all()
    assert found.flips_best.tolist() == [False]


def test_a_counterfactual_is_found_where_the_outcome_cannot_tell() -> None:
    alike = Toy(ALIKE)
    free = counterfactual(alike, Generator().manual_seed(1), steps=300)
    assert float(free.divergence) > 0.4, "anything goes"
    bound = counterfactual(Toy(), Generator().manual_seed(1), steps=300)
    assert float(bound.divergence) < float(free.divergence)


def test_correlation() -> None:
    up = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert correlation([up, up], [up, up.flip(0)]).mean == pytest.approx(0.0)
    assert correlation([up], [up * 2]).mean == pytest.approx(1.0)
    assert correlation([up[:2]], [up[:2]]).decisions == 0


def corpus_of(opened: TextModel) -> Corpus:
    found = answer(opened.model, LINES, opened.words, DecodingConfig(max_length=7))
    return Corpus([opened.words.source.encode(line) for line in LINES], [h[0].tokens for h in found])


@pytest.mark.parametrize("preset", ["cgru", "luong", "rnnsearch", "transformer", "conv-conv", "abs"])
def test_a_probe_answers_as_a_single_edit_does(tmp_path: Path, preset: str) -> None:
    opened = small.folder(tmp_path / "m", small.preset(preset))
    corpus = corpus_of(opened)
    how = DecodingConfig(max_length=7)
    steps = [{min(1, len(w) - 2)} if len(w) > 1 else {0} for w in corpus.written]
    for probe in text_probes(opened.model, corpus, steps):
        given = torch.zeros(len(probe.p), 1, probe.weights.shape[1], probe.weights.shape[2])
        given[..., 0] = 1.0
        with torch.no_grad():
            found = probe.outcome(given)[:, 0]
        for row, sentence in enumerate(probe.sentences):
            parent = trace_line(opened, Wanted(LINES[sentence], "weights"), how)
            own = parent.steps[probe.step]
            assert probe.p[row].max().log().item() == pytest.approx(own.top[0].logp, abs=1e-4)
            edit = edit_of(f"onehot:step={probe.step},position=0")
            wanted = Wanted(LINES[sentence], "weights", edits=[edit], parent=parent)
            top = trace_line(opened, wanted, how).steps[probe.step].top[0]
            assert top.id is not None
            assert found[row, top.id].log().item() == pytest.approx(top.logp, abs=1e-4)


@pytest.mark.parametrize("changes", [{}, {"copying": True, "tie": "all"}])
def test_sources_are_scored_behind_their_prefixes(tmp_path: Path, changes: dict[str, object]) -> None:
    opened = small.folder(tmp_path / "m", small.preset("cgru", **changes))
    corpus = corpus_of(opened)
    p = scored(opened.model, corpus, [(row, 2) for row in range(len(LINES))], corpus.sources)
    for row, line in enumerate(LINES):
        trace = trace_line(opened, Wanted(line, "weights"), DecodingConfig(max_length=7))
        if len(trace.steps) > 2:
            assert p[row].max().log().item() == pytest.approx(trace.steps[2].top[0].logp, abs=1e-4)


def test_saliency_is_the_gradient_with_the_weights_held(tmp_path: Path) -> None:
    """Against differences: x moved a little, weights kept by an edit."""
    opened = small.folder(tmp_path / "m", small.preset("bigru-gru"))
    model = opened.model.double()
    corpus = corpus_of(opened)
    (found,) = saliency(model, corpus, [(0, 1)])
    assert float(found.sum()) == pytest.approx(1.0)
    assert len(found) == len(corpus.sources[0])
    assert (found >= 0).all()
    both = saliency(model, corpus, [(0, 1), (1, 0), (0, 0)])
    assert torch.allclose(both[0], found), "in company or alone"


def test_steps_are_drawn_and_the_end_is_none(tmp_path: Path) -> None:
    corpus = Corpus([[5, 3]] * 2, [(4, 5, 6, 7, 3), (3,)])
    first, second = chosen_steps(corpus, 2, seed=1)
    assert len(first) == 2
    assert max(first) < 4
    assert second == {0}
