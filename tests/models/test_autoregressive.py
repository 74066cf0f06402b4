"""The defaults of autoregressive models: the most likely tokens from the logits of a step."""

from __future__ import annotations

import torch

import small_models
from heedful.attention import Detail, Hooks
from heedful.data.tokenizer import PAD, START
from heedful.layers.state import DecoderOutput, State
from heedful.models import next_token_logits


def test_padding_and_start_are_never_generated() -> None:
    model = small_models.randomize_weights(small_models.build_model(small_models.small_preset("cgru")))
    state, _ = model.initial_state(small_models.small_batch())
    output = model.step(state, torch.tensor([4, 5, 6]))
    logits = next_token_logits(output)
    assert (logits[:, [PAD, START]] == float("-inf")).all()
    others = [i for i in range(small_models.VOCABULARY) if i not in (PAD, START)]
    assert torch.equal(logits[:, others], output.logits[:, 0, others])


def test_logits_that_belong_to_the_output_are_not_overwritten() -> None:
    logits = torch.zeros(2, 1, 5)
    next_token_logits(DecoderOutput(logits, State(), {}))
    assert not logits.any()


def test_the_top_tokens_are_those_of_the_distribution() -> None:
    model = small_models.randomize_weights(small_models.build_model(small_models.small_preset("bigru-gru")))
    state, _ = model.initial_state(small_models.small_batch())
    last = torch.tensor([4, 5, 6])
    top = model.top_next_tokens(state, last, 4, Hooks(Detail.WEIGHTS))
    output = model.step(state, last)
    logp, tokens = next_token_logits(output).log_softmax(dim=-1).topk(4)
    assert torch.equal(top.tokens, tokens)
    torch.testing.assert_close(top.logp, logp)
    assert top.state.position == 1
    assert top.attentions["cross"].weights is not None


def test_no_more_tokens_are_returned_than_the_vocabulary_has() -> None:
    model = small_models.build_model(small_models.small_preset("bigru-gru"))
    state, _ = model.initial_state(small_models.small_batch())
    assert model.top_next_tokens(state, torch.tensor([4, 5, 6]), 99).tokens.shape == (3, small_models.VOCABULARY)


def test_models_generate_step_by_step_unless_they_know_better() -> None:
    model = small_models.build_model(small_models.small_preset("bigru-gru"))
    state, _ = model.initial_state(small_models.small_batch())
    assert model.generate_greedy(state, 5) is None
