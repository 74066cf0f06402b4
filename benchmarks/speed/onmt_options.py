"""Models R and T as OpenNMT-py's options. Only the standard library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import places
import sizes
from sizes import R, T

MODELS: dict[str, dict[str, Any]] = {
    "R": {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "GRU",
        "enc_layers": 1,
        "dec_layers": 1,
        "hidden_size": R.decoder,  # of the encoder: both directions together
        "word_vec_size": R.embedding,
        "global_attention": "mlp",  # additive; its inner width is the hidden one
        "input_feed": 1,
        "dropout": [R.dropout],
        "learning_rate": sizes.RATE,
    },
    "T": {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "enc_layers": T.layers,
        "dec_layers": T.layers,
        "hidden_size": T.width,
        "word_vec_size": T.width,
        "heads": T.heads,
        "transformer_ff": T.feedforward,
        "add_ffnbias": True,
        "position_encoding": True,
        "self_attn_type": "scaled-dot",  # what a CPU computes anyway, and what CTranslate2 takes
        "param_init": 0,
        "param_init_glorot": True,
        "dropout": [T.dropout],
        "attention_dropout": [T.dropout],
        "learning_rate": sizes.RATE * 16 * 20,  # noam counts in 1 / sqrt(width * warmup): 1e-3 at its highest
        "decay_method": "noam",
        "warmup_steps": 400,
    },
}


def options(model: str, save: Path, steps: int = 10**9, every: int = 0, onward: Path | None = None) -> Path:
    """A file of options to train this model by; `onward` is a checkpoint to go on from."""
    data = {
        "corpus": {
            "path_src": str(places.cut("train", places.SOURCE)),
            "path_tgt": str(places.cut("train", places.TARGET)),
        }
    }
    common: dict[str, Any] = {
        "data": data,
        "save_data": str(places.SCRATCH / "onmt"),
        "src_vocab": str(places.VOCABULARY),
        "tgt_vocab": str(places.VOCABULARY),
        "save_model": str(save),
        "save_checkpoint_steps": every or 10**9,
        "keep_checkpoint": 1,
        "train_steps": steps,
        "valid_steps": 10**9,
        "report_every": 50,
        "batch_type": "sents",
        "batch_size": sizes.SENTENCES,
        "bucket_size": sizes.PAIRS,  # all pairs once: its default reads them nine times before the first step
        "normalization": "tokens",
        "num_workers": 0,  # two cores are busy with the matrices
        "optim": "adam",
        "max_grad_norm": sizes.CLIP,
        "seed": 1,
    }
    if onward is not None:
        common["train_from"] = str(onward)
    places.SCRATCH.mkdir(parents=True, exist_ok=True)
    path = places.SCRATCH / f"onmt-{model}.yaml"
    path.write_text(json.dumps({**common, **MODELS[model]}, indent=1), encoding="utf-8")  # JSON is YAML too
    return path
