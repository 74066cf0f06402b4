"""Presets: named models of the literature, as values of the section [model]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Luong 2015: input feeding of the attentional vector; no attention to the source's end token.
LUONG: Mapping[str, Any] = {
    "encoder": {"kind": "lstm", "layers": 2, "bidirectional": False},
    "decoder": {
        "kind": "lstm",
        "layers": 2,
        "step_order": "update-attend-generate",
        "state_init": "bridge",
        "read_out": "tanh",
        "input_feeding": "attentional",
    },
    "attention": {"score": "general", "read_end": False},
}

ENCODER_DECODERS: Mapping[str, Mapping[str, Any]] = {
    # Sutskever 2014: the source is one vector, the decoder's initial state.
    "seq2seq": {
        "encoder": {"kind": "lstm", "bidirectional": False},
        "decoder": {"kind": "lstm", "source": "init", "state_init": "bridge"},
    },
    # Cho 2014: the source vector is an input of every step.
    "seq2seq-every-step": {
        "encoder": {"kind": "gru", "bidirectional": False},
        "decoder": {"kind": "gru", "source": "every-step", "state_init": "top", "read_out": "maxout"},
    },
    # Bahdanau 2015 as printed: attend with the previous state, update, generate.
    "rnnsearch": {
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {
            "kind": "gru",
            "step_order": "attend-update-generate",
            "state_init": "backward",
            "read_out": "deep",
        },
        "attention": {"score": "additive"},
    },
    # Bahdanau 2015 as released: attend, generate, update; sizes and initialization of the paper.
    "rnnsearch-paper": {
        "embedding": 620,
        "dropout": 0.0,
        "initialization": "paper",
        "encoder": {"kind": "gru", "bidirectional": True, "hidden": 1000},
        "decoder": {
            "kind": "gru",
            "hidden": 1000,
            "step_order": "attend-generate-update",
            "state_init": "backward",
            "read_out": "maxout",
        },
        "attention": {"score": "additive", "hidden": 1000},
    },
    # nmtpy and Nematus: attention between two GRU updates.
    "cgru": {
        "tie_embeddings": "output",
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {"kind": "gru", "step_order": "conditional", "state_init": "mean", "read_out": "deep"},
        "attention": {"score": "additive"},
    },
    # The plain order: update the decoder, attend with the new state, generate.
    "bigru-gru": {
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {"kind": "gru", "step_order": "update-attend-generate", "state_init": "backward"},
        "attention": {"score": "additive"},
    },
    # As in many tutorials: attend with the previous state, project word and context together, start with </s>.
    "five-steps": {
        "encoder": {"kind": "gru", "bidirectional": False},
        "decoder": {
            "kind": "gru",
            "step_order": "attend-update-generate",
            "state_init": "top",
            "combine": True,
            "start_token": "</s>",
        },
        "attention": {"score": "additive"},
    },
    "stacked-lstm": {
        "encoder": {"kind": "lstm", "layers": 2, "bidirectional": False},
        "decoder": {"kind": "lstm", "layers": 2, "step_order": "update-attend-generate", "state_init": "top"},
        "attention": {"score": "general"},
    },
    "luong": LUONG,
    "luong-local": {**LUONG, "attention": {**LUONG["attention"], "placement": "local-p"}},
    # Gehring 2017, with a recurrent or a convolutional decoder.
    "conv-rnn": {
        "encoder": {"kind": "conv", "layers": 4, "positions": "learned"},
        "decoder": {"kind": "gru", "step_order": "update-attend-generate", "state_init": "mean"},
        "attention": {"score": "general"},
    },
    "conv-conv": {
        "encoder": {"kind": "conv", "layers": 4, "positions": "learned"},
        "decoder": {"kind": "conv", "layers": 3, "positions": "learned"},
        "attention": {"score": "dot"},
    },
    # Rush 2015: no recurrence; the last words are the query, smoothed source embeddings the values.
    "abs": {
        "encoder": {"kind": "embedding"},
        "decoder": {"kind": "abs"},
        "attention": {"score": "general"},
    },
    # Vaswani 2017, with layer norm before each sublayer.
    "transformer": {
        "tie_embeddings": "output",
        "encoder": {"kind": "transformer", "layers": 3},
        "decoder": {"kind": "transformer", "layers": 3},
        "attention": {"score": "scaled-dot"},
    },
}

# Xu 2015: an LSTM that attends to regions with its previous state, and a gate on the context.
SOFT_ATTENTION: Mapping[str, Any] = {
    "encoder": {"kind": "regions"},
    "decoder": {
        "kind": "lstm",
        "step_order": "attend-update-generate",
        "state_init": "mean",
        "read_out": "added",
        "gate": True,
    },
    "attention": {"score": "additive"},
}

CAPTIONERS: Mapping[str, Mapping[str, Any]] = {
    # Vinyals 2015: the image is one vector, the decoder's initial state.
    "caption-static": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "source": "init", "state_init": "mean", "read_out": "deep"},
    },
    # The image vector is an input of every step.
    "caption-static-every-step": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "source": "every-step", "state_init": "mean", "read_out": "deep"},
    },
    "caption-soft": SOFT_ATTENTION,
    # The plain order: update, attend with the new state, generate.
    "caption-soft-plain": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "step_order": "update-attend-generate", "state_init": "mean"},
        "attention": {"score": "additive"},
    },
    # One region is sampled per step in training; inference uses the expectation, as in the released code.
    "caption-hard": {**SOFT_ATTENTION, "attention": {**SOFT_ATTENTION["attention"], "placement": "hard"}},
    "caption-transformer": {
        "tie_embeddings": "output",
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "transformer", "layers": 2},
        "attention": {"score": "scaled-dot"},
    },
}

# Without the end token, so that only words can have attention weight.
_GRU: Mapping[str, Any] = {"kind": "gru", "bidirectional": True, "read_end": False}
_LSTM: Mapping[str, Any] = {**_GRU, "kind": "lstm"}

CLASSIFIERS: Mapping[str, Mapping[str, Any]] = {
    # As in a well-known tutorial: the final state is the query of a dot product.
    "classify-final": {
        "encoder": _LSTM,
        "classifier": {"pooling": "attention", "query": "final"},
        "attention": {"score": "dot"},
    },
    # Yang 2016: `u' tanh(W h_i + b)`; here b is W_q times the learned vector, and u is the score's v.
    "classify-learned": {
        "encoder": _GRU,
        "classifier": {"pooling": "attention", "query": "learned"},
        "attention": {"score": "additive"},
    },
    # Multi-head attention; the query is a learned vector.
    "classify-heads": {
        "encoder": _GRU,
        "classifier": {"pooling": "attention", "query": "learned"},
        "attention": {"score": "scaled-dot", "heads": 4},
    },
    # Yang 2016, hierarchical: attention over the words of each sentence, then over the sentences.
    "classify-sentences": {
        "encoder": _GRU,
        "classifier": {"pooling": "attention", "query": "learned", "sentences": [".", "!", "?"]},
        "attention": {"score": "additive"},
    },
    # Zhou 2016: directions are added, weights are `softmax(w' tanh(h_i))`, the context passes a tanh.
    "classify-zhou": {
        "encoder": _LSTM,
        "classifier": {"pooling": "attention", "query": "learned", "form": "zhou"},
        "attention": {"score": "dot"},
    },
    "classify-transformer": {
        "encoder": {"kind": "transformer", "layers": 2, "read_end": False},
        "classifier": {"pooling": "attention", "query": "learned"},
        "attention": {"score": "additive"},
    },
    # Cheng 2016: LSTMN, intra-attention over the previous words; mean of the states.
    "classify-lstmn": {"encoder": {"kind": "lstmn", "read_end": False}, "classifier": {"pooling": "mean"}},
    # Baselines without attention.
    "classify-mean": {"encoder": _LSTM, "classifier": {"pooling": "mean"}},
    "classify-max": {"encoder": _LSTM, "classifier": {"pooling": "max"}},
    "classify-last": {"encoder": _LSTM, "classifier": {"pooling": "last"}},
}

# He 2018 (NAIS): attention over the history, per target item; the smoothed softmax penalizes long histories less.
NAIS: Mapping[str, Any] = {
    "embedding": 16,
    "dropout": 0.0,
    "encoder": {"kind": "embedding"},
    "attention": {"score": "prod-relu", "normalizer": "smoothed-softmax", "beta": 0.5, "hidden": 16},
    "recommender": {"kind": "attention"},
}

RECOMMENDERS: Mapping[str, Mapping[str, Any]] = {
    "nais-prod": NAIS,
    "nais-concat": {**NAIS, "attention": {**NAIS["attention"], "score": "concat-relu"}},
    # Kabbur 2013 (FISM): equal weights for all items of the history.
    "fism": {
        "embedding": 16,
        "dropout": 0.0,
        "encoder": {"kind": "embedding"},
        "recommender": {"kind": "equal", "alpha": 0.0},
    },
    # The most popular items; nothing is trained.
    "popularity": {
        "dropout": 0.0,
        "encoder": {"kind": "embedding"},
        "recommender": {"kind": "popularity"},
    },
    # Self-attention among the items of a history first, without positions: a history is a set.
    "self-attention": {
        **NAIS,
        "dropout": 0.1,
        "encoder": {"kind": "transformer", "layers": 1, "hidden": 16, "heads": 2, "feedforward": 32},
    },
}

LANGUAGE_MODELS: Mapping[str, Mapping[str, Any]] = {
    # Baseline without attention.
    "read-lstm": {"tie_embeddings": "output", "language_model": {"kind": "lstm"}},
    # Cheng 2016: LSTMN, attention over a tape of the previous states.
    "read-lstmn": {"tie_embeddings": "output", "language_model": {"kind": "lstmn"}},
    # A causal Transformer.
    "read-transformer": {"tie_embeddings": "output", "language_model": {"kind": "transformer", "layers": 3}},
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    **ENCODER_DECODERS,
    **CAPTIONERS,
    **CLASSIFIERS,
    **RECOMMENDERS,
    **LANGUAGE_MODELS,
}

_BY_TASK = {
    "caption": CAPTIONERS,
    "classify": CLASSIFIERS,
    "recommend": RECOMMENDERS,
    "read": LANGUAGE_MODELS,
    **dict.fromkeys(("translate", "summarize", "reply", "transduce"), ENCODER_DECODERS),
}


def presets_of(task: str) -> list[str]:
    """Return the names of the presets for a task; a plugin's task may use any."""
    return list(_BY_TASK.get(task, PRESETS))
