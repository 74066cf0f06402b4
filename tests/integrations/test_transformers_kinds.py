"""Decoders, models of images and sound, and models that bypass the attention interface of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers")

import heedful
from heedful.analysis.compare_models import ComparedModel, compare_models
from heedful.errors import HeedfulError, ModelError, ShapeError
from heedful.integrations.transformers.model import TransformersModel
from integrations import tiny_transformers as tiny
from integrations.tiny_transformers import transformers

LLAMA = {
    "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 40,
}  # fmt: skip
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 40}),
    "llama": ("LlamaForCausalLM", LLAMA),  # grouped queries: four heads share two of keys
    "one head of keys": ("LlamaForCausalLM", {**LLAMA, "num_key_value_heads": 1}),  # multi-query attention
    "qwen2": ("Qwen2ForCausalLM", LLAMA),
    "sliding window": ("MistralForCausalLM", {**LLAMA, "sliding_window": 4}),
    "soft cap": ("Gemma2ForCausalLM", {**LLAMA, "head_dim": 4, "sliding_window": 4}),
}
VISION = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
PROMPT = "The cat sle"
PIXELS = np.random.default_rng(1).integers(0, 255, (40, 50, 3), dtype=np.uint8)
SOUND = np.random.default_rng(1).normal(size=8_000).astype(np.float32)  # half a second


def decoder(kind: str) -> TransformersModel:
    tokenizer = tiny.tokenizer("bytes", "")
    name, sizes = DECODERS[kind]
    model_class = getattr(transformers, name)
    special = {"bos_token_id": tiny.START, "eos_token_id": tiny.END, "pad_token_id": tiny.PAD}
    model = tiny.randomize(model_class(model_class.config_class(vocab_size=len(tokenizer), **special, **sizes)))
    model.generation_config.max_new_tokens = 5
    return heedful.from_transformers(model, tokenizer, name=kind)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_reads_its_prompt_and_goes_on(kind: str) -> None:
    model = decoder(kind)
    checks = model.check(PROMPT)
    assert checks.pop("logits") < 1e-5
    assert max(checks.values()) < 1e-5
    trace = model.trace(PROMPT)
    assert [record.site for record in trace.sites] == ["dec.0.self", "dec.1.self"]
    assert {record.heads for record in trace.sites} == {4}
    assert [step.forced for step in trace.steps].count(False) == 5
    assert [t.id for t in trace.source.tokens[1:]] == [t.id for t in trace.target.tokens[:-1]]
    assert np.triu(trace.matrix(), 1).max() == 0
    assert trace.source.text.startswith("The cat sle")
    assert [(token.text, token.word) for token in trace.source.tokens[:3]] == [("▁The", 0), ("▁c", 1), ("at", 1)]
    edited = model.trace(PROMPT, edits="onehot:step=3,position=2", what_if=False)
    assert edited.matrix()[3, 2] == 1
    assert edited.steps[2].logp == pytest.approx(trace.steps[2].logp, abs=1e-5)
    one = next(c for c in trace.counterfactuals if (c.op, c.step, c.position) == ("onehot", 3, 2))
    assert one.top[0].logp == pytest.approx(edited.steps[3].top[0].logp, abs=1e-4)


def text_file(folder: Path) -> str:
    (folder / "texts.txt").write_text(f"{PROMPT}\nA dog eats\n")
    return str(folder / "texts.txt")


def test_a_decoder_is_measured_as_far_as_that_has_meaning(tmp_path: Path) -> None:
    texts = [PROMPT, "A dog eats"]
    result = decoder("llama").measure(texts, tests=["uniform", "permutation"], steps=1)
    assert {"entropy_ratio", "first_token_weight", "own_weight"} <= set(result["attention"])
    assert {"unchanged", "uniform", "permuted"} <= set(result["faithfulness"]["outputs"])
    table = compare_models([ComparedModel(decoder("llama").loaded, "read", decoder("llama"))], [text_file(tmp_path)])
    assert set(table[0].values) == {"entropy"}


def test_a_sliding_window_is_respected() -> None:
    model = decoder("sliding window")
    trace = model.trace(PROMPT, detail="full")
    assert np.tril(trace.matrix(), -4).max() == 0
    assert all(c.position > c.step - 4 for c in trace.counterfactuals)
    with pytest.raises(ShapeError, match="may not be attended to; allowed: 3, 4, 5, 6"):
        model.trace(PROMPT, edits="onehot:step=6,position=1")


@pytest.mark.parametrize(
    ("name", "config", "reason"),
    [
        ("DebertaV2Model", {"num_hidden_layers": 1, "hidden_size": 24}, "DisentangledSelfAttention"),
        ("GPTJForCausalLM", {"n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 4}, "GPTJAttention"),
        ("BertForQuestionAnswering", {"num_hidden_layers": 1, "hidden_size": 12}, "not supported"),
    ],
)  # fmt: skip
def test_models_that_cannot_be_recorded_are_refused_by_name(name: str, config: dict[str, Any], reason: str) -> None:
    model_class = getattr(transformers, name)
    tokens = {"vocab_size": 90, "bos_token_id": None, "eos_token_id": None}
    model = model_class(model_class.config_class(**tokens, **config))
    with pytest.raises(ModelError, match=f"{name}.*{reason}"):
        heedful.from_transformers(model, tiny.tokenizer())


def vision_classifier() -> TransformersModel:
    config = transformers.ViTConfig(**VISION, id2label={0: "cat", 1: "dog"})
    model = tiny.randomize(transformers.ViTForImageClassification(config))
    return heedful.from_transformers(model, image_processor("ViT"), name="vit")


def image_processor(kind: str) -> Any:
    return getattr(transformers, f"{kind}ImageProcessorPil")(size={"height": 32, "width": 32})


def test_patches_are_a_grid_without_the_first_token() -> None:
    model = vision_classifier()
    trace = model.trace(PIXELS)
    assert trace.source.image is not None
    assert trace.source.image.grid == (4, 4)
    assert trace.matrix().shape == (1, 16)
    assert trace.site("pool").mass == "at_most_one"  # the rest of the weight is on [CLS]
    assert 0.5 < trace.matrix().sum() < 1
    assert trace.target.text == model(PIXELS)
    assert model.check(PIXELS)["logits"] < 1e-5
    edited = model.trace(PIXELS, edits="onehot:position=5", what_if=False)
    assert edited.matrix()[0].argmax() == 5
    assert edited.matrix()[0, 5] == 1
    one = next(c for c in trace.counterfactuals if (c.op, c.position) == ("onehot", 5))
    assert one.top[0].logp == pytest.approx(edited.steps[0].top[0].logp, abs=1e-4)


def captioner() -> TransformersModel:
    tokenizer = tiny.tokenizer("bytes", "")
    words = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=16,
        n_layer=2,
        n_head=4,
        n_positions=40,
        add_cross_attention=True,
        is_decoder=True,
    )
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**VISION), words
    )
    special = {"decoder_start_token_id": tiny.START, "pad_token_id": tiny.PAD, "eos_token_id": tiny.END}
    model = transformers.VisionEncoderDecoderModel(config)
    for owner in (model.config, model.generation_config):
        for name, value in special.items():
            setattr(owner, name, value)
    model.generation_config.max_length = 6
    return heedful.from_transformers(tiny.randomize(model), (tokenizer, image_processor("ViT")), name="captioner")


def blip() -> TransformersModel:
    tokenizer = tiny.tokenizer("bytes", "")
    special = {"bos_token_id": tiny.START, "eos_token_id": tiny.END, "sep_token_id": tiny.END, "pad_token_id": tiny.PAD}
    sizes = {
        key: VISION[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    }
    text = {"vocab_size": len(tokenizer), "encoder_hidden_size": 16, "max_position_embeddings": 40}
    config = transformers.BlipConfig(vision_config=VISION, text_config={**sizes, **text, **special})
    model = tiny.randomize(transformers.BlipForConditionalGeneration(config))
    return heedful.from_transformers(model, (tokenizer, image_processor("Blip")), name="blip")


@pytest.mark.parametrize("make", [captioner, blip])
def test_a_caption_attends_to_patches(make: Callable[[], TransformersModel]) -> None:
    model = make()
    assert model.sites == ["enc.0.self", "enc.1.self", "dec.0.self", "dec.0.cross", "dec.1.self", "dec.1.cross"]
    trace = model.trace(PIXELS, target="The cat", what_if=True)
    assert trace.source.image is not None
    assert trace.source.image.grid == (4, 4)
    assert trace.matrix().shape == (len(trace.target.tokens), 16)
    assert trace.target.text == "The cat"
    assert trace.weights("enc.1.self").shape == (16, 4, 16)
    edited = model.trace(PIXELS, target="The cat", edits="onehot:step=1,position=3", what_if=False)
    assert edited.matrix()[1].tolist() == [0, 0, 0, 1, *[0] * 12]
    assert edited.steps[0].logp == pytest.approx(trace.steps[0].logp, abs=1e-5)
    assert edited.steps[1].logp != pytest.approx(trace.steps[1].logp, abs=1e-4)
    assert model(PIXELS, max_length=4) == model.trace(PIXELS, max_length=4).target.text
    with pytest.raises(HeedfulError, match="only texts have words"):
        model.trace(PIXELS, edits="source:position=0,text=dog")


def whisper() -> TransformersModel:
    tokenizer = tiny.tokenizer("bytes", "")
    special = {"decoder_start_token_id": 3, "bos_token_id": 3, "eos_token_id": 1, "pad_token_id": 0}
    config = transformers.WhisperConfig(
        vocab_size=len(tokenizer), d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=32, decoder_ffn_dim=32, max_source_positions=100,
        max_target_positions=40, num_mel_bins=8, suppress_tokens=None, begin_suppress_tokens=None, **special,
    )  # fmt: skip
    model = tiny.randomize(transformers.WhisperForConditionalGeneration(config))
    sounds = transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=2)
    return heedful.from_transformers(model, (tokenizer, sounds), name="whisper")


def test_the_source_of_speech_is_time() -> None:
    model = whisper()
    trace = model.trace(SOUND, target="The cat")
    assert [token.text for token in trace.source.tokens][:3] == ["0.00s", "0.02s", "0.04s"]
    assert len(trace.source.tokens) == 25
    assert trace.matrix().shape == (len(trace.target.tokens), 25)
    edited = model.trace(SOUND, target="The cat", edits="onehot:step=0,position=24", what_if=False)
    assert edited.matrix()[0, 24] == 1
    with pytest.raises(HeedfulError, match="one axis"):
        model.trace(np.zeros((2, 3)))
