"""The LSTMN's tape: one set of weights over every earlier hidden state and cell, against the oracle."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attention import reference
from attention.helpers import FULL, close, enliven, rng
from heedful.attention import Look, Memory, Override, Tape, Watch

BATCH, INPUT, HIDDEN, WIDTH = 3, 2, 5, 7


def randn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=rng(seed), dtype=torch.float64)


def make(recall: bool = True, zero_slot: bool = False) -> Tape:
    return enliven(Tape(INPUT, HIDDEN, width=WIDTH, recall=recall, zero_slot=zero_slot)).double()


def written(tape: Tape, hidden: Tensor, cell: Tensor, keep: Tensor) -> Memory:
    """A tape with these slots: (slot, batch, ...)."""
    memory = tape.start(randn(BATCH, INPUT))
    for h, m, k in zip(hidden, cell, keep, strict=True):
        memory = tape.write(memory, h, m, k)
    return memory


@pytest.mark.parametrize("recall", [True, False], ids=["recall", "no recall"])
@pytest.mark.parametrize("zero_slot", [True, False], ids=["zero slot", "no zero slot"])
@pytest.mark.parametrize("slots", [0, 1, 4])
def test_a_read_is_additive_attention_over_what_was_written(
    slots: int, zero_slot: bool, recall: bool
) -> None:
    tape = make(recall, zero_slot)
    x, summary = randn(BATCH, INPUT, seed=2), randn(BATCH, HIDDEN, seed=3)
    hidden, cell = randn(slots, BATCH, HIDDEN, seed=4), randn(slots, BATCH, HIDDEN, seed=5)
    keep = torch.rand(slots, BATCH, generator=rng(6)) < 0.7
    keep[:, 1] = False  # one sentence has written nothing that may be read
    found_h, found_m, look = tape.read(x, written(tape, hidden, cell, keep), summary, FULL)
    p = {name: parameter.tolist() for name, parameter in tape.attention.score.named_parameters()}
    assert look.weights is not None
    for b in range(BATCH):
        zeros = [[0.0] * HIDDEN] * zero_slot
        hs, ms = zeros + hidden[:, b].tolist(), zeros + cell[:, b].tolist()
        query = x[b].tolist() + (summary[b].tolist() if recall else [])
        scores = reference.additive(query, hs, p["query.weight"], p["key.weight"], p["v"])
        weights = reference.softmax(scores, [True] * zero_slot + keep[:, b].tolist())
        close(look.weights[b, 0, 0], weights)
        close(found_h[b], reference.context(weights, hs) or [0.0] * HIDDEN)
        close(found_m[b], reference.context(weights, ms) or [0.0] * HIDDEN)


def test_an_empty_tape_reads_zeros_and_looks_at_nothing() -> None:
    tape = make()
    x, summary = randn(BATCH, INPUT).requires_grad_(), randn(BATCH, HIDDEN)
    hidden, cell, look = tape.read(x, tape.start(x), summary, FULL)
    assert look.weights is not None
    assert look.weights.shape == (BATCH, 1, 1, 0)
    for read in (hidden, cell):
        assert torch.equal(read, torch.zeros(BATCH, HIDDEN, dtype=torch.float64))


def test_the_zero_slot_takes_mass_at_later_steps_too() -> None:
    """papers 6: the released code's tape starts with (h0, c0), and it is never taken off again."""
    tape = make(zero_slot=True)
    plain = make(zero_slot=False)
    x, summary = randn(BATCH, INPUT), randn(BATCH, HIDDEN)
    kept = torch.ones(3, BATCH, dtype=torch.bool)
    slots = (randn(3, BATCH, HIDDEN), randn(3, BATCH, HIDDEN, seed=2), kept)
    with_slot, without = written(tape, *slots), written(plain, *slots)
    read, _, look = tape.read(x, with_slot, summary, FULL)
    own, _, _ = plain.read(x, without, summary)
    assert look.weights is not None
    share = look.weights[:, 0, 0, 0]
    assert ((share > 0.01) & (share < 0.99)).all()
    close(read, own * (1 - share[:, None]), 1e-12)  # the same reading, thinned by what the slot took


def test_without_recall_the_previous_summary_is_not_asked() -> None:
    x = randn(BATCH, INPUT)
    slots = (randn(3, BATCH, HIDDEN), randn(3, BATCH, HIDDEN, seed=2), torch.ones(3, BATCH, dtype=torch.bool))
    for recall in (True, False):
        tape = make(recall)
        memory = written(tape, *slots)
        one, other = (tape.read(x, memory, randn(BATCH, HIDDEN, seed=seed))[0] for seed in (8, 9))
        assert torch.equal(one, other) != recall


def test_writing_leaves_the_earlier_tape_as_it_was() -> None:
    tape = make()
    first = tape.write(tape.start(randn(BATCH, INPUT)), randn(BATCH, HIDDEN), randn(BATCH, HIDDEN))
    keys = first.keys.clone()
    second = tape.write(first, randn(BATCH, HIDDEN, seed=4), randn(BATCH, HIDDEN, seed=5))
    assert torch.equal(first.keys, keys)
    assert first.keep.shape == (BATCH, 1)
    assert second.keep.tolist() == [[True, True]] * BATCH
    assert torch.equal(second.keys[:, :1], keys)


def test_a_tape_is_a_site_that_can_be_watched_and_edited() -> None:
    tape = Tape(INPUT, HIDDEN, site="reader.tape").double()
    assert tape.attention.site == ("reader.tape", "tape", 1, "one")
    x, summary = randn(BATCH, INPUT), randn(BATCH, HIDDEN)
    hidden, cell = randn(2, BATCH, HIDDEN), randn(2, BATCH, HIDDEN, seed=2)
    memory = written(tape, hidden, cell, torch.ones(2, BATCH, dtype=torch.bool))

    def edit(site: str, look: Look, at: Tensor) -> Override:
        assert site == "reader.tape"
        return Override(torch.tensor([0.0, 1.0], dtype=torch.float64).expand(BATCH, 1, 1, 2))

    read_h, read_m, look = tape.read(x, memory, summary, Watch(edit=edit))
    assert look.weights is None
    close(read_h, hidden[1], 1e-14)
    close(read_m, cell[1], 1e-14)
