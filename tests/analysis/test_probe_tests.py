"""Faithfulness tests on a toy probe with known values, and probes of real models against single edits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
import torch
from torch import Generator, Tensor

import small_models
from heedful.analysis.probe_tests import (
    correlation,
    counterfactual,
    erasure,
    median_change,
    permutation,
    uniform,
)
from heedful.config import DecodingOptions
from heedful.metrics.divergence import jsd, tvd
from heedful.tasks.base import TraceRequest
from heedful.tasks.generation_probes import (
    GeneratedCorpus,
    next_word_probes,
    predict_from,
    sample_steps,
    source_saliency,
)
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.predict import search_lines
from heedful.tasks.seq2seq.trace import trace_line
from heedful.trace.edits import parse_edit

LINES = ["the red cat sees a small dog", "she eats the fish", "a black dog sleeps"]


VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
EQUAL_VALUES = torch.ones(3, 2, dtype=torch.float64)


@dataclass(frozen=True)
class ToyProbe:
    """`p = softmax(c diag(1, 2))` with `c = a V`: one decision over three positions."""

    values: Tensor = VALUES

    @property
    def weights(self) -> Tensor:
        return torch.tensor([[[2.0, 1.0, 0.0]]], dtype=torch.float64).softmax(-1)

    @property
    def readable(self) -> Tensor:
        return torch.ones(1, 3, dtype=torch.bool)

    valid = readable

    def predict(self, weights: Tensor) -> Tensor:
        scale = torch.tensor([1.0, 2.0], dtype=torch.float64)
        return (weights[:, :, 0].double() @ self.values * scale).softmax(dim=-1)

    @property
    def probabilities(self) -> Tensor:
        return self.predict(self.weights[:, None])[:, 0]


class ProbeOfTwoLengths(ToyProbe):
    """Two decisions, the first over two positions, the second over three."""

    @property
    def weights(self) -> Tensor:
        return torch.tensor([[[0.6, 0.4, 0.0]], [[0.5, 0.3, 0.2]]], dtype=torch.float64)

    @property
    def readable(self) -> Tensor:
        return torch.tensor([[True, True, False], [True, True, True]])


def test_divergences_have_their_published_values() -> None:
    p, q = (torch.tensor(x, dtype=torch.float64) for x in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7]))
    assert float(jsd(p, q)) == pytest.approx(0.25310161544280674, abs=1e-12)
    assert float(tvd(p, q)) == pytest.approx(0.6)
    first, second = torch.eye(2, dtype=torch.float64)
    assert float(jsd(first, second)) == pytest.approx(0.6931471805599453)


def test_the_toy_probe_has_the_values_computed_by_hand() -> None:
    toy = ToyProbe()
    assert toy.weights.flatten().tolist() == pytest.approx([0.665241, 0.244728, 0.090031], abs=1e-6)
    assert toy.probabilities.flatten().tolist() == pytest.approx([0.521425, 0.478575], abs=1e-6)


def test_permutation_is_the_median_over_permutations() -> None:
    every = torch.tensor([list(permutations(range(3)))])
    assert float(median_change(ToyProbe(), every)) == pytest.approx(0.216110, abs=1e-6)
    sampled = float(permutation(ToyProbe(), Generator().manual_seed(1)))
    assert 0.16 < sampled < 0.27


def test_uniform_weights_have_the_effect_computed_by_hand() -> None:
    assert float(uniform(ToyProbe())) == pytest.approx(0.182182, abs=1e-6)


def test_erasing_the_largest_weight_flips_the_decision() -> None:
    result = erasure(ToyProbe(), Generator().manual_seed(1))
    toy = ToyProbe()
    others = toy.weights.clone()
    others[..., 0] = 0
    without_largest = toy.predict((others / others.sum())[:, None])[:, 0]
    assert without_largest.flatten().tolist() == pytest.approx([0.150452, 0.849548], abs=1e-6)
    assert float(jsd(without_largest, toy.probabilities)) == pytest.approx(0.0804440694, abs=1e-8)
    assert result.largest_flips.tolist() == [True]
    assert result.fraction_erased["weight"].tolist() == pytest.approx([1 / 3]), "the first of three flips it"
    assert float(result.weight_difference) > 0


def test_gradients_order_positions_by_their_size_not_their_sign() -> None:
    """The second position opposes the decision most, so by gradient it is erased first, which flips nothing."""
    opposed = torch.tensor([[1.0, 0.0], [0.0, 0.75], [0.0, 0.05]], dtype=torch.float64)
    fractions = erasure(ToyProbe(opposed), Generator().manual_seed(1)).fraction_erased
    assert float(fractions["gradient"]) == pytest.approx(2 / 3)
    assert float(fractions["weight"]) == pytest.approx(1 / 3)
    assert float(fractions["gradient_x_weight"]) == pytest.approx(1 / 3)


def test_a_decision_that_never_flips_has_no_fraction() -> None:
    """With equal values, the outcome does not depend on the weights."""
    result = erasure(ToyProbe(EQUAL_VALUES), Generator().manual_seed(1))
    assert result.fraction_erased["weight"].isnan().all()
    assert result.largest_flips.tolist() == [False]


def test_the_last_readable_weight_is_never_erased() -> None:
    """Without any weight the toy's decision would flip, so a shorter decision must stop before the longer one."""
    fractions = erasure(ProbeOfTwoLengths(EQUAL_VALUES), Generator().manual_seed(1)).fraction_erased
    assert all(bool(fraction.isnan().all()) for fraction in fractions.values())


