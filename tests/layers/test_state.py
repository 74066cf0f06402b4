"""The decoder's state: selecting rows and sentences, expanding to a beam, joining steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small_models
from heedful.attention import NO_HOOKS, Detail, Hooks, Memory
from heedful.layers.state import EncoderOutput, PointerOutput, State, concat_decoder_outputs, identity_output, step_loop

SENTENCES = 3


def make_state() -> State:
    """Each number names its sentence, so that a selection can be read off."""
    numbers = torch.arange(SENTENCES, dtype=torch.float32)
    memory = Memory(numbers.view(-1, 1, 1, 1), numbers.view(-1, 1, 1, 1), torch.ones(SENTENCES, 1, dtype=torch.bool))
    return State(
        {"cross": memory},
        {"self": memory},
        hidden=(numbers[:, None],),
        input_feed=numbers[:, None],
        carry={"cross": {"coverage": numbers.view(-1, 1, 1, 1)}},
        per_sentence={"summary": numbers[:, None]},
        position=4,
    )


def row_values(state: State) -> list[list[float]]:
    """Return what is held per row: hidden state, input feed, cache and carry."""
    assert state.input_feed is not None
    tensors = state.hidden[0], state.input_feed, state.cache["self"].keys, state.carry["cross"]["coverage"]
    return [t.flatten().tolist() for t in tensors]


def test_expanding_repeats_rows_but_not_sentences() -> None:
    state = make_state().expand_to_beam(2)
    assert row_values(state) == [[0, 0, 1, 1, 2, 2]] * 4
    assert state.carry["cross"]["coverage"].shape[:2] == (SENTENCES, 2)
    assert state.memory["cross"].keys.flatten().tolist() == [0, 1, 2]
    assert state.per_sentence["summary"].flatten().tolist() == [0, 1, 2]


def test_rows_are_selected_within_their_sentences() -> None:
    state = make_state().expand_to_beam(2).select(torch.tensor([1, 0, 3, 3, 4, 5]), beam=2)
    assert row_values(state) == [[0, 0, 1, 1, 2, 2]] * 4
    assert state.position == 4


def test_sentences_that_leave_take_their_rows_with_them() -> None:
    state = make_state().expand_to_beam(2).select(torch.tensor([0, 1, 5, 4]), torch.tensor([0, 2]), beam=2)
    assert row_values(state) == [[0, 0, 2, 2]] * 4
    assert state.memory["cross"].keys.flatten().tolist() == [0, 2]
    assert state.per_sentence["summary"].flatten().tolist() == [0, 2]


def test_advancing_moves_the_position_and_replaces_fields() -> None:
    state = make_state()
    after = state.advance(3, input_feed=None)
    assert (after.position, after.input_feed, after.hidden) == (7, None, state.hidden)


def test_the_mean_of_an_empty_sentence_is_zero() -> None:
    keys, keep = torch.ones(2, 3, 4), torch.tensor([[True, True, False], [False] * 3])
    assert EncoderOutput(keys, keys, keep).mean().tolist() == [[1.0] * 4, [0.0] * 4]


@pytest.mark.parametrize("detail", [Detail.NONE, Detail.WEIGHTS, Detail.FULL])
@pytest.mark.parametrize(
    ("preset", "changes"), [("bigru-gru", {}), ("transformer", {}), ("rnnsearch", {"copying": True})]
)
def test_joined_steps_equal_one_call(preset: str, changes: dict[str, Any], detail: Detail) -> None:
    model = small_models.build_model(small_models.small_preset(preset, **changes))
    state, _ = model.initial_state(small_models.small_batch())
    ids, hooks = torch.tensor([[4, 5, 6]] * 3), Hooks(detail)
    joined = step_loop(model._decode, state, ids, hooks)
    at_once = model._decode(state, ids, hooks)
    torch.testing.assert_close(joined.logits, at_once.logits, rtol=0, atol=1e-12)
    assert joined.state.position == at_once.state.position == 3
    assert joined.intermediates.keys() == at_once.intermediates.keys()
    for site, attention in at_once.attentions.items():
        for name in ("weights", "context"):
            one, other = getattr(joined.attentions[site], name), getattr(attention, name)
            assert (one is None) == (other is None), name
            if one is not None:
                torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_a_single_step_is_not_copied() -> None:
    model = small_models.build_model(small_models.small_preset("bigru-gru"))
    state, _ = model.initial_state(small_models.small_batch())
    step = model.step(state, torch.tensor([4, 5, 6]), NO_HOOKS)
    assert concat_decoder_outputs([step]) is step


def test_pointers_mix_into_a_distribution() -> None:
    torch.manual_seed(0)
    weights = torch.rand(2, 3, 4).softmax(dim=-1)
    pointer = PointerOutput(weights, torch.randn(2, 3), torch.randint(0, 9, (2, 4)))
    total = pointer.mix(torch.randn(2, 3, 9)).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones(2, 3))
    assert identity_output(total) is total
