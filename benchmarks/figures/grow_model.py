"""Copy a small `cgru` model with one shared embedding into a wider one with another tokenizer.

    python benchmarks/figures/grow_model.py src/heedful/bundled/en-fr runs/new runs/grown

`runs/new` is a model folder of the new shape, whose weights are the values of the new units. On pieces that both
tokenizers have, the grown model computes what the small one does: weights from new units to old ones are zero (as in
Net2Net, Chen 2016, which copies units instead). A piece that is new gets the mean of the pieces it had before.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from heedful.tasks.model_card import CARD, WEIGHTS, hash_files
from heedful.tasks.model_folder import load_model
from heedful.tasks.self_test import make_self_test

TOKENIZER = "source.tokenizer.json"
EMBEDDING, BIAS = "decoder.embedding.weight", "decoder.read_out.output.bias"
Blocks = list[tuple[int, int]]  # (old size, new size) of each part of an axis


def old_units(blocks: Blocks) -> Tensor:
    """Return where the old units are on the new axis."""
    indices, start = [], 0
    for old, new in blocks:
        indices.append(torch.arange(start, start + old))
        start += new
    return torch.cat(indices)


def axis_blocks(old: dict[str, Tensor], new: dict[str, Tensor]) -> dict[str, tuple[Blocks, Blocks]]:
    """Return the blocks of the rows and columns of each matrix and vector."""

    def width(name: str, axis: int = 1) -> tuple[int, int]:
        return old[name].shape[axis], new[name].shape[axis]

    word, encoder = width(EMBEDDING), width("encoder.layers.0.weight_hh_l0")
    decoder, score = width("decoder.rnn.layers.0.weight_hh_l0"), width("decoder.attention.score.v", 0)
    context = [encoder, encoder]
    shapes: dict[str, tuple[Blocks, Blocks]] = {
        "decoder.attention.score.key.weight": ([score], context),
        "decoder.attention.score.query.weight": ([score], [decoder]),
        "decoder.attention.score.v": ([score], []),
        "decoder.read_out.projection.weight": ([word], [decoder, *context, word]),
        "decoder.read_out.projection.bias": ([word], []),
        "decoder.state_init.projections.0.weight": ([decoder], context),
        "decoder.state_init.projections.0.bias": ([decoder], []),
    }
    for prefix, hidden, inputs in (
        ("decoder.rnn.layers.0.", decoder, [word]),
        ("decoder.second_gru.", decoder, context),
        ("encoder.layers.0.", encoder, [word]),
    ):
        for name in (name for name in old if name.startswith(prefix)):
            columns = [hidden] if "weight_hh" in name else inputs if "weight_ih" in name else []
            shapes[name] = ([hidden] * 3, columns)
    return shapes


def grow(name: str, old: Tensor, new: Tensor, rows: Blocks, columns: Blocks) -> Tensor:
    """Return `new` with the old weights inside, and zeros where old units would read new ones."""
    grown, where = new.clone(), old_units(rows)
    if name.startswith("decoder.read_out"):  # new units are embedding columns too, which are not zero
        grown.zero_()
    if not columns:
        grown[where] = old
        return grown
    grown[where] = 0.0
    grown[where[:, None], old_units(columns)[None]] = old
    return grown


def transfer_vocabulary(old: Tensor, old_tokens: Tokenizer, new_tokens: Tokenizer) -> Tensor:
    """Return a row for each new token: that of the same old token, else the mean of the old pieces of its bytes."""
    vocabulary = old_tokens.get_vocab()
    rows = torch.zeros(new_tokens.get_vocab_size(), *old.shape[1:])
    for token, index in new_tokens.get_vocab().items():
        if token in vocabulary:
            rows[index] = old[vocabulary[token]]
        else:
            pieces = [piece.id for piece in old_tokens.model.tokenize(token)]
            rows[index] = old[pieces].mean(dim=0)
    return rows


def main(old_folder: Path, new_folder: Path, folder: Path) -> None:
    old = {name: weight.float() for name, weight in load_file(old_folder / WEIGHTS).items()}
    new = load_file(new_folder / WEIGHTS)
    tokenizers = [Tokenizer.from_file(str(path / TOKENIZER)) for path in (old_folder, new_folder)]
    blocks = axis_blocks(old, new)
    grown = {name: grow(name, old[name], new[name], *blocks[name]) for name in blocks}
    grown[BIAS] = transfer_vocabulary(old[BIAS], *tokenizers)
    words = transfer_vocabulary(old[EMBEDDING], *tokenizers)
    grown[EMBEDDING] = torch.cat([words, new[EMBEDDING][:, words.shape[1] :]], dim=1)
    assert grown.keys() == new.keys(), grown.keys() ^ new.keys()
    shutil.copytree(new_folder, folder, ignore=shutil.ignore_patterns("resume"))
    aliases = {"embedding.weight": EMBEDDING, "decoder.read_out.output.weight": EMBEDDING}
    save_file({name: weight.contiguous() for name, weight in grown.items()}, folder / WEIGHTS, metadata=aliases)
    card = json.loads((folder / CARD).read_text())
    card["files"] = hash_files(folder)
    card.pop("self_test", None)
    (folder / CARD).write_text(json.dumps(card))
    loaded = load_model(folder)
    card["self_test"] = make_self_test(loaded.recipe, loaded.assets, loaded.model)
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:4]))
