"""Every step order of the recurrent decoder against its equations in plain loops: one GRU, additive attention."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small_models
from heedful.attention import NO_HOOKS, Additive
from heedful.errors import ConfigError
from heedful.layers.recurrent_decoder import RecurrentDecoder
from heedful.layers.state import EncoderOutput, step_loop
from layers.loops import dot, gru, plus, scaled, sigmoid, softmax, tanh, times, weighted_sum

STEPS, KEYS, WIDTH = 3, 4, 6
IDS = [7, 8, 9]
ORDERS: dict[str, dict[str, Any]] = {
    "update-attend-generate": {"step_order": "update-attend-generate", "read_out": "linear"},
    "update-attend-generate, context fed": {
        "step_order": "update-attend-generate", "read_out": "linear", "input_feeding": "context",
    },
    "update-attend-generate, context fed from the start": {
        "step_order": "update-attend-generate", "read_out": "linear",
        "input_feeding": "context", "input_feeding_init": "attend",
    },
    "update-attend-generate, attentional vector fed": {
        "step_order": "update-attend-generate", "read_out": "tanh", "input_feeding": "attentional",
    },
    "attend-update-generate": {"step_order": "attend-update-generate", "read_out": "linear"},
    "attend-update-generate, gated": {"step_order": "attend-update-generate", "read_out": "linear", "gate": True},
    "attend-update-generate, combined": {"step_order": "attend-update-generate", "read_out": "linear", "combine": True},
    "attend-generate-update": {"step_order": "attend-generate-update", "read_out": "linear"},
    "conditional": {"step_order": "conditional", "read_out": "linear"},
}  # fmt: skip


def make_decoder(**settings: Any) -> RecurrentDecoder:
    changes = {f"decoder__{key}": value for key, value in settings.items()}
    decoder = small_models.build_model(small_models.small_preset("bigru-gru", **changes)).decoder
    assert isinstance(decoder, RecurrentDecoder)
    return decoder


def make_source() -> EncoderOutput:
    torch.manual_seed(1)
    keys = torch.randn(1, KEYS, WIDTH, dtype=torch.float64)
    final = torch.randn(1, WIDTH, dtype=torch.float64)
    return EncoderOutput(keys, keys, torch.ones(1, KEYS, dtype=torch.bool), (final,))


class Loops:
    """One sentence, written out step by step."""

    def __init__(self, decoder: RecurrentDecoder, source: EncoderOutput) -> None:
        assert decoder.attention is not None
        score = decoder.attention.score
        assert isinstance(score, Additive)
        self.decoder, self.score = decoder, score
        self.keys = source.keys[0].tolist()
        self.cell = decoder.rnn.layers[0].all_weights[0]

    def attend(self, query: list[float]) -> list[float]:
        """Bahdanau 2015, appendix A.1.2: `e_i = v' tanh(W q + U h_i)`."""
        projected = times(self.score.query.weight, query)
        scores = [
            dot(self.score.v.tolist(), tanh(plus(projected, times(self.score.key.weight, key)))) for key in self.keys
        ]
        return weighted_sum(softmax(scores), self.keys)

    def run(self, s: list[float]) -> list[list[float]]:
        """Return the features of every step."""
        order, features = self.decoder.order, []
        words = self.decoder.embedding.weight[IDS].tolist()
        fed = self.first_feed(s)
        for t, word in enumerate(words):
            if order == "update-attend-generate":
                s = gru(self.cell, [*word, *fed], s)
                context = self.attend(s)
            elif order == "attend-update-generate":
                context = self.gated(s)
                s = gru(self.cell, self.combined([*word, *context]), s)
            elif order == "attend-generate-update":
                if t:
                    s = gru(self.cell, [*word, *fed], s)
                context = fed = self.attend(s)
            else:
                between = gru(self.cell, word, s)
                context = self.attend(between)
                s = gru(self.decoder.second_gru.all_weights[0], context, between)
            vector = [*s, *context]
            if self.decoder.read_out.kind == "tanh":
                vector = tanh(times(self.decoder.read_out.projection.weight, vector))
            features.append(vector)
            if self.decoder.config.input_feeding != "none":
                fed = context if self.decoder.config.input_feeding == "context" else vector
        return features

    def first_feed(self, s: list[float]) -> list[float]:
        config = self.decoder.config
        if config.input_feeding_init == "attend":
            return self.attend(s)
        return [0.0] * WIDTH if config.input_feeding != "none" else []

    def gated(self, s: list[float]) -> list[float]:
        """Xu 2015, §4.2.1: the context times `sigmoid(w s + b)`."""
        context = self.attend(s)
        if not self.decoder.config.gate:
            return context
        (gate,) = sigmoid(times(self.decoder.gate.weight, s, self.decoder.gate.bias))
        return scaled(gate, context)

    def combined(self, inputs: list[float]) -> list[float]:
        if not self.decoder.config.combine:
            return inputs
        return tanh(times(self.decoder.combine.weight, inputs, self.decoder.combine.bias))


@pytest.mark.parametrize("name", ORDERS)
def test_every_step_order_follows_its_equations(name: str) -> None:
    decoder, source = make_decoder(**ORDERS[name]), make_source()
    state = decoder.initial_state(source)
    output = decoder(state, torch.tensor([IDS]), NO_HOOKS)
    expected = Loops(decoder, source).run(state.hidden[0][0].tolist())
    for t in range(STEPS):
        assert output.features[0, t].tolist() == pytest.approx(expected[t], abs=1e-12)


def test_without_attention_the_summary_enters_every_step() -> None:
    """Cho 2014: `c = tanh(V h_T)`, `s_0 = tanh(V' c)`, `s_t = GRU([y_{t-1}; c], s_{t-1})`, features `[s_t; c]`."""
    changes = {"encoder__kind": "gru", "decoder__kind": "gru", "decoder__read_out": "linear"}
    model = small_models.build_model(small_models.small_preset("seq2seq-every-step", **changes))
    decoder, source = model.decoder, make_source()
    assert isinstance(decoder, RecurrentDecoder)
    output = decoder(decoder.initial_state(source), torch.tensor([IDS]), NO_HOOKS)
    c = tanh(times(decoder.summary.weight, source.hidden[-1][0].tolist(), decoder.summary.bias))
    s = tanh(times(decoder.summary_to_state.weight, c, decoder.summary_to_state.bias))
    for t, word in enumerate(decoder.embedding.weight[IDS].tolist()):
        s = gru(decoder.rnn.layers[0].all_weights[0], [*word, *c], s)
        assert output.features[0, t].tolist() == pytest.approx([*s, *c], abs=1e-12)
    assert decoder.sites == ()
    assert decoder.alignment_site is None


@pytest.mark.parametrize(
    ("name", "parallel", "shift"),
    [
        ("update-attend-generate", True, 1),
        ("update-attend-generate, context fed", False, 1),
        ("attend-update-generate", False, 2),
        ("attend-generate-update", False, 1),
        ("conditional", False, 1),
    ],
)
def test_parallel_steps_and_the_shift_of_alignments(name: str, parallel: bool, shift: int) -> None:
    decoder = make_decoder(**ORDERS[name])
    assert (decoder.parallel, decoder.alignment_shift) == (parallel, shift)


def test_coverage_makes_steps_sequential() -> None:
    config = small_models.small_preset("bigru-gru", attention__coverage=True)
    assert not small_models.build_model(config).decoder.parallel


def test_settings_that_contradict_the_step_order_are_refused() -> None:
    with pytest.raises((ConfigError, ValueError), match=r"needs decoder\.step_order"):
        make_decoder(step_order="conditional", input_feeding="context")


@pytest.mark.parametrize("setting", ["residual", "layer_norm", "combine"])
def test_settings_that_the_fused_operation_does_not_know_run_step_by_step(setting: str) -> None:
    decoder = make_decoder(step_order="attend-update-generate", layers=2, **{setting: True}).float()
    keys, keep = torch.randn(2, KEYS, WIDTH), torch.ones(2, KEYS, dtype=torch.bool)
    state = decoder.initial_state(EncoderOutput(keys, keys, keep, (torch.randn(2, WIDTH),)))
    ids = torch.tensor([IDS, IDS[::-1]])
    expected = step_loop(decoder.decode, state, ids, NO_HOOKS).features
    torch.testing.assert_close(decoder(state, ids, NO_HOOKS).features, expected)
