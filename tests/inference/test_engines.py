"""Quantized models and engines stay close to the model they are made of."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import small_models
from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions
from heedful.config.presets import ENCODER_DECODERS
from heedful.data.batch import EncodedPair, collate
from heedful.data.tokenizer import START
from heedful.decoding import force_decode, search
from heedful.errors import ShapeError
from heedful.inference import gru_engine, transformer_engine
from heedful.inference.engine import Engine
from heedful.inference.int8 import quantize
from heedful.inference.optimize import optimize_for_inference
from heedful.models import Seq2Seq

WIDE = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 64, "attention__hidden": 64}
SUPPORTED: dict[str, dict[str, Any]] = {
    "rnnsearch": {},
    "cgru": {},
    "bigru-gru": {},
    "bigru-gru, context fed": {"decoder__input_feeding": "context", "decoder__read_out": "deep"},
    "bigru-gru, attentional vector fed": {"decoder__input_feeding": "attentional", "decoder__read_out": "tanh"},
    "transformer": {"encoder__heads": 4, "decoder__heads": 4, "tie_embeddings": "none"},
    "bigru-gru, affine vector fed": {
        "decoder__input_feeding": "attentional",
        "decoder__read_out": "affine",
    },
}


def build_model(name: str, changes: dict[str, Any], seed: int = 3) -> Seq2Seq:
    """Build a model whose matrices are large enough to be quantized, with weights that give long outputs."""
    model = small_models.build_model(small_models.small_preset(name.split(",")[0], **(WIDE | changes)), 90).float()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.15)
    return model


def record_alignment(model: Seq2Seq) -> Hooks:
    return Hooks(Detail.WEIGHTS, frozenset({model.alignment_site or ""}))


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_every_preset_can_be_quantized(name: str) -> None:
    model = build_model(name, {"encoder__heads": 4, "decoder__heads": 4})
    quantized = quantize(model)
    with torch.no_grad():
        expected, actual = (m(small_models.small_batch()).logits for m in (model, quantized))
    assert 0 < (actual - expected).norm() < 0.05 * expected.norm()


@pytest.mark.parametrize("name", SUPPORTED)
def test_steps_of_an_engine_are_close_to_those_of_the_quantized_model(name: str) -> None:
    model = build_model(name, SUPPORTED[name])
    engine, quantized = optimize_for_inference(model), quantize(model)
    assert isinstance(engine, Engine)
    with torch.no_grad():
        state, _ = engine.initial_state(small_models.small_batch())
        expected_state, _ = quantized.initial_state(small_models.small_batch())
        last = torch.full((3,), START)
        for _ in range(4):
            top = engine.top_next_tokens(state, last, 5, record_alignment(model))
            output = quantized.step(expected_state, last, record_alignment(model))
            logits = output.logits[:, 0]
            logits[:, [0, 2]] = float("-inf")
            logp = logits.log_softmax(dim=-1)
            torch.testing.assert_close(top.logp, logp.gather(1, top.tokens), rtol=0, atol=0.03)
            torch.testing.assert_close(top.logp[:, 0], logp.amax(dim=-1), rtol=0, atol=0.03)
            site = model.alignment_site or ""
            weights, expected_weights = top.attentions[site].weights, output.attentions[site].weights
            assert weights is not None
            torch.testing.assert_close(weights, expected_weights, rtol=0, atol=0.01)
            for hidden, expected_hidden in zip(top.state.hidden, output.state.hidden, strict=True):
                torch.testing.assert_close(hidden, expected_hidden, rtol=0, atol=0.02)
            state, expected_state, last = top.state, output.state, top.tokens[:, 0]


@pytest.mark.parametrize(
    "options",
    [DecodingOptions(max_length=40), DecodingOptions(method="beam", beam=4, max_length=40)],
    ids=["greedy", "beam"],
)
@pytest.mark.parametrize("name", SUPPORTED)
def test_the_model_gives_an_engines_outputs_nearly_the_same_probability(name: str, options: DecodingOptions) -> None:
    model = build_model(name, SUPPORTED[name])
    engine, hooks = optimize_for_inference(model), record_alignment(model)
    hypotheses = search(engine, small_models.small_batch(), options, hooks).hypotheses
    for example, (best, *_) in zip(small_models.small_examples(), hypotheses, strict=True):
        batch = collate([EncodedPair(example.source, list(best.tokens))])
        expected = force_decode(model, batch, hooks)[0]
        assert best.token_logp == pytest.approx(expected.token_logp, abs=0.4)
        site = model.alignment_site or ""
        torch.testing.assert_close(best.attentions[site], expected.attentions[site], rtol=0, atol=0.06)


def test_the_transformer_engine_records_self_attention() -> None:
    model = build_model("transformer", SUPPORTED["transformer"])
    engine = optimize_for_inference(model)
    assert isinstance(engine, Engine)
    for options in (DecodingOptions(max_length=12), DecodingOptions(method="beam", beam=3, max_length=12)):
        hypotheses = search(engine, small_models.small_batch(), options, Hooks(Detail.WEIGHTS)).hypotheses
        for example, (best, *_) in zip(small_models.small_examples(), hypotheses, strict=True):
            batch = collate([EncodedPair(example.source, list(best.tokens))])
            expected = force_decode(model, batch, Hooks(Detail.WEIGHTS))[0]
            assert best.attentions.keys() == expected.attentions.keys()
            for site, weights in best.attentions.items():
                torch.testing.assert_close(weights, expected.attentions[site], rtol=0, atol=0.06)


def test_the_transformer_engine_encodes_like_the_quantized_model() -> None:
    model = build_model("transformer", SUPPORTED["transformer"] | {"encoder__read_end": False})
    engine, quantized = optimize_for_inference(model), quantize(model)
    assert isinstance(engine, Engine)
    with torch.no_grad():
        state, attentions = engine.initial_state(small_models.small_batch(), Hooks(Detail.WEIGHTS))
        expected_state, expected_attentions = quantized.initial_state(small_models.small_batch(), Hooks(Detail.WEIGHTS))
        unrecorded_state, unrecorded = engine.initial_state(small_models.small_batch())
    assert attentions.keys() == expected_attentions.keys() == unrecorded.keys()
    assert all(attention.weights is None for attention in unrecorded.values())
    keep = model.source_keep(small_models.small_batch())
    for site, memory in expected_state.memory.items():
        assert torch.equal(state.memory[site].keep, memory.keep)
        assert torch.equal(state.memory[site].keys, unrecorded_state.memory[site].keys)
        torch.testing.assert_close(state.memory[site].keys[keep], memory.keys[keep], rtol=0, atol=0.05)
        torch.testing.assert_close(state.memory[site].values[keep], memory.values[keep], rtol=0, atol=0.05)
    for site, attention in attentions.items():
        actual, expected = attention.weights, expected_attentions[site].weights
        assert actual is not None
        assert expected is not None
        torch.testing.assert_close(actual[keep], expected[keep], rtol=0, atol=0.02)


def test_what_an_engine_does_not_support_is_left_to_the_model() -> None:
    assert isinstance(optimize_for_inference(build_model("luong", {})), Seq2Seq)
    engine = optimize_for_inference(build_model("cgru", {}))
    assert isinstance(engine, Engine)
    state, _ = engine.initial_state(small_models.small_batch())
    top = engine.top_next_tokens(state, torch.full((3,), START), 1, Hooks(Detail.FULL))
    assert top.attentions[engine.alignment_site or ""].scores is not None  # only the model itself records scores


@pytest.mark.parametrize("max_length", [1, 6, 70])
@pytest.mark.parametrize("name", SUPPORTED)
def test_greedy_generation_equals_single_steps(name: str, max_length: int) -> None:
    model = build_model(name, SUPPORTED[name])
    engine = optimize_for_inference(model)
    assert isinstance(engine, Engine)
    for example in small_models.small_examples():
        batch = collate([example])
        for hooks in (Hooks(), record_alignment(model), Hooks(Detail.WEIGHTS)):
            greedy = search(engine, batch, DecodingOptions(max_length=max_length), hooks).hypotheses[0][0]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(engine), "generate_greedy", lambda *_: None)
                step_by_step = search(engine, batch, DecodingOptions(max_length=max_length), hooks).hypotheses[0][0]
            assert greedy.tokens == step_by_step.tokens
            assert greedy.finished == step_by_step.finished
            assert greedy.token_logp == step_by_step.token_logp
            assert greedy.attentions.keys() == step_by_step.attentions.keys()
            for site, weights in greedy.attentions.items():
                assert torch.equal(weights, step_by_step.attentions[site])


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_greedy_output_can_be_stopped_between_steps(name: str) -> None:
    engine = optimize_for_inference(build_model(name, SUPPORTED[name], seed=5))
    assert isinstance(engine, Engine)
    batch = collate([small_models.small_examples()[0]])
    with torch.inference_mode():
        state, _ = engine.initial_state(batch)
        with pytest.MonkeyPatch.context() as patch:
            for module in (gru_engine, transformer_engine):
                patch.setattr(module, "STEPS_PER_CALL", 4)
            answers = iter([False, False, True])
            stopped = engine.generate_greedy(state, 100, Hooks(Detail.WEIGHTS), lambda: next(answers))
        expected = engine.generate_greedy(state, 8, Hooks(Detail.WEIGHTS))
        refused = engine.generate_greedy(state, 8, Hooks(Detail.WEIGHTS), lambda: True)
    assert stopped is not None
    assert expected is not None
    assert (stopped.tokens, stopped.logp) == (expected.tokens, expected.logp)
    for site, weights in expected.attentions.items():
        assert torch.equal(stopped.attentions[site], weights)
    assert refused is not None
    assert (refused.tokens, refused.logp) == ([], [])


@pytest.mark.parametrize("name", SUPPORTED)
def test_an_error_of_the_callers_ends_a_greedy_output(name: str) -> None:
    engine = optimize_for_inference(build_model(name, SUPPORTED[name]))
    assert isinstance(engine, Engine)

    def out_of_time() -> bool:
        raise TimeoutError

    with torch.inference_mode(), pytest.raises(TimeoutError):
        engine.generate_greedy(
            engine.initial_state(collate([small_models.small_examples()[0]]))[0], 9, Hooks(), out_of_time
        )


@pytest.mark.parametrize("wrong", [-1, 90, 2**40])
@pytest.mark.parametrize("name", SUPPORTED)
def test_a_token_outside_the_vocabulary_is_an_error_in_encoder_and_decoder(name: str, wrong: int) -> None:
    model = build_model(name, SUPPORTED[name])
    source = collate([EncodedPair([4, wrong, 5], [4])])
    for generator in (model, optimize_for_inference(model)):
        with torch.inference_mode():
            state, _ = generator.initial_state(small_models.small_batch())
            with pytest.raises(ShapeError, match=f"token {wrong} does not exist: only 0 to 89 exist"):
                generator.top_next_tokens(state, torch.tensor([4, wrong, 5]), 2)
            with pytest.raises(ShapeError, match=f"token {wrong} does not exist: only 0 to 89 exist"):
                generator.initial_state(source)


def test_a_greedy_output_beyond_the_learned_positions_is_an_error() -> None:
    learned = {"decoder__positions": "learned", "decoder__max_positions": 12}
    model = build_model("transformer", SUPPORTED["transformer"] | learned, seed=5)
    engine, batch = optimize_for_inference(model), collate([small_models.small_examples()[0]])
    assert isinstance(engine, Engine)
    with torch.inference_mode():
        state, _ = engine.initial_state(batch)
        assert engine.generate_greedy(state, 12) is not None
        assert engine.generate_greedy(state, 13) is None
    with pytest.raises(ShapeError, match="12"):
        search(engine, batch, DecodingOptions(max_length=40))
