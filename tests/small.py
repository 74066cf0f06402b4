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
from heedful.config.presets import PRESETS
from heedful.data.batch import Encoded, TextBatch, collate
from heedful.data.readers import TextPair
from heedful.data.tokenizer import END
from heedful.models import Seq2Seq, build
from heedful.record import Trace
from heedful.tasks.folder import open_model, save_model
from heedful.tasks.text import TextModel, learn

VOCABULARY = 11
# presets changed here and there, beside the presets themselves
MORE: list[tuple[str, dict[str, Any]]] = [
    ("bigru-gru", {"attention__coverage": True}),
    ("bigru-gru", {"attention__placement": "local-p", "attention__score": "general"}),
    ("bigru-gru", {"attention__placement": "local-m", "attention__read_end": False}),
    ("bigru-gru", {"attention__score": "location", "attention__normaliser": "sparsemax"}),
    ("bigru-gru", {"attention__score": "scaled-dot", "attention__heads": 3}),
    ("bigru-gru", {"attention__placement": "hard", "attention__generate": "argmax"}),
    ("bigru-gru", {"decoder__feed": "context", "decoder__feed_start": "look"}),
    ("bigru-gru", {"decoder__feed": "context", "decoder__read_out": "maxout"}),
    ("bigru-gru", {"decoder__read_out": "deep", "tie": "all"}),
    ("luong", {"decoder__kind": "rnn", "encoder__kind": "rnn", "attention__coverage": False}),
    ("luong", {"encoder__layers": 1, "decoder__layers": 3}),
    ("luong", {"encoder__bidirectional": True, "decoder__start": "mean"}),
    ("stacked-lstm", {"encoder__residual": True, "encoder__layer_norm": True, "encoder__layers": 3}),
    ("stacked-lstm", {"decoder__residual": True, "decoder__layer_norm": True, "decoder__start": "zeros"}),
    ("cgru", {"decoder__layers": 2}),
    ("seq2seq", {"encoder__kind": "gru", "decoder__kind": "gru"}),
    ("seq2seq-every-step", {"decoder__kind": "lstm", "decoder__layers": 2}),
    ("transformer", {"encoder__norm": "post", "decoder__norm": "post", "decoder__positions": "learned"}),
    ("transformer", {"encoder__kind": "gru"}),
    ("transformer", {"embedding": 4, "tie": "all"}),
    ("conv-conv", {"encoder__kind": "transformer", "attention__score": "additive"}),
    ("conv-conv", {"attention__score": "additive", "attention__coverage": True}),
    ("abs", {"encoder__kind": "gru", "decoder__window": 0}),
    ("abs", {"attention__score": "additive", "attention__coverage": True, "tie": "output"}),
    ("rnnsearch", {"encoder__kind": "transformer", "decoder__start": "mean"}),
    ("rnnsearch-paper", {}),
    ("rnnsearch", {"decoder__gate": True, "decoder__read_out": "added"}),
    ("rnnsearch", {"copying": True}),
    ("luong", {"copying": True, "encoder__read_end": False, "attention__read_end": True}),
    ("transformer", {"copying": True, "tie": "all"}),
    ("transformer", {"encoder__read_end": False}),
    ("abs", {"copying": True}),
    ("seq2seq", {"copying": True}),
]


def config(**attention: object) -> ModelConfig:
    """Small sizes, equal for queries and keys, so that dot fits."""
    return ModelConfig(
        embedding=5,
        dropout=0.0,
        encoder=EncoderConfig(hidden=3),
        decoder=DecoderConfig(hidden=6),
        attention=AttentionConfig.model_validate({"hidden": 7, "window": 2, **attention}),
    )


def preset(name: str, **changes: object) -> ModelConfig:
    """A preset at small sizes; `changes` are `section__key=value`."""
    tree: dict[str, Any] = copy.deepcopy({"preset": name, **PRESETS[name]})
    tree |= {"embedding": 6, "dropout": 0.0}
    tree["encoder"] |= {"hidden": 6, "heads": 2, "feedforward": 11}
    tree["decoder"] |= {"hidden": 6, "heads": 3, "feedforward": 13}
    tree.setdefault("attention", {}).update(hidden=7, window=2)
    for key, value in changes.items():
        section, _, setting = key.rpartition("__")
        (tree[section] if section else tree)[setting] = value
    encoder = tree["encoder"]
    if (
        encoder.get("bidirectional", True)
        and encoder["kind"] in RECURRENT
        and "encoder__hidden" not in changes
    ):
        encoder["hidden"] = 3  # of each direction, so that the states have the queries' width
    return ModelConfig.model_validate(tree)


def wild(model: Seq2Seq, seed: int = 1) -> Seq2Seq:
    """Large random weights, so that outputs and lengths differ between sentences."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -1.5, 1.5)
    return model


def model(**attention: object) -> Seq2Seq:
    return built(config(**attention))


def built(config: ModelConfig, vocabulary: int = VOCABULARY) -> Seq2Seq:
    torch.manual_seed(7)
    return build(config, vocabulary, vocabulary).double().eval()


def examples() -> list[Encoded]:
    """Ragged on both sides, one source of the end token alone."""
    return [
        Encoded([4, 5, 6, 7, END], [5, 6, END]),
        Encoded([8, 9, END], [7, 8, 9, 10, END]),
        Encoded([END], [4, END]),
    ]


def batch() -> TextBatch:
    return collate(examples())


def trace() -> Trace:
    """ "le chat noir" from "the black cat", with its reordering."""
    weights = [[0.9, 0.05, 0.05, 0.0], [0.0, 0.1, 0.9, 0.0], [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 1.0]]
    source, target = ["the", "black", "cat", "</s>"], ["le", "chat", "noir", "</s>"]
    return Trace.from_weights(source, target, weights, model="test")


PAIRS = [
    TextPair("the black cat sleeps", "le chat noir dort"),
    TextPair("a small dog eats the fish", "un petit chien mange le poisson"),
    TextPair("she sees the red house", "elle voit la maison rouge"),
]


def folder(path: Path, config: ModelConfig, kind: str = "word", seed: int = 3) -> TextModel:
    """A model folder with large random weights, opened."""
    tokenizer = TokenizerConfig(kind=kind, shared=True, size=300)  # type: ignore[arg-type]
    recipe = Recipe(data=DataConfig(world=WorldConfig()), tokenizer=tokenizer, model=config)
    words = learn(PAIRS, recipe)
    torch.manual_seed(seed)
    model = build(config, len(words.source), len(words.target))
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.6, 0.6)
    save_model(path, recipe, words, model, {})
    return open_model(path)
