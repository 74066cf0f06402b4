"""Small models, batches and traces that several tests share."""

from __future__ import annotations

import copy
from typing import Any

import torch

from heedful.config import AttentionConfig, DecoderConfig, EncoderConfig, ModelConfig
from heedful.config.presets import PRESETS
from heedful.config.schema import RECURRENT
from heedful.data.batch import Encoded, TextBatch, collate
from heedful.data.tokenizer import END
from heedful.models import Seq2Seq, build
from heedful.record import Site, Token, Trace

VOCABULARY = 11


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
    weights = torch.tensor(
        [[0.9, 0.05, 0.05, 0.0], [0.0, 0.1, 0.9, 0.0], [0.0, 1.0, 0.0, 0.0], [0, 0, 0, 1.0]]
    )
    return Trace.make(
        model="test",
        source=[Token(text=w) for w in ("the", "black", "cat")] + [Token(text="</s>", role="end")],
        target=[Token(text=w) for w in ("le", "chat", "noir")] + [Token(text="</s>", role="end")],
        logp=[-0.1, -0.2, -0.3, -0.4],
        weights={"cross": weights[:, None].double().numpy()},
        sites=[Site("cross", "cross", 1, "one")],
        alignment="cross",
    )
