"""Small models, batches and traces that several tests share."""

from __future__ import annotations

import torch

from heedful.config import AttentionConfig, DecoderConfig, EncoderConfig, ModelConfig
from heedful.data.batch import Encoded, TextBatch, collate
from heedful.data.tokenizer import END
from heedful.models import Seq2Seq, build
from heedful.record import Site, Token, Trace

VOCABULARY = 11


def config(**attention: object) -> ModelConfig:
    """Sizes that are prime where they can be, and equal for queries and keys, so that dot fits."""
    return ModelConfig(
        embedding=5,
        dropout=0.0,
        encoder=EncoderConfig(hidden=3),
        decoder=DecoderConfig(hidden=6),
        attention=AttentionConfig.model_validate({"hidden": 7, "window": 2, **attention}),
    )


def model(**attention: object) -> Seq2Seq:
    torch.manual_seed(7)
    return build(config(**attention), VOCABULARY, VOCABULARY).double().eval()


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
