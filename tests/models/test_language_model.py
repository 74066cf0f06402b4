"""Language models: a prediction depends on the words before it, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention import Detail, Hooks
from heedful.config import ModelConfig
from heedful.models import LanguageModel, build_language_model
from heedful.models.language_model import LSTMCore, LSTMNCore

VOCABULARY, ROWS, STEPS = 23, 3, 7
KINDS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "layers": 2},
    "lstmn": {"kind": "lstmn", "layers": 2},
    "lstmn, zero slot": {"kind": "lstmn", "zero_slot": True, "recall": False},
    "lstmn, two-level output": {"kind": "lstmn", "shortlist": 9},
    "lstmn, skip": {"kind": "lstmn", "layers": 3, "skip": True},
    "transformer": {"kind": "transformer", "layers": 2},
    "transformer, post-norm, learned positions": {"kind": "transformer", "norm": "post", "positions": "learned"},
}


def build_model(kind: str, **changes: Any) -> LanguageModel:
    torch.manual_seed(5)
    language_model = {"hidden": 8, "heads": 2, "feedforward": 11, **KINDS[kind]}
    config = {"embedding": 8, "dropout": 0.0, "tie_embeddings": "output", "language_model": language_model, **changes}
    return build_language_model(ModelConfig.model_validate(config), VOCABULARY).double().eval()


def make_text() -> Tensor:
    return torch.randint(4, VOCABULARY, (ROWS, STEPS), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("kind", KINDS)
def test_no_prediction_depends_on_a_later_word(kind: str) -> None:
    model, ids = build_model(kind), make_text()
    before = model.logits(ids)
    changed_ids = ids.clone()
    changed_ids[:, 4:] = 5
    after = model.logits(changed_ids)
    assert torch.equal(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_a_batch_are_independent_of_each_other_and_of_padding(kind: str) -> None:
    model, ids = build_model(kind), make_text()
    lengths = torch.tensor([7, 4, 1])
    keep = torch.arange(STEPS) < lengths[:, None]
    in_batch = model.output(model(ids.masked_fill(~keep, 0), keep).features)
    for row, length in enumerate(lengths.tolist()):
        alone = model.logits(ids[row : row + 1, :length])
        torch.testing.assert_close(in_batch[row : row + 1, :length], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "transformer" not in kind])
def test_a_text_can_be_run_in_windows(kind: str) -> None:
    model, ids = build_model(kind), make_text()
    keep = torch.ones_like(ids, dtype=torch.bool)
    state: Any = ()
    features = []
    for first in range(0, STEPS, 3):
        window = slice(first, first + 3)
        output = model(ids[:, window], keep[:, window], state)
        state = output.state
        features.append(output.features)
    torch.testing.assert_close(torch.cat(features, dim=1), model(ids, keep).features, rtol=0, atol=1e-12)


def test_a_tape_continues_with_its_last_slots() -> None:
    model, ids = build_model("lstmn, zero slot"), make_text()
    keep = torch.ones_like(ids, dtype=torch.bool)
    assert isinstance(model.core, LSTMNCore)
    model.core.max_tape = 2
    first = model(ids[:, :5], keep[:, :5])
    second = model(ids[:, 5:], keep[:, 5:], first.state, Hooks(Detail.WEIGHTS))
    weights = second.attentions["tape.0"].weights
    assert weights is not None
    assert weights.shape[-1] == 1 + 2 + 2  # the zero slot, the slots that continue, the new ones
    assert (weights[:, 0, 0, :3] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_every_site_sum_to_one(kind: str) -> None:
    model, ids = build_model(kind), make_text()
    attentions = model(ids, torch.ones_like(ids, dtype=torch.bool), hooks=Hooks(Detail.WEIGHTS)).attentions
    assert [site.id for site in model.sites] == list(attentions)
    assert model.alignment_site == (list(attentions)[-1] if attentions else None)
    for attention in attentions.values():
        assert attention.weights is not None
        sums = attention.weights.sum(dim=-1)
        first = 1 if "lstmn" in kind and "zero" not in kind else 0  # an empty tape has no slot
        assert not sums[:, :first].any()
        torch.testing.assert_close(sums[:, first:], torch.ones_like(sums[:, first:]))


@pytest.mark.parametrize(("tie", "width"), [("output", 8), ("output", 6), ("none", 6)])
def test_the_output_layer_is_tied_to_the_embedding(tie: str, width: int) -> None:
    model = build_model("lstmn", tie_embeddings=tie, embedding=width)
    assert (model.output.weight is model.embedding.weight) == (tie == "output")
    assert isinstance(model.output_projection, torch.nn.Linear) == (tie == "output" and width != 8)
    assert model.logits(make_text()).shape == (ROWS, STEPS, VOCABULARY)


def test_word_dropout_drops_all_occurrences_of_a_word() -> None:
    model = build_model("lstm")
    model.train()
    model.word_dropout = 0.5
    ids = make_text().repeat(1, 4)
    inputs_of_dropout: list[Tensor] = []
    model.dropout.register_forward_pre_hook(lambda _, inputs: inputs_of_dropout.append(inputs[0]))
    model(ids, torch.ones_like(ids, dtype=torch.bool))
    dropped = ~inputs_of_dropout[0].any(dim=-1)
    assert dropped.any()
    assert not dropped.all()
    for word in set(ids.flatten().tolist()):
        assert len(set(dropped[ids == word].tolist())) == 1


def test_forget_gates_start_open() -> None:
    lstm, lstmn = build_model("lstm").core, build_model("lstmn").core
    assert isinstance(lstm, LSTMCore)
    assert isinstance(lstmn, LSTMNCore)
    for bias in (lstm.rnn.layers[0].all_weights[0][2], lstmn.lstmn.cells[0].gates.bias):
        assert (bias[8:16] == 1).all()
        assert not (bias[:8] == 1).any()
