"""Small models, batches and traces that several tests share."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import torch

from heedful.config import (
    AttentionConfig,
    DataConfig,
    DecoderConfig,
    EncoderConfig,
    ModelConfig,
    Recipe,
    TokenizerConfig,
    WorldConfig,
)
from heedful.config.model import RECURRENT
from heedful.config.presets import ENCODER_DECODERS
from heedful.data.batch import EncodedPair, TextBatch, collate
from heedful.data.pairs import TextPair
from heedful.data.tokenizer import END
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.model_folder import load_model, save_model
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq, Seq2SeqAssets
from heedful.trace.schema import Trace

VOCABULARY = 11
# variations of presets, tested beside the presets themselves
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("bigru-gru", {"attention__coverage": True}),
    ("bigru-gru", {"attention__placement": "local-p", "attention__score": "general"}),
    ("bigru-gru", {"attention__placement": "local-m", "attention__read_end": False}),
    ("bigru-gru", {"attention__score": "location", "attention__normalizer": "sparsemax"}),
    ("bigru-gru", {"attention__score": "scaled-dot", "attention__heads": 3}),
    ("bigru-gru", {"attention__placement": "hard", "attention__hard_inference": "argmax"}),
    ("bigru-gru", {"decoder__input_feeding": "context", "decoder__input_feeding_init": "attend"}),
    ("bigru-gru", {"decoder__input_feeding": "context", "decoder__read_out": "maxout"}),
    ("bigru-gru", {"decoder__read_out": "deep", "tie_embeddings": "all"}),
    ("luong", {"decoder__kind": "rnn", "encoder__kind": "rnn", "attention__coverage": False}),
    ("luong", {"encoder__layers": 1, "decoder__layers": 3}),
    ("luong", {"encoder__bidirectional": True, "decoder__state_init": "mean"}),
    ("stacked-lstm", {"encoder__residual": True, "encoder__layer_norm": True, "encoder__layers": 3}),
    ("stacked-lstm", {"decoder__residual": True, "decoder__layer_norm": True, "decoder__state_init": "zeros"}),
    ("cgru", {"decoder__layers": 2}),
    ("seq2seq", {"encoder__kind": "gru", "decoder__kind": "gru"}),
    ("seq2seq-every-step", {"decoder__kind": "lstm", "decoder__layers": 2}),
    ("transformer", {"encoder__norm": "post", "decoder__norm": "post", "decoder__positions": "learned"}),
    ("transformer", {"encoder__kind": "gru"}),
    ("transformer", {"embedding": 4, "tie_embeddings": "all"}),
    ("conv-conv", {"encoder__kind": "transformer", "attention__score": "additive"}),
    ("conv-conv", {"attention__score": "additive", "attention__coverage": True}),
    ("abs", {"encoder__kind": "gru", "decoder__smoothing_window": 0}),
    ("abs", {"attention__score": "additive", "attention__coverage": True, "tie_embeddings": "output"}),
    ("rnnsearch", {"encoder__kind": "transformer", "decoder__state_init": "mean"}),
    ("rnnsearch-paper", {}),
    ("rnnsearch", {"decoder__gate": True, "decoder__read_out": "added"}),
    ("rnnsearch", {"copying": True}),
    ("luong", {"copying": True, "encoder__read_end": False, "attention__read_end": True}),
    ("transformer", {"copying": True, "tie_embeddings": "all"}),
    ("transformer", {"encoder__read_end": False}),
    ("abs", {"copying": True}),
    ("seq2seq", {"copying": True}),
]


def attention_config(**attention: object) -> ModelConfig:
    """Return a small model config in which queries and keys have the same width, as dot scores need."""
    return ModelConfig(
        embedding=5,
        dropout=0.0,
        encoder=EncoderConfig(hidden=3),
        decoder=DecoderConfig(hidden=6),
        attention=AttentionConfig.model_validate({"hidden": 7, "window": 2, **attention}),
    )


def small_preset(name: str, **changes: object) -> ModelConfig:
    """Return a preset at small sizes; `changes` are `section__key=value`."""
    tree: dict[str, Any] = copy.deepcopy({"preset": name, **ENCODER_DECODERS[name]})
    tree |= {"embedding": 6, "dropout": 0.0}
    tree["encoder"] |= {"hidden": 6, "heads": 2, "feedforward": 11}
    tree["decoder"] |= {"hidden": 6, "heads": 3, "feedforward": 13}
    tree.setdefault("attention", {}).update(hidden=7, window=2)
    for key, value in changes.items():
        section, _, setting = key.rpartition("__")
        (tree[section] if section else tree)[setting] = value
    encoder = tree["encoder"]
    if encoder.get("bidirectional", True) and encoder["kind"] in RECURRENT and "encoder__hidden" not in changes:
        encoder["hidden"] = 3  # per direction, so that states are as wide as queries
    return ModelConfig.model_validate(tree)


def randomize_weights(model: Seq2Seq, seed: int = 1) -> Seq2Seq:
    """Set large random weights, so that outputs and their lengths differ between sentences."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -1.5, 1.5)
    return model


def attention_model(**attention: object) -> Seq2Seq:
    """Return a small model with these attention settings."""
    return build_model(attention_config(**attention))


def build_model(config: ModelConfig, vocabulary: int = VOCABULARY) -> Seq2Seq:
    """Return a model in double precision and evaluation mode."""
    torch.manual_seed(7)
    return build_seq2seq(config, vocabulary, vocabulary).double().eval()


def small_examples() -> list[EncodedPair]:
    """Return examples of different lengths on both sides, one source with only the end token."""
    return [
        EncodedPair([4, 5, 6, 7, END], [5, 6, END]),
        EncodedPair([8, 9, END], [7, 8, 9, 10, END]),
        EncodedPair([END], [4, END]),
    ]


def small_batch() -> TextBatch:
    """Return the examples as a batch."""
    return collate(small_examples())


def small_trace() -> Trace:
    """Return a trace of "the black cat", "le chat noir", with its reordering."""
    weights = [[0.9, 0.05, 0.05, 0.0], [0.0, 0.1, 0.9, 0.0], [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 1.0]]
    source, target = ["the", "black", "cat", "</s>"], ["le", "chat", "noir", "</s>"]
    return Trace.from_weights(source, target, weights, model="test")


PAIRS = [
    TextPair("the black cat sleeps", "le chat noir dort"),
    TextPair("a small dog eats the fish", "un petit chien mange le poisson"),
    TextPair("she sees the red house", "elle voit la maison rouge"),
]


def random_model_folder(path: Path, config: ModelConfig, kind: str = "word", seed: int = 3) -> LoadedSeq2Seq:
    """Save a model with large random weights, and open its folder."""
    tokenizer = TokenizerConfig(kind=kind, shared=True, vocab_size=300)  # type: ignore[arg-type]
    recipe = Recipe(data=DataConfig(world=WorldConfig()), tokenizer=tokenizer, model=config)
    assets = Seq2SeqAssets.train(PAIRS, recipe)
    torch.manual_seed(seed)
    model = build_seq2seq(config, len(assets.source), len(assets.target))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    save_model(path, recipe, assets, model, {})
    return load_model(path)
