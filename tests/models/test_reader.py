"""Readers: what they say of a word hangs on the words before it, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.attention import Detail, Watch
from heedful.config import ModelConfig
from heedful.models import Reader, build_reader
from heedful.models.reader import PlainLstm, TapeReader

WORDS, ROWS, STEPS = 23, 3, 7
KINDS: dict[str, dict[str, Any]] = {
    "lstm": {"kind": "lstm", "layers": 2},
    "lstmn": {"kind": "lstmn", "layers": 2},
    "lstmn, zero slot": {"kind": "lstmn", "zero_slot": True, "recall": False},
    "lstmn, output in two steps": {"kind": "lstmn", "common": 9},
    "lstmn, skip": {"kind": "lstmn", "layers": 3, "skip": True},
    "transformer": {"kind": "transformer", "layers": 2},
    "transformer, post, learned": {"kind": "transformer", "norm": "post", "positions": "learned"},
}


def made(kind: str, **more: Any) -> Reader:
    torch.manual_seed(5)
    reader = {"hidden": 8, "heads": 2, "feedforward": 11, **KINDS[kind]}
    config = {"embedding": 8, "dropout": 0.0, "tie": "output", "reader": reader, **more}
    return build_reader(ModelConfig.model_validate(config), WORDS).double().eval()


def text() -> Tensor:
    return torch.randint(4, WORDS, (ROWS, STEPS), generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_sees_a_later_one(kind: str) -> None:
    model, ids = made(kind), text()
    before = model(ids)
    changed = ids.clone()
    changed[:, 4:] = 5
    after = model(changed)
    assert torch.equal(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_see_one_another_nor_padding(kind: str) -> None:
    model, ids = made(kind), text()
    lengths = torch.tensor([7, 4, 1])
    keep = torch.arange(STEPS) < lengths[:, None]
    together = model.output(model.read(ids.masked_fill(~keep, 0), keep).said)
    for row, length in enumerate(lengths.tolist()):
        alone = model(ids[row : row + 1, :length])
        torch.testing.assert_close(together[row : row + 1, :length], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "transformer" not in kind])
def test_a_text_in_windows_is_the_text(kind: str) -> None:
    model, ids = made(kind), text()
    keep = torch.ones_like(ids, dtype=torch.bool)
    state: Any = ()
    said = []
    for first in range(0, STEPS, 3):
        window = slice(first, first + 3)
        read = model.read(ids[:, window], keep[:, window], state)
        state = read.state
        said.append(read.said)
    torch.testing.assert_close(torch.cat(said, dim=1), model.read(ids, keep).said, rtol=0, atol=1e-12)


def test_a_tape_goes_on_with_its_last_slots_only() -> None:
    model, ids = made("lstmn, zero slot"), text()
    keep = torch.ones_like(ids, dtype=torch.bool)
    assert isinstance(model.core, TapeReader)
    model.core.most = 2
    first = model.read(ids[:, :5], keep[:, :5])
    second = model.read(ids[:, 5:], keep[:, 5:], first.state, Watch(Detail.WEIGHTS))
    weights = second.looks["tape.0"].weights
    assert weights is not None
    assert weights.shape[-1] == 1 + 2 + 2  # the zero slot, what was carried, what is new
    assert (weights[:, 0, 0, :3] > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_sites_are_watched_and_sum_to_one(kind: str) -> None:
    model, ids = made(kind), text()
    looks = model.read(ids, torch.ones_like(ids, dtype=torch.bool), watch=Watch(Detail.WEIGHTS)).looks
    assert [site.id for site in model.sites] == list(looks)
    assert model.alignment == (list(looks)[-1] if looks else None)
    for look in looks.values():
        assert look.weights is not None
        sums = look.weights.sum(dim=-1)
        first = 1 if "lstmn" in kind and "zero" not in kind else 0  # an empty tape gives nothing to read
        assert not sums[:, :first].any()
        torch.testing.assert_close(sums[:, first:], torch.ones_like(sums[:, first:]))


@pytest.mark.parametrize(("tie", "width"), [("output", 8), ("output", 6), ("none", 6)])
def test_word_vectors_serve_the_output_where_tied(tie: str, width: int) -> None:
    model = made("lstmn", tie=tie, embedding=width)
    assert (model.output.weight is model.embedding.weight) == (tie == "output")
    assert isinstance(model.out, torch.nn.Linear) == (tie == "output" and width != 8)
    assert model(text()).shape == (ROWS, STEPS, WORDS)


def test_word_dropout_drops_all_of_a_word_everywhere() -> None:
    model = made("lstm")
    model.train()
    model.word_dropout = 0.5
    ids = text().repeat(1, 4)
    given: list[Tensor] = []
    model.dropout.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    model.read(ids, torch.ones_like(ids, dtype=torch.bool))
    gone = ~given[0].any(dim=-1)
    assert gone.any()
    assert not gone.all()
    for word in set(ids.flatten().tolist()):
        assert len(set(gone[ids == word].tolist())) == 1


def test_forget_gates_begin_open() -> None:
    lstm, lstmn = made("lstm").core, made("lstmn").core
    assert isinstance(lstm, PlainLstm)
    assert isinstance(lstmn, TapeReader)
    for bias in (lstm.stack.layers[0].all_weights[0][2], lstmn.stack.cells[0].gates.bias):
        assert (bias[8:16] == 1).all()
        assert not (bias[:8] == 1).any()
