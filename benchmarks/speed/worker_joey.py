"""Worker for JoeyNMT 2.3.0 in its own environment, with its own training loop and `predict`.

For decoding it gets OpenNMT-py's weights of model R. Its equations lack three things for that: a bias in the query
projection, one in the output layer, and an attentional vector without a tanh. They are added to the built model, and
the source gets no end token. None of this changes the cost of a step.
"""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
os.environ.setdefault("PYTHONWARNINGS", "ignore")

import functools
import time
from pathlib import Path
from typing import Any

import joeynmt.training
import paths
import sizes
import torch
from joeynmt.config import parse_global_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.prediction import predict
from protocol import Clock, Message, Worker
from sizes import R, T
from subwords import SubwordTokenizer
from torch import nn

DECODING = {
    "greedy": {"beam_size": 1, "batch_size": sizes.DECODING_BATCH},
    "beam5": {"beam_size": 5, "beam_alpha": 1.0, "batch_size": sizes.DECODING_BATCH},
    "single": {"beam_size": 1, "batch_size": 1},
}


def _side(kind: str, side: str) -> dict[str, Any]:
    """Return the configuration of the encoder or the decoder."""
    if kind == "T":
        return {
            "type": "transformer",
            "num_layers": T.layers,
            "num_heads": T.heads,
            "hidden_size": T.width,
            "ff_size": T.feedforward,
            "dropout": T.dropout,
            "layer_norm": "pre",
            "embeddings": {"embedding_dim": T.width, "scale": True, "dropout": T.dropout},
        }
    common = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "dropout": R.dropout,
        "embeddings": {"embedding_dim": R.embedding, "scale": False, "dropout": R.dropout},
    }
    if side == "encoder":
        return {**common, "hidden_size": R.encoder, "bidirectional": True}
    return {
        **common,
        "hidden_size": R.decoder,
        "hidden_dropout": R.dropout,
        "attention": "bahdanau",
        "input_feeding": True,
        "init_hidden": "last",
    }


def configuration(model: str, folder: Path) -> dict[str, Any]:
    """Return JoeyNMT's configuration file as a dict."""

    def language(name: str) -> dict[str, Any]:
        return {"lang": name, "level": "word", "lowercase": False, "voc_file": str(paths.VOCABULARY)}

    return {
        "name": model,
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(paths.DATA / "train.subwords"),
            "dev": str(paths.DATA / "val.subwords"),
            "dataset_type": "plain",
            "src": language(paths.SOURCE),
            "trg": language(paths.TARGET),
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": sizes.LEARNING_RATE,
            "scheduling": "exponential",  # required; its plateau scheduler uses an argument that torch removed
            "decrease_factor": 1.0,
            "clip_grad_norm": sizes.GRAD_CLIP,
            "normalization": "tokens",
            "batch_type": "sentence",
            "batch_size": sizes.BATCH_SENTENCES,
            "shuffle": True,
            "epochs": 10**6,
            "logging_freq": 100,
            "validation_freq": 10**9,
        },
        "testing": {"max_output_length": sizes.MAX_LENGTH, "min_output_length": 0},
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": False,
            "tied_softmax": False,
            "encoder": _side(model, "encoder"),
            "decoder": _side(model, "decoder"),
        },
    }


