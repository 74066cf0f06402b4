"""OpenNMT-py's checkpoints of models R and T as model folders of ours: the same weights, the same outputs.

    python benchmarks/speed/from_onmt.py R T       # from build/bench/onmt/R.pt to build/bench/heedful/R

What its equations have that ours do not by default is named in the recipe: a bias inside the additive score's
tanh, an attentional vector without a tanh (`read_out = "affine"`), a source without an end token, norms with
an epsilon of 1e-6. Projections that it has no bias for get one of zeros here.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import places
import sizes
import torch
from torch import Tensor

from heedful.config import Recipe
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.models import build
from heedful.tasks.folder import finished, save_model
from heedful.tasks.text import Vocabularies

Weights = Mapping[str, Tensor]
THEIRS = {"<pad>": "<blank>"}  # its names for our special tokens, where they differ
TABLE = "embeddings.make_embedding.emb_luts.0.weight"


def rows(ours: Sequence[str], theirs: Sequence[str]) -> Tensor:
    """For each of our words the number of theirs.

    >>> rows(["<pad>", "<unk>", "cat"], ["<unk>", "<blank>", "dog", "cat"])
    tensor([1, 0, 3])
    """
    number = {word: i for i, word in enumerate(theirs)}
    return torch.tensor([number[THEIRS.get(word, word)] for word in ours])


def model_tree(opt: Any) -> dict[str, Any]:
    """The `[model]` section that says what its options say."""
    recurrent = opt.decoder_type == "rnn"
    if recurrent and (opt.global_attention != "mlp" or not opt.input_feed or opt.bridge):
        raise ValueError(
            "only additive attention with its vector fed back and without a bridge is known here"
        )
    common = {"embedding": opt.src_word_vec_size, "tie": "none", "dropout": float(opt.dropout[0])}
    return {**common, **(_recurrent(opt) if recurrent else _transformer(opt))}


def _recurrent(opt: Any) -> dict[str, Any]:
    kind, both = opt.rnn_type.lower(), opt.encoder_type == "brnn"
    return {
        "preset": "luong",
        "encoder": {
            "kind": kind,
            "layers": opt.enc_layers,
            "hidden": opt.enc_hid_size // (2 if both else 1),
            "bidirectional": both,
            "read_end": False,
        },
        "decoder": {
            "kind": kind,
            "layers": opt.dec_layers,
            "hidden": opt.dec_hid_size,
            "start": "bridge",
            "order": "update-look-generate",
            "feed": "attentional",
            "read_out": "affine",
        },
        "attention": {"score": "additive", "hidden": opt.dec_hid_size, "bias": True},
    }


def _transformer(opt: Any) -> dict[str, Any]:
    common = {
        "kind": "transformer",
        "heads": opt.heads,
        "feedforward": opt.transformer_ff,
        "norm": "pre",
        "epsilon": opt.norm_eps,
    }
    return {
        "preset": "transformer",
        "encoder": {**common, "layers": opt.enc_layers, "hidden": opt.enc_hid_size, "read_end": False},
        "decoder": {**common, "layers": opt.dec_layers, "hidden": opt.dec_hid_size},
        "attention": {"score": "scaled-dot"},
    }


def weights(checkpoint: Mapping[str, Any], ours: tuple[Sequence[str], Sequence[str]]) -> dict[str, Tensor]:
    """Its weights under our names; `ours` are the words of both sides."""
    theirs, last = checkpoint["model"], checkpoint["generator"]
    source, target = (rows(ours[i], checkpoint["vocab"][side]) for i, side in enumerate(("src", "tgt")))
    found = {
        "embedding.weight": theirs[f"encoder.{TABLE}"][source],
        "decoder.embedding.weight": theirs[f"decoder.{TABLE}"][target],
    }
    if checkpoint["opt"].decoder_type == "rnn":
        output = "decoder.read_out.output"
        found |= _of_recurrent(theirs)
    else:
        output = "decoder.output"
        found |= _of_transformer(theirs)
    return {**found, f"{output}.weight": last["weight"][target], f"{output}.bias": last["bias"][target]}


def _of_recurrent(theirs: Weights) -> dict[str, Tensor]:
    found = {}
    for name, weight in theirs.items():
        if name.startswith("encoder.rnn."):  # weight_ih_l1_reverse: we have a module for each layer
            part, _, rest = name.removeprefix("encoder.rnn.").partition("_l")
            layer, _, way = rest.partition("_")
            found[f"encoder.layers.{layer}.{part}_l0{'_' + way if way else ''}"] = weight
        elif name.startswith("decoder.rnn.layers."):
            layer, part = name.removeprefix("decoder.rnn.layers.").split(".")
            found[f"decoder.stack.layers.{layer}.{part}_l0"] = weight
    out = theirs["decoder.attn.linear_out.weight"]  # over [context; state]; ours is over [state; context]
    state = out.shape[0]
    return {
        **found,
        "decoder.attention.score.query.weight": theirs["decoder.attn.linear_query.weight"],
        "decoder.attention.score.key.weight": theirs["decoder.attn.linear_context.weight"],
        "decoder.attention.score.key.bias": theirs["decoder.attn.linear_query.bias"],
        "decoder.attention.score.v": theirs["decoder.attn.v.weight"][0],
        "decoder.read_out.inner.weight": torch.cat([out[:, -state:], out[:, :-state]], dim=1),
        "decoder.read_out.inner.bias": theirs["decoder.attn.linear_out.bias"],
    }


PARTS = {  # of a layer: theirs, ours
    "self_attn.linear_query": "self_attention.heads.to_query",
    "self_attn.linear_keys": "self_attention.heads.to_key",
    "self_attn.linear_values": "self_attention.heads.to_value",
    "self_attn.final_linear": "self_attention.heads.out",
    "context_attn.linear_query": "cross_attention.heads.to_query",
    "context_attn.linear_keys": "cross_attention.heads.to_key",
    "context_attn.linear_values": "cross_attention.heads.to_value",
    "context_attn.final_linear": "cross_attention.heads.out",
    "layer_norm": "around_self.norm",  # of an encoder's layer
    "layer_norm_1": "around_self.norm",
    "layer_norm_2": "around_cross.norm",
    "feed_forward.layer_norm": "around_feed.norm",
    "feed_forward.w_1": "feed_forward.0",
    "feed_forward.w_2": "feed_forward.3",
}


def _of_transformer(theirs: Weights) -> dict[str, Tensor]:
    found = {}
    for side, stack in (("encoder", "transformer"), ("decoder", "transformer_layers")):
        for name, weight in theirs.items():
            if name.startswith(f"{side}.{stack}."):
                layer, rest = name.removeprefix(f"{side}.{stack}.").split(".", 1)
                part, _, kind = rest.rpartition(".")
                ours = f"{side}.layers.{layer}.{PARTS[part]}"
                found[f"{ours}.{kind}"] = weight
                if kind == "weight" and f"{name.removesuffix('weight')}bias" not in theirs:
                    found[f"{ours}.bias"] = weight.new_zeros(len(weight))
        for kind in ("weight", "bias"):
            found[f"{side}.last_norm.{kind}"] = theirs[f"{side}.layer_norm.{kind}"]
    return found


def recipe(opt: Any) -> Recipe:
    """A whole recipe, so that the folder can be opened like any other."""
    data = {
        split: [str(places.text(name, language)) for language in (places.SOURCE, places.TARGET)]
        for split, name in (("train", "train"), ("valid", "val"), ("test", places.TEST))
    }
    return Recipe.model_validate(
        {
            "data": data,
            "tokenizer": {"kind": "bpe", "size": sizes.PIECES, "shared": True},
            "model": model_tree(opt),
            "decoding": {"batch": sizes.BATCH, "max_length": sizes.LONGEST},
        }
    )


def convert(name: str) -> None:
    """The checkpoint of R or T as a model folder; what is there already stays."""
    checkpoint, folder = places.checkpoint(name), places.converted(name)
    if finished(folder) and (folder / "model.json").stat().st_mtime > checkpoint.stat().st_mtime:
        return
    # Our own file, made by train_onmt.py; it holds options beside weights.
    found = torch.load(checkpoint, map_location="cpu", weights_only=False)
    tokenizer = Tokenizer.load(places.PIECES)
    names = [*SPECIALS, *places.VOCABULARY.read_text(encoding="utf-8").splitlines()]
    ours = recipe(found["opt"])
    model = build(ours.model, len(tokenizer), len(tokenizer))
    model.load_state_dict(weights(found, (names, names)))
    model.eval()
    save_model(folder, ours, Vocabularies(tokenizer, tokenizer), model, {}, "trained by OpenNMT-py 3.5.1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", choices=("R", "T"))
    for name in parser.parse_args().models:
        convert(name)


if __name__ == "__main__":
    main()
