"""Small traces that several tests share."""

from __future__ import annotations

import numpy as np

from heedful.trace.schema import Gold, Side, Token, Trace


def subword_trace() -> Trace:
    """Two heads; "unread park." in four subwords, "Park ja" in three, end tokens on both sides."""
    source = Side(
        text="unread park.",
        words=["unread", "park."],
        tokens=[
            Token(text="▁un", word=0),
            Token(text="read", word=0),
            Token(text="▁park", word=1),
            Token(text=".", word=1),
            Token(text="</s>", role="end"),
        ],
    )
    target = Side(
        text="Park ja",
        words=["Park", "ja"],
        tokens=[
            Token(text="▁Pa", word=0),
            Token(text="rk", word=0),
            Token(text="▁ja", word=1),
            Token(text="</s>", role="end"),
        ],
    )
    weights = np.random.default_rng(1).dirichlet(np.ones(5), (4, 2)).astype(np.float32)
    trace = Trace.from_weights(["a"] * 5, ["b"] * 4, weights, gold=Gold(sure=[(1, 0)]))
    return trace.model_copy(update={"source": source, "target": target})
