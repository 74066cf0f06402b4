"""Presets: the named models of the literature, as the settings they fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Luong 2015: the attentional vector is fed back; the source's end token is not read.
LUONG: Mapping[str, Any] = {
    "encoder": {"kind": "lstm", "layers": 2, "bidirectional": False},
    "decoder": {
        "kind": "lstm",
        "layers": 2,
        "order": "update-look-generate",
        "start": "bridge",
        "read_out": "tanh",
        "feed": "attentional",
    },
    "attention": {"score": "general", "read_end": False},
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # Sutskever 2014: the source is one vector, and the decoder starts from it.
    "seq2seq": {
        "encoder": {"kind": "lstm", "bidirectional": False},
        "decoder": {"kind": "lstm", "source": "init", "start": "bridge"},
    },
    # Cho 2014: the same vector enters every step.
    "seq2seq-every-step": {
        "encoder": {"kind": "gru", "bidirectional": False},
        "decoder": {"kind": "gru", "source": "every-step", "start": "top", "read_out": "maxout"},
    },
    # Bahdanau 2015 as printed: look with the old state, move, speak.
    "rnnsearch": {
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {
            "kind": "gru",
            "order": "look-update-generate",
            "start": "backward",
            "read_out": "deep",
        },
        "attention": {"score": "additive"},
    },
    # Bahdanau 2015 as released: look, speak, move; the paper's sizes and initialisation.
    "rnnsearch-paper": {
        "embedding": 620,
        "dropout": 0.0,
        "initialise": "paper",
        "encoder": {"kind": "gru", "bidirectional": True, "hidden": 1000},
        "decoder": {
            "kind": "gru",
            "hidden": 1000,
            "order": "look-generate-update",
            "start": "backward",
            "read_out": "maxout",
        },
        "attention": {"score": "additive", "hidden": 1000},
    },
    # nmtpy and Nematus: the look stands between two GRUs.
    "cgru": {
        "tie": "output",
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {"kind": "gru", "order": "conditional", "start": "mean", "read_out": "deep"},
        "attention": {"score": "additive"},
    },
    # The plain pipeline: the decoder moves first, then looks with its new state, then speaks.
    "bigru-gru": {
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {"kind": "gru", "order": "update-look-generate", "start": "backward"},
        "attention": {"score": "additive"},
    },
    # The teaching pipeline: score with the old state, merge word and context, begin with </s>.
    "five-steps": {
        "encoder": {"kind": "gru", "bidirectional": False},
        "decoder": {
            "kind": "gru",
            "order": "look-update-generate",
            "start": "top",
            "combine": True,
            "first": "</s>",
        },
        "attention": {"score": "additive"},
    },
    "stacked-lstm": {
        "encoder": {"kind": "lstm", "layers": 2, "bidirectional": False},
        "decoder": {"kind": "lstm", "layers": 2, "order": "update-look-generate", "start": "top"},
        "attention": {"score": "general"},
    },
    "luong": LUONG,
    "luong-local": {**LUONG, "attention": {**LUONG["attention"], "placement": "local-p"}},
    # Gehring 2017, with a recurrent or a convolutional decoder.
    "conv-rnn": {
        "encoder": {"kind": "conv", "layers": 4, "positions": "learned"},
        "decoder": {"kind": "gru", "order": "update-look-generate", "start": "mean"},
        "attention": {"score": "general"},
    },
    "conv-conv": {
        "encoder": {"kind": "conv", "layers": 4, "positions": "learned"},
        "decoder": {"kind": "conv", "layers": 3, "positions": "learned"},
        "attention": {"score": "dot"},
    },
    # Rush 2015: no recurrence; the last words ask, smoothed source words answer.
    "abs": {
        "encoder": {"kind": "embedding"},
        "decoder": {"kind": "abs"},
        "attention": {"score": "general"},
    },
    # Vaswani 2017, normalised before each part.
    "transformer": {
        "tie": "output",
        "encoder": {"kind": "transformer", "layers": 3},
        "decoder": {"kind": "transformer", "layers": 3},
        "attention": {"score": "scaled-dot"},
    },
}

# Xu 2015: an LSTM that looks at regions with its old state, and a gate on what it saw.
SEEING: Mapping[str, Any] = {
    "encoder": {"kind": "regions"},
    "decoder": {
        "kind": "lstm",
        "order": "look-update-generate",
        "start": "mean",
        "read_out": "added",
        "gate": True,
    },
    "attention": {"score": "additive"},
}

CAPTIONERS: Mapping[str, Mapping[str, Any]] = {
    # Vinyals 2015: the picture is one vector, and the decoder starts from it.
    "caption-static": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "source": "init", "start": "mean", "read_out": "deep"},
    },
    # The same vector enters every step.
    "caption-static-every-step": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "source": "every-step", "start": "mean", "read_out": "deep"},
    },
    "caption-soft": SEEING,
    # The plain pipeline: move, look with the new state, speak.
    "caption-soft-plain": {
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "lstm", "order": "update-look-generate", "start": "mean"},
        "attention": {"score": "additive"},
    },
    # One region is drawn at each step; captions are written from the expectation, as the released code does.
    "caption-hard": {**SEEING, "attention": {**SEEING["attention"], "placement": "hard"}},
    "caption-transformer": {
        "tie": "output",
        "encoder": {"kind": "regions"},
        "decoder": {"kind": "transformer", "layers": 2},
        "attention": {"score": "scaled-dot"},
    },
}

# Texts are read without their end token: nothing but words can have weight.
_GRU: Mapping[str, Any] = {"kind": "gru", "bidirectional": True, "read_end": False}
_LSTM: Mapping[str, Any] = {**_GRU, "kind": "lstm"}

CLASSIFIERS: Mapping[str, Mapping[str, Any]] = {
    # The well-known tutorial's: the final state asks by dot products.
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
    # Several looks side by side, each by a part of one learned vector.
    "classify-heads": {
        "encoder": _GRU,
        "classifier": {"pooling": "attention", "query": "learned"},
        "attention": {"score": "scaled-dot", "heads": 4},
    },
    # Yang 2016, both levels: the words of each sentence, then the sentences.
    "classify-sentences": {
        "encoder": _GRU,
        "classifier": {"pooling": "attention", "query": "learned", "sentences": [".", "!", "?"]},
        "attention": {"score": "additive"},
    },
    # Zhou 2016: directions are added, `softmax(w' tanh(h_i))`, and what was read passes a tanh.
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
    # Cheng 2016: every word reads those before it, and the label is said by the mean of all states.
    "classify-lstmn": {"encoder": {"kind": "lstmn", "read_end": False}, "classifier": {"pooling": "mean"}},
    # Baselines that weigh nothing.
    "classify-mean": {"encoder": _LSTM, "classifier": {"pooling": "mean"}},
    "classify-max": {"encoder": _LSTM, "classifier": {"pooling": "max"}},
    "classify-last": {"encoder": _LSTM, "classifier": {"pooling": "last"}},
}

# He 2018: each item of a history is weighed for the item in question; long histories are punished less.
NAIS: Mapping[str, Any] = {
    "embedding": 16,
    "dropout": 0.0,
    "encoder": {"kind": "embedding"},
    "attention": {"score": "prod-relu", "normaliser": "smoothed-softmax", "beta": 0.5, "hidden": 16},
    "recommender": {"kind": "attention"},
}

RECOMMENDERS: Mapping[str, Mapping[str, Any]] = {
    "nais-prod": NAIS,
    "nais-concat": {**NAIS, "attention": {**NAIS["attention"], "score": "concat-relu"}},
    # Kabbur 2013: all items of a history speak alike.
    "fism": {
        "embedding": 16,
        "dropout": 0.0,
        "encoder": {"kind": "embedding"},
        "recommender": {"kind": "equal", "alpha": 0.0},
    },
    # What most people took; nothing is learnt.
    "popularity": {
        "dropout": 0.0,
        "encoder": {"kind": "embedding"},
        "recommender": {"kind": "popularity"},
    },
    # The items of a history read one another first, in no order: histories carry no time.
    "self-attention": {
        **NAIS,
        "dropout": 0.1,
        "encoder": {"kind": "transformer", "layers": 1, "hidden": 16, "heads": 2, "feedforward": 32},
    },
}

READERS: Mapping[str, Mapping[str, Any]] = {
    # The baseline: what was read is one state.
    "read-lstm": {"tie": "output", "reader": {"kind": "lstm"}},
    # Cheng 2016: what was read lies on a tape, and every word chooses what to read of it.
    "read-lstmn": {"tie": "output", "reader": {"kind": "lstmn"}},
    # Every word reads all before it, layer by layer.
    "read-transformer": {"tie": "output", "reader": {"kind": "transformer", "layers": 3}},
}

EVERY: Mapping[str, Mapping[str, Any]] = {**PRESETS, **CAPTIONERS, **CLASSIFIERS, **RECOMMENDERS, **READERS}