def test_counterfactual_weights_are_found_if_the_outcome_does_not_depend_on_them() -> None:
    equal = ToyProbe(EQUAL_VALUES)
    free = counterfactual(equal, Generator().manual_seed(1), steps=300)
    assert float(free.divergence) > 0.4
    bound = counterfactual(ToyProbe(), Generator().manual_seed(1), steps=300)
    assert float(bound.divergence) < float(free.divergence)


def test_correlation_is_kendalls_tau() -> None:
    rising = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert correlation([rising, rising], [rising, rising.flip(0)]).mean == pytest.approx(0.0)
    assert correlation([rising], [rising * 2]).mean == pytest.approx(1.0)
    assert correlation([rising[:2]], [rising[:2]]).decisions == 0


def generate_corpus(loaded: LoadedSeq2Seq) -> GeneratedCorpus:
    hypotheses = search_lines(loaded.model, LINES, loaded.assets, DecodingOptions(max_length=7))
    return GeneratedCorpus([loaded.assets.source.encode(line) for line in LINES], [h[0].tokens for h in hypotheses])


@pytest.mark.parametrize("preset", ["cgru", "luong", "rnnsearch", "transformer", "conv-conv", "abs"])
def test_a_probe_predicts_what_a_single_edit_gives(tmp_path: Path, preset: str) -> None:
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset(preset))
    corpus = generate_corpus(loaded)
    options = DecodingOptions(max_length=7)
    steps = [{min(1, len(w) - 2)} if len(w) > 1 else {0} for w in corpus.outputs]
    for probe in next_word_probes(loaded.model, corpus, steps):
        one_hot = torch.zeros(len(probe.probabilities), 1, probe.weights.shape[1], probe.weights.shape[2])
        one_hot[..., 0] = 1.0
        with torch.no_grad():
            predicted = probe.predict(one_hot)[:, 0]
        for row, sentence in enumerate(probe.items):
            parent = trace_line(loaded, TraceRequest(LINES[sentence], "weights"), options)
            step = parent.steps[probe.step]
            assert probe.probabilities[row].max().log().item() == pytest.approx(step.top[0].logp, abs=1e-4)
            edit = parse_edit(f"onehot:step={probe.step},position=0")
            request = TraceRequest(LINES[sentence], "weights", edits=[edit], parent=parent)
            top = trace_line(loaded, request, options).steps[probe.step].top[0]
            assert top.id is not None
            assert predicted[row, top.id].log().item() == pytest.approx(top.logp, abs=1e-4)


@pytest.mark.parametrize("changes", [{}, {"copying": True, "tie_embeddings": "all"}])
def test_predictions_from_a_source_use_the_generated_prefix(tmp_path: Path, changes: dict[str, object]) -> None:
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset("cgru", **changes))
    corpus = generate_corpus(loaded)
    p = predict_from(loaded.model, corpus, [(row, 2) for row in range(len(LINES))], corpus.sources)
    for row, line in enumerate(LINES):
        trace = trace_line(loaded, TraceRequest(line, "weights"), DecodingOptions(max_length=7))
        if len(trace.steps) > 2:
            assert p[row].max().log().item() == pytest.approx(trace.steps[2].top[0].logp, abs=1e-4)


def test_saliency_sums_to_one_and_does_not_depend_on_the_batch(tmp_path: Path) -> None:
    loaded = small_models.random_model_folder(tmp_path / "m", small_models.small_preset("bigru-gru"))
    model = loaded.model.double()
    corpus = generate_corpus(loaded)
    (single,) = source_saliency(model, corpus, [(0, 1)])
    assert float(single.sum()) == pytest.approx(1.0)
    assert len(single) == len(corpus.sources[0])
    assert (single >= 0).all()
    batched = source_saliency(model, corpus, [(0, 1), (1, 0), (0, 0)])
    assert torch.allclose(batched[0], single)


def test_sampled_steps_never_include_the_end_token(tmp_path: Path) -> None:
    corpus = GeneratedCorpus([[5, 3]] * 2, [(4, 5, 6, 7, 3), (3,)])
    first, second = sample_steps(corpus, 2, seed=1)
    assert len(first) == 2
    assert max(first) < 4
    assert second == {0}


def test_source_saliency_equals_finite_differences(tmp_path: Path) -> None:
    """`x . dP/dx` by scaling each embedding a little; uniform weights do not depend on it."""
    config = small_models.small_preset("bigru-gru", attention__placement="uniform")
    loaded = small_models.random_model_folder(tmp_path / "m", config)
    model = loaded.model.double()
    corpus = generate_corpus(loaded)
    (saliency,) = source_saliency(model, corpus, [(0, 1)])
    generated = corpus.outputs[0][1]
    embedding = model.embedding.weight

    def probability() -> float:
        return float(predict_from(model, corpus, [(0, 1)], [corpus.sources[0]])[0, generated])

    differences = []
    for token in corpus.sources[0]:  # each word occurs once
        with torch.no_grad():
            row = embedding[token].clone()
            embedding[token] = row * (1 + 1e-5)
            up = probability()
            embedding[token] = row * (1 - 1e-5)
            down = probability()
            embedding[token] = row
        differences.append(abs(up - down))
    assert saliency.tolist() == pytest.approx([value / sum(differences) for value in differences], abs=1e-4)
