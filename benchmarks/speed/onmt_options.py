"""Models R and T as OpenNMT-py's options. Imports only the standard library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import paths
import sizes
from sizes import R, T

MODELS: dict[str, dict[str, Any]] = {
    "R": {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": "GRU",
        "enc_layers": 1,
        "dec_layers": 1,
        "hidden_size": R.decoder,  # encoder: both directions together
        "word_vec_size": R.embedding,
        "global_attention": "mlp",  # additive, of the decoder's width
        "input_feed": 1,
        "dropout": [R.dropout],
        "learning_rate": sizes.LEARNING_RATE,
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
        "self_attn_type": "scaled-dot",  # what a CPU computes anyway, and what CTranslate2 supports
        "param_init": 0,
        "param_init_glorot": True,
        "dropout": [T.dropout],
        "attention_dropout": [T.dropout],
        "learning_rate": sizes.LEARNING_RATE * 16 * 20,  # noam is in units of 1 / sqrt(width * warmup): at most 1e-3
        "decay_method": "noam",
        "warmup_steps": 400,
    },
}


def write_options(model: str, save: Path, steps: int = 10**9, every: int = 0, resume: Path | None = None) -> Path:
    """Write the file of options that trains this model; `resume` is a checkpoint to continue from."""
    data = {
        "corpus": {
            "path_src": str(paths.subword_file("train", paths.SOURCE)),
            "path_tgt": str(paths.subword_file("train", paths.TARGET)),
        }
    }
    common: dict[str, Any] = {
        "data": data,
        "save_data": str(paths.SCRATCH / "onmt"),
        "src_vocab": str(paths.VOCABULARY),
        "tgt_vocab": str(paths.VOCABULARY),
        "save_model": str(save),
        "save_checkpoint_steps": every or 10**9,
        "keep_checkpoint": 1,
        "train_steps": steps,
        "valid_steps": 10**9,
        "report_every": 50,
        "batch_type": "sents",
        "batch_size": sizes.BATCH_SENTENCES,
        "bucket_size": sizes.TRAINING_PAIRS,  # its default reads the pairs nine times before the first step
        "normalization": "tokens",
        "num_workers": 0,  # both cores are busy with matrix products
        "optim": "adam",
        "max_grad_norm": sizes.GRAD_CLIP,
        "seed": 1,
    }
    if resume is not None:
        common["train_from"] = str(resume)
    paths.SCRATCH.mkdir(parents=True, exist_ok=True)
    path = paths.SCRATCH / f"onmt-{model}.yaml"
    path.write_text(json.dumps({**common, **MODELS[model]}, indent=1), encoding="utf-8")  # JSON is YAML too
    return path
