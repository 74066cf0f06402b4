"""The tape of the LSTMN, one set of weights over all earlier hidden states and cells, against the reference."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, close, randomize_parameters, rng
from heedful.attention import AttentionOutput, Hooks, Memory, Override, Tape

BATCH, INPUT, HIDDEN, WIDTH = 3, 2, 5, 7


def randn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def make(recall: bool = True, zero_slot: bool = False) -> Tape:
    return randomize_parameters(Tape(INPUT, HIDDEN, score_width=WIDTH, recall=recall, zero_slot=zero_slot)).double()


def write_tape(tape: Tape, hidden: Tensor, cell: Tensor, keep: Tensor) -> Memory:
    """Return a tape with these slots: (slot, batch, ...)."""
    memory = tape.initial_memory(randn(BATCH, INPUT))
    for h, m, k in zip(hidden, cell, keep, strict=True):
        memory = tape.write(memory, h, m, k)
    return memory


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "no recall"])
@pytest.mark.parametrize("zero_slot", [True, False], ids=["zero slot", "no zero slot"])
@pytest.mark.parametrize("slots", [0, 1, 4])
def test_the_tape_is_additive_attention_over_its_slots(slots: int, zero_slot: bool, recall: bool) -> None:
    tape = make(recall, zero_slot)
    x, summary = randn(BATCH, INPUT, seed=2), randn(BATCH, HIDDEN, seed=3)
    hidden, cell = randn(slots, BATCH, HIDDEN, seed=4), randn(slots, BATCH, HIDDEN, seed=5)
    keep = torch.rand(slots, BATCH, generator=rng(6)) < 0.7
    keep[:, 1] = False  # one sentence has no readable slot
    h_summary, m_summary, output = tape(x, write_tape(tape, hidden, cell, keep), summary, FULL)
    p = {name: parameter.tolist() for name, parameter in tape.attention.score.named_parameters()}
    assert output.weights is not None
    for b in range(BATCH):
        zeros = [[0.0] * HIDDEN] * zero_slot
        hs, ms = zeros + hidden[:, b].tolist(), zeros + cell[:, b].tolist()
        query = x[b].tolist() + (summary[b].tolist() if recall else [])
        scores = reference.additive(query, hs, p["query.weight"], p["key.weight"], p["v"])
        weights = reference.softmax(scores, [True] * zero_slot + keep[:, b].tolist())
        close(output.weights[b, 0, 0], weights)
        close(h_summary[b], reference.context(weights, hs) or [0.0] * HIDDEN)
        close(m_summary[b], reference.context(weights, ms) or [0.0] * HIDDEN)


def test_an_empty_tape_gives_zeros_and_no_weights() -> None:
    tape = make()
    x, summary = randn(BATCH, INPUT).requires_grad_(), randn(BATCH, HIDDEN)
    hidden, cell, output = tape(x, tape.initial_memory(x), summary, FULL)
    assert output.weights is not None
    assert output.weights.shape == (BATCH, 1, 1, 0)
    for summary_part in (hidden, cell):
        assert torch.equal(summary_part, torch.zeros(BATCH, HIDDEN, dtype=torch.float64))


def test_the_zero_slot_takes_weight_at_later_steps_too() -> None:
    """In the released code the tape begins with (h0, c0), which is never removed."""
    tape = make(zero_slot=True)
    plain = make(zero_slot=False)
    x, summary = randn(BATCH, INPUT), randn(BATCH, HIDDEN)
    kept = torch.ones(3, BATCH, dtype=torch.bool)
    slots = (randn(3, BATCH, HIDDEN), randn(3, BATCH, HIDDEN, seed=2), kept)
    with_slot, without = write_tape(tape, *slots), write_tape(plain, *slots)
    summary_h, _, output = tape(x, with_slot, summary, FULL)
    own, _, _ = plain(x, without, summary)
    assert output.weights is not None
    share = output.weights[:, 0, 0, 0]
    assert ((share > 0.01) & (share < 0.99)).all()
    close(summary_h, own * (1 - share[:, None]), 1e-12)  # the same summary, less the weight of the slot


def test_without_recall_the_previous_summary_has_no_influence() -> None:
    x = randn(BATCH, INPUT)
    slots = (randn(3, BATCH, HIDDEN), randn(3, BATCH, HIDDEN, seed=2), torch.ones(3, BATCH, dtype=torch.bool))
    for recall in (True, False):
        tape = make(recall)
        memory = write_tape(tape, *slots)
        one, other = (tape(x, memory, randn(BATCH, HIDDEN, seed=seed))[0] for seed in (8, 9))
        assert torch.equal(one, other) != recall


def test_writing_does_not_change_the_earlier_tape() -> None:
    tape = make()
    first = tape.write(tape.initial_memory(randn(BATCH, INPUT)), randn(BATCH, HIDDEN), randn(BATCH, HIDDEN))
    keys = first.keys.clone()
    second = tape.write(first, randn(BATCH, HIDDEN, seed=4), randn(BATCH, HIDDEN, seed=5))
    assert torch.equal(first.keys, keys)
    assert first.keep.shape == (BATCH, 1)
    assert second.keep.tolist() == [[True, True]] * BATCH
    assert torch.equal(second.keys[:, :1], keys)


def test_a_tape_can_be_recorded_and_edited() -> None:
    tape = Tape(INPUT, HIDDEN, site="language_model.max_tape").double()
    assert tape.attention.site == ("language_model.max_tape", "tape", 1, "one")
    x, summary = randn(BATCH, INPUT), randn(BATCH, HIDDEN)
    hidden, cell = randn(2, BATCH, HIDDEN), randn(2, BATCH, HIDDEN, seed=2)
    memory = write_tape(tape, hidden, cell, torch.ones(2, BATCH, dtype=torch.bool))

    def edit(site: str, output: AttentionOutput, positions: Tensor) -> Override:
        assert site == "language_model.max_tape"
        return Override(torch.tensor([0.0, 1.0], dtype=torch.float64).expand(BATCH, 1, 1, 2))

    read_h, read_m, output = tape(x, memory, summary, Hooks(edit=edit))
    assert output.weights is None
    close(read_h, hidden[1], 1e-14)
    close(read_m, cell[1], 1e-14)