class JoeyNMT(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = SubwordTokenizer()

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        torch.set_num_threads(threads)
        train_step = joeynmt.training.TrainManager._train_step
        started = False

        def counted_step(manager: Any, batch: Any) -> Any:
            nonlocal started
            if started:  # the step before has ended
                clock.on_step_end()
            started = True
            clock.extra["parameters"] = sum(p.numel() for p in manager.model.parameters())
            clock.count_tokens(int(batch.ntokens))
            return train_step(manager, batch)

        joeynmt.training.TrainManager._train_step = counted_step
        folder = paths.SCRATCH / f"joey-{model}-{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        joeynmt.training.train(rank=0, world_size=0, cfg=configuration(model, folder), skip_test=True)

    @functools.cached_property
    def _model(self) -> tuple[Any, Any, Any]:
        """Return the model with OpenNMT-py's weights, an empty data set for lines, and all options."""
        folder = paths.SCRATCH / "joey"
        args = parse_global_args(configuration("R", folder), rank=0, mode="train")
        source, target, _, _, stream = load_data(cfg=args.data, datasets=["stream"])
        model = build_model(args.model, src_vocab=source, trg_vocab=target)
        load_weights(model, torch.load(paths.checkpoint("R"), map_location="cpu"))
        stream.sequence_encoder[paths.SOURCE] = lambda rows, **_: source.sentences_to_ids(rows, bos=False, eos=False)
        return model.eval(), stream, args

    def do_decode(self, model: str, method: str, sentences: int, threads: int = 2, split: str = paths.TEST) -> Message:
        assert model == "R", "only model R can be decoded"
        torch.set_num_threads(threads)
        joey, stream, args = self._model
        lines = paths.read_lines(split, paths.SOURCE, sentences)
        started = time.perf_counter()
        stream.reset_cache()
        for row in self.tokenizer.split(lines):
            stream.set_item(" ".join(row))
        *_, tokens, _, _ = predict(
            model=joey,
            data=stream,
            device=args.device,
            n_gpu=0,
            normalization="none",
            args=args.test._replace(**DECODING[method]),
            autocast=args.autocast,
        )
        outputs = [self.tokenizer.join([t for t in row if t != "</s>"]) for row in tokens]
        return {"seconds": time.perf_counter() - started, "outputs": outputs}


def load_weights(model: Any, checkpoint: dict[str, Any]) -> None:
    """Load OpenNMT-py's weights of model R under JoeyNMT's names."""
    theirs, last = checkpoint["model"], checkpoint["generator"]
    table = "embeddings.make_embedding.emb_luts.0.weight"
    specials = {"<pad>": "<blank>"}

    def match_ids(vocabulary: Any, side: str) -> torch.Tensor:
        number = {word: i for i, word in enumerate(checkpoint["vocab"][side])}
        return torch.tensor([number[specials.get(word, word)] for word in vocabulary._itos])

    source, target = match_ids(model.src_vocab, "src"), match_ids(model.trg_vocab, "tgt")
    decoder = model.decoder
    decoder.attention.query_layer = nn.Linear(R.decoder, R.attention)
    decoder.output_layer = nn.Linear(R.decoder, len(target))
    decoder.activation = nn.Identity()
    out = theirs["decoder.attn.linear_out.weight"]  # over [context; state]; JoeyNMT's is over [state; context]
    converted = {
        "src_embed.lut.weight": theirs[f"encoder.{table}"][source],
        "trg_embed.lut.weight": theirs[f"decoder.{table}"][target],
        **{name: weight for name, weight in theirs.items() if name.startswith("encoder.rnn.")},
        **{
            f"decoder.rnn.{part}_{gate}_l0": theirs[f"decoder.rnn.layers.0.{part}_{gate}"]
            for part in ("weight", "bias")
            for gate in ("ih", "hh")
        },
        "decoder.attention.query_layer.weight": theirs["decoder.attn.linear_query.weight"],
        "decoder.attention.query_layer.bias": theirs["decoder.attn.linear_query.bias"],
        "decoder.attention.key_layer.weight": theirs["decoder.attn.linear_context.weight"],
        "decoder.attention.energy_layer.weight": theirs["decoder.attn.v.weight"],
        "decoder.att_vector_layer.weight": torch.cat([out[:, R.decoder :], out[:, : R.decoder]], dim=1),
        "decoder.att_vector_layer.bias": theirs["decoder.attn.linear_out.bias"],
        "decoder.output_layer.weight": last["weight"][target],
        "decoder.output_layer.bias": last["bias"][target],
    }
    model.load_state_dict(converted)


if __name__ == "__main__":
    JoeyNMT().serve()
