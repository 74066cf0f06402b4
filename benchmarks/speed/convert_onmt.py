"""Convert OpenNMT-py's checkpoints of models R and T to heedful model folders: same weights, same outputs.

    python benchmarks/speed/convert_onmt.py R T       # from onmt/R.pt to heedful/R in $HEEDFUL_RUNS/bench

The recipe names what differs from heedful's defaults: a bias inside the additive score's tanh, an attentional vector
without a tanh (`read_out = "affine"`), a source without an end token, layer norms with an epsilon of 1e-6. Projections
without a bias get a bias of zeros.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import paths
import sizes
import torch
from torch import Tensor

from heedful.config import Recipe
from heedful.data.tokenizer import SPECIALS, Tokenizer
from heedful.models import build_seq2seq
from heedful.tasks.model_card import is_finished
from heedful.tasks.model_folder import save_model
from heedful.tasks.seq2seq.assets import Seq2SeqAssets

Weights = Mapping[str, Tensor]
ONMT_SPECIALS = {"<pad>": "<blank>"}  # its names of special tokens, where they differ
EMBEDDING = "embeddings.make_embedding.emb_luts.0.weight"


def match_ids(ours: Sequence[str], theirs: Sequence[str]) -> Tensor:
    """Return, for each token of heedful's vocabulary, its id in OpenNMT-py's.

    >>> match_ids(["<pad>", "<unk>", "cat"], ["<unk>", "<blank>", "dog", "cat"])
    tensor([1, 0, 3])
    """
    number = {word: i for i, word in enumerate(theirs)}
    return torch.tensor([number[ONMT_SPECIALS.get(word, word)] for word in ours])


def model_section(opt: Any) -> dict[str, Any]:
    """Return the `[model]` section of a recipe for OpenNMT-py's options."""
    recurrent = opt.decoder_type == "rnn"
    if recurrent and (opt.global_attention != "mlp" or not opt.input_feed or opt.bridge):
        raise ValueError("only additive attention with input feeding and without a bridge can be converted")
    common = {"embedding": opt.src_word_vec_size, "tie_embeddings": "none", "dropout": float(opt.dropout[0])}
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
            "state_init": "bridge",
            "step_order": "update-attend-generate",
            "input_feeding": "attentional",
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
        "norm_epsilon": opt.norm_eps,
    }
    return {
        "preset": "transformer",
        "encoder": {**common, "layers": opt.enc_layers, "hidden": opt.enc_hid_size, "read_end": False},
        "decoder": {**common, "layers": opt.dec_layers, "hidden": opt.dec_hid_size},
        "attention": {"score": "scaled-dot"},
    }


def convert_weights(checkpoint: Mapping[str, Any], ours: tuple[Sequence[str], Sequence[str]]) -> dict[str, Tensor]:
    """Return the weights under heedful's names; `ours` are the vocabularies of both sides."""
    theirs, last = checkpoint["model"], checkpoint["generator"]
    source, target = (match_ids(ours[i], checkpoint["vocab"][side]) for i, side in enumerate(("src", "tgt")))
    converted = {
        "embedding.weight": theirs[f"encoder.{EMBEDDING}"][source],
        "decoder.embedding.weight": theirs[f"decoder.{EMBEDDING}"][target],
    }
    if checkpoint["opt"].decoder_type == "rnn":
        output = "decoder.read_out.output"
        converted |= _convert_recurrent(theirs)
    else:
        output = "decoder.output"
        converted |= _convert_transformer(theirs)
    return {**converted, f"{output}.weight": last["weight"][target], f"{output}.bias": last["bias"][target]}


def _convert_recurrent(theirs: Weights) -> dict[str, Tensor]:
    converted = {}
    for name, weight in theirs.items():
        if name.startswith("encoder.rnn."):  # weight_ih_l1_reverse: heedful has one module per layer
            part, _, rest = name.removeprefix("encoder.rnn.").partition("_l")
            layer, _, direction = rest.partition("_")
            converted[f"encoder.layers.{layer}.{part}_l0{'_' + direction if direction else ''}"] = weight
        elif name.startswith("decoder.rnn.layers."):
            layer, part = name.removeprefix("decoder.rnn.layers.").split(".")
            converted[f"decoder.rnn.layers.{layer}.{part}_l0"] = weight
    out = theirs["decoder.attn.linear_out.weight"]  # over [context; state]; heedful's is over [state; context]
    state = out.shape[0]
    return {
        **converted,
        "decoder.attention.score.query.weight": theirs["decoder.attn.linear_query.weight"],
        "decoder.attention.score.key.weight": theirs["decoder.attn.linear_context.weight"],
        "decoder.attention.score.key.bias": theirs["decoder.attn.linear_query.bias"],
        "decoder.attention.score.v": theirs["decoder.attn.v.weight"][0],
        "decoder.read_out.projection.weight": torch.cat([out[:, -state:], out[:, :-state]], dim=1),
        "decoder.read_out.projection.bias": theirs["decoder.attn.linear_out.bias"],
    }


