"""JoeyNMT 2.3.0 in its own environment, driven through its own training loop and `predict`.

To write, it gets OpenNMT-py's weights of model R. Its equations lack three small things for that: a bias in
the query's projection, one in the output matrix, and an attentional vector without a tanh. They are put into
the built model; and the source gets no end token. None of it changes what a step costs.
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
import places
import sizes
import torch
from joeynmt.config import parse_global_args
from joeynmt.data import load_data
from joeynmt.model import build_model
from joeynmt.prediction import predict
from pieces import Pieces
from protocol import Clock, Command, Worker
from sizes import R, T
from torch import nn

SEARCH = {
    "greedy": {"beam_size": 1, "batch_size": sizes.BATCH},
    "beam5": {"beam_size": 5, "beam_alpha": 1.0, "batch_size": sizes.BATCH},
    "single": {"beam_size": 1, "batch_size": 1},
}


def _side(kind: str, side: str) -> dict[str, Any]:
    """The encoder or the decoder of a model."""
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
    """Its YAML file, as a dict."""

    def language(name: str) -> dict[str, Any]:
        return {"lang": name, "level": "word", "lowercase": False, "voc_file": str(places.VOCABULARY)}

    return {
        "name": model,
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": {
            "train": str(places.DATA / "train.pieces"),
            "dev": str(places.DATA / "val.pieces"),
            "dataset_type": "plain",
            "src": language(places.SOURCE),
            "trg": language(places.TARGET),
        },
        "training": {
            "optimizer": "adam",
            "learning_rate": sizes.RATE,
            "scheduling": "exponential",  # it wants one; its torch-made plateau asks for what torch dropped
            "decrease_factor": 1.0,
            "clip_grad_norm": sizes.CLIP,
            "normalization": "tokens",
            "batch_type": "sentence",
            "batch_size": sizes.SENTENCES,
            "shuffle": True,
            "epochs": 10**6,
            "logging_freq": 100,
            "validation_freq": 10**9,
        },
        "testing": {"max_output_length": sizes.LONGEST, "min_output_length": 0},
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
        self.pieces = Pieces()

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        torch.set_num_threads(threads)
        step = joeynmt.training.TrainManager._train_step
        begun = False

        def watched(manager: Any, batch: Any) -> Any:
            nonlocal begun
            if begun:  # the step before is done
                clock.between()
            begun = True
            clock.more["parameters"] = sum(p.numel() for p in manager.model.parameters())
            clock.saw(int(batch.ntokens))
            return step(manager, batch)

        joeynmt.training.TrainManager._train_step = watched
        folder = places.SCRATCH / f"joey-{model}-{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        joeynmt.training.train(rank=0, world_size=0, cfg=configuration(model, folder), skip_test=True)

    @functools.cached_property
    def _reader(self) -> tuple[Any, Any, Any]:
        """The model with the given weights, an empty data set to put lines into, and all options."""
        folder = places.SCRATCH / "joey"
        args = parse_global_args(configuration("R", folder), rank=0, mode="train")
        source, target, _, _, stream = load_data(cfg=args.data, datasets=["stream"])
        model = build_model(args.model, src_vocab=source, trg_vocab=target)
        load(model, torch.load(places.checkpoint("R"), map_location="cpu"))
        stream.sequence_encoder[places.SOURCE] = lambda rows, **_: source.sentences_to_ids(
            rows, bos=False, eos=False
        )
        return model.eval(), stream, args

    def do_decode(
        self, model: str, how: str, sentences: int, threads: int = 2, split: str = places.TEST
    ) -> Command:
        assert model == "R", "only model R is decoded here"
        torch.set_num_threads(threads)
        reader, stream, args = self._reader
        lines = places.lines(split, places.SOURCE, sentences)
        begun = time.perf_counter()
        stream.reset_cache()
        for row in self.pieces.cut(lines):
            stream.set_item(" ".join(row))
        *_, tokens, _, _ = predict(
            model=reader,
            data=stream,
            device=args.device,
            n_gpu=0,
            normalization="none",
            args=args.test._replace(**SEARCH[how]),
            autocast=args.autocast,
        )
        outputs = [self.pieces.join([t for t in row if t != "</s>"]) for row in tokens]
        return {"seconds": time.perf_counter() - begun, "outputs": outputs}


def load(model: Any, checkpoint: dict[str, Any]) -> None:
    """OpenNMT-py's weights of model R under JoeyNMT's names."""
    theirs, last = checkpoint["model"], checkpoint["generator"]
    table = "embeddings.make_embedding.emb_luts.0.weight"
    names = {"<pad>": "<blank>"}

    def rows(vocabulary: Any, side: str) -> torch.Tensor:
        number = {word: i for i, word in enumerate(checkpoint["vocab"][side])}
        return torch.tensor([number[names.get(word, word)] for word in vocabulary._itos])

    source, target = rows(model.src_vocab, "src"), rows(model.trg_vocab, "tgt")
    decoder = model.decoder
    decoder.attention.query_layer = nn.Linear(R.decoder, R.attention)
    decoder.output_layer = nn.Linear(R.decoder, len(target))
    decoder.activation = nn.Identity()
    out = theirs["decoder.attn.linear_out.weight"]  # over [context; state]; here it is over [state; context]
    found = {
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
    model.load_state_dict(found)


if __name__ == "__main__":
    JoeyNMT().serve()