LAYER_NAMES = {  # OpenNMT-py's name: heedful's name
    "self_attn.linear_query": "self_attention.heads.to_query",
    "self_attn.linear_keys": "self_attention.heads.to_key",
    "self_attn.linear_values": "self_attention.heads.to_value",
    "self_attn.final_linear": "self_attention.heads.out",
    "context_attn.linear_query": "cross_attention.heads.to_query",
    "context_attn.linear_keys": "cross_attention.heads.to_key",
    "context_attn.linear_values": "cross_attention.heads.to_value",
    "context_attn.final_linear": "cross_attention.heads.out",
    "layer_norm": "self_residual.norm",  # encoder layers have one
    "layer_norm_1": "self_residual.norm",
    "layer_norm_2": "cross_residual.norm",
    "feed_forward.layer_norm": "feed_forward_residual.norm",
    "feed_forward.w_1": "feed_forward.0",
    "feed_forward.w_2": "feed_forward.3",
}


def _convert_transformer(theirs: Weights) -> dict[str, Tensor]:
    converted = {}
    for side, stack in (("encoder", "transformer"), ("decoder", "transformer_layers")):
        for name, weight in theirs.items():
            if name.startswith(f"{side}.{stack}."):
                layer, rest = name.removeprefix(f"{side}.{stack}.").split(".", 1)
                part, _, kind = rest.rpartition(".")
                ours = f"{side}.layers.{layer}.{LAYER_NAMES[part]}"
                converted[f"{ours}.{kind}"] = weight
                if kind == "weight" and f"{name.removesuffix('weight')}bias" not in theirs:
                    converted[f"{ours}.bias"] = weight.new_zeros(len(weight))
        for kind in ("weight", "bias"):
            converted[f"{side}.final_norm.{kind}"] = theirs[f"{side}.layer_norm.{kind}"]
    return converted


def make_recipe(opt: Any) -> Recipe:
    """Return a complete recipe, so that the folder can be opened like any other."""
    data = {
        split: [str(paths.text_file(name, language)) for language in (paths.SOURCE, paths.TARGET)]
        for split, name in (("train", "train"), ("valid", "val"), ("test", paths.TEST))
    }
    return Recipe.model_validate(
        {
            "data": data,
            "tokenizer": {"kind": "bpe", "vocab_size": sizes.VOCABULARY_SIZE, "shared": True},
            "model": model_section(opt),
            "decoding": {"batch_size": sizes.DECODING_BATCH, "max_length": sizes.MAX_LENGTH},
        }
    )


def convert(name: str) -> None:
    """Write the model folder of R or T, unless a newer one than the checkpoint exists."""
    checkpoint_file, folder = paths.checkpoint(name), paths.model_folder(name)
    if is_finished(folder) and (folder / "model.json").stat().st_mtime > checkpoint_file.stat().st_mtime:
        return
    # weights_only=False: the file holds options too; train_onmt.py wrote it on this machine
    checkpoint = torch.load(checkpoint_file, map_location="cpu", weights_only=False)
    tokenizer = Tokenizer.load(paths.TOKENIZER)
    names = [*SPECIALS, *paths.VOCABULARY.read_text(encoding="utf-8").splitlines()]
    recipe = make_recipe(checkpoint["opt"])
    model = build_seq2seq(recipe.model, len(tokenizer), len(tokenizer))
    model.load_state_dict(convert_weights(checkpoint, (names, names)))
    model.eval()
    save_model(folder, recipe, Seq2SeqAssets(tokenizer, tokenizer), model, {}, "trained by OpenNMT-py 3.5.1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", choices=("R", "T"))
    for name in parser.parse_args().models:
        convert(name)


if __name__ == "__main__":
    main()
