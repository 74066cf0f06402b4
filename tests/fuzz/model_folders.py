"""Cases of model folders in which one file, or several, were changed."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tomllib
import zipfile
import zlib
from random import Random
from typing import Any

import numpy as np
import tomli_w

from fuzz.case import LINK, OUTSIDE, Case
from fuzz.corpus import Corpus
from fuzz.data_files import LABELED, PAIRS
from fuzz.mutate import NUMBERS, mutate_bytes, mutate_tree, odd_string
from fuzz.recipes import mutate_recipe

LIMITS = (RecursionError, MemoryError)  # of this process, reached by an earlier change
FLOATS = (float("nan"), float("inf"), 3e38, -3e38, 1e-45)
VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "translate": (("translate",), ("translate", "--beam", "2"), ("translate", "--int8"), ("translate", "--json")),
    "transduce": (("transduce",), ("transduce", "--beam", "3", "--json")),
    "classify": (("classify",), ("classify", "--json")),
    "recommend": (("recommend", "--user", "1"), ("recommend", "--items", "id:1; id:2", "--json")),
    "read": (("read",), ("read", "--json")),
    "caption": (("caption", "photo.png"), ("caption", "photo.png", "--json")),
}
COMMON = (
    ("check", "m"),
    ("trace", "INPUT", "-m", "m", "-o", "t.json"),
    ("evaluate", "-m", "m", "--data", "d.tsv", "--json"),
)
TASKS = {
    "translate": "translate", "transformer": "translate", "transduce": "transduce", "classify": "classify",
    "recommend": "recommend", "popularity": "recommend", "read": "read", "read-transformer": "read",
    "caption": "caption",
    "format-1": "translate", "format-1-transformer": "translate",
}  # fmt: skip
# The recipe's own data may be a world of any size, which takes as long as it takes.
EXAMPLES = {"translate": PAIRS, "transduce": PAIRS, "classify": LABELED}
LINE = b"the cat sees a dog\n"


def model_case(corpus: Corpus, rng: Random) -> Case:
    """Return a changed model folder and a command that uses it."""
    names = sorted(corpus.models)
    model = rng.choice([name for name in names if name != "caption" or rng.random() < 0.6])  # the slowest
    files = dict(corpus.models[model])
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(sorted(files))
        files[name] = mutate_file(name, files[name], rng)
    if rng.random() < 0.9:
        files = write_hashes(files)
    if rng.random() < 0.03:
        del files[rng.choice(sorted(files))]
    if rng.random() < 0.03:
        name = rng.choice(sorted(files))
        files[name] = LINK + f"../../{OUTSIDE}/{model}/{name}".encode()
    argv, outputs = _command(TASKS[model], rng)
    content = {f"m/{name}": data for name, data in files.items()}
    if TASKS[model] == "caption":
        content["photo.png"] = corpus.photo
    if "d.tsv" in argv:
        content["d.tsv"] = EXAMPLES[TASKS[model]]
    folders = {"m": model} if rng.random() < 0.85 else {}
    stdin = LINE if TASKS[model] != "caption" else b""
    return Case("model", argv, content, stdin, outputs, folders, private=True)


def write_hashes(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with a card that has the hashes of the others, as a stranger would write it."""
    try:
        card = json.loads(files["model.json"])
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name in card["files"]}
        return {**files, "model.json": json.dumps({**card, "files": hashes}).encode("utf-8")}
    except (ValueError, KeyError, TypeError, RecursionError):
        return files  # a card without hashes, or one that was changed itself


def _command(task: str, rng: Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if rng.random() < 0.75:
        verb = rng.choice(VERBS[task])
        return (*verb, "-m", "m"), ()
    command = rng.choice(COMMON if task in EXAMPLES else COMMON[:2])
    source = {"recommend": "user:1", "caption": "photo.png"}.get(task, "the cat sees")
    argv = tuple(source if word == "INPUT" else word for word in command)
    return argv, ("t.json",) if "-o" in argv else ()


def mutate_file(name: str, data: bytes, rng: Random) -> bytes:
    """Change one file of a model folder in the way of its format, or as bytes."""
    if rng.random() < 0.2:
        return mutate_bytes(data, rng, rng.choice((1, 1, 3)))
    try:
        return _mutate_format(name, data, rng)
    except (ValueError, TypeError, LookupError, struct.error, zipfile.BadZipFile, zlib.error, OSError, *LIMITS):
        return mutate_bytes(data, rng)  # it was changed before, and is not of its format any more


def _mutate_format(name: str, data: bytes, rng: Random) -> bytes:
    if name.endswith(".toml") and rng.random() < 0.3:
        return _set_value(data, rng)
    if name.endswith(".toml"):
        return mutate_recipe(data, rng, rng.choice((1, 1, 2)))
    if name.endswith(".json"):
        return json.dumps(_mutate_json(name, json.loads(data), rng)).encode("utf-8")
    if name.endswith(".safetensors"):
        return mutate_safetensors(data, rng)
    if name.endswith(".npz"):
        return mutate_npz(data, rng)
    return mutate_bytes(data, rng)


def _set_value(data: bytes, rng: Random) -> bytes:
    """Set one of the values of a recipe on which the size of the model, or what is loaded, depends."""
    tree = tomllib.loads(data.decode("utf-8"))
    path, values = rng.choice(SETTINGS)
    *sections, key = path.split(".")
    table = tree
    for section in sections:
        table = table.setdefault(section, {})
    table[key] = rng.choice(values)
    return tomli_w.dumps(tree).encode("utf-8")


SIZES = (0, 1, 5, 20_000, 10**6, 10**8, 2**31, 10**12, 2**63 - 1)
STRANGERS = (
    "stranger:Net",
    "stranger.evil:Net",
    "timm:resnet18",
    "torchvision:resnet18",
    "os:system",
    "efficientnet-lite4",
)
SETTINGS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("data.images.backbone", STRANGERS), ("data.images.weights", ("../../outside/secret.tsv", "/dev/zero")),
    ("data.images.size", SIZES), ("data.images.tune_backbone", (True,)), ("data.max_source", SIZES),
    ("model.encoder.hidden", SIZES), ("model.decoder.hidden", SIZES), ("model.embedding", SIZES),
    ("model.encoder.layers", SIZES), ("model.decoder.layers", SIZES), ("model.attention.hidden", SIZES),
    ("model.attention.window", SIZES), ("model.encoder.heads", SIZES), ("model.decoder.heads", SIZES),
    ("model.encoder.feedforward", SIZES), ("model.encoder.max_positions", SIZES),
    ("model.decoder.max_positions", SIZES), ("model.attention.max_source_positions", SIZES),
    ("model.language_model.hidden", SIZES), ("model.language_model.layers", SIZES),
    ("model.language_model.shortlist", SIZES), ("model.language_model.max_positions", SIZES),
    ("decoding.beam", SIZES), ("decoding.max_length", SIZES), ("decoding.n_best", SIZES),
    ("decoding.batch_size", SIZES),
    ("decoding.method", ("sample", "beam", "greedy")), ("decoding.temperature", (0.0, 1e-300, 1e300, -1.0)),
    ("training.init_from", ("../../outside/translate",)), ("training.teachers", (["../../outside/translate"],)),
    ("data.test", (["../../outside/secret.tsv"],)), ("data.vectors", ("../../outside/secret.tsv",)),
)  # fmt: skip


def _mutate_json(name: str, tree: Any, rng: Random) -> Any:
    tree = mutate_tree(tree, rng, rng.choice((1, 1, 2)))
    if "tokenizer" in name and rng.random() < 0.35 and isinstance(tree, dict):
        key = rng.choice(("padding", "normalizer", "pre_tokenizer", "truncation", "post_processor", "decoder"))
        tree[key] = rng.choice(TOKENIZER_PARTS)
    return tree


TOKENIZER_PARTS: tuple[Any, ...] = (
    {"strategy": {"Fixed": 300_000_000}, "direction": "Right",
    "pad_to_multiple_of": None, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"},
    {"strategy": "BatchLongest", "direction": "Left",
    "pad_to_multiple_of": 2**40, "pad_id": 10**9, "pad_type_id": 0, "pad_token": "x"},
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}] * 5},
    {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"},
    {"type": "Replace", "pattern": {"Regex": "("}, "content": "b"},
    {"type": "Split", "pattern": {"Regex": "(?:(?:x*)*)*y"}, "behavior": "Isolated", "invert": False},
    {"type": "Prepend", "prepend": "y" * 10_000},
    {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
    {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 5},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    None,
)  # fmt: skip


def mutate_safetensors(data: bytes, rng: Random) -> bytes:
    """Change the header, its length, or numbers of a weights file."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = data[8 : 8 + length], bytearray(data[8 + length :])
    choice = rng.random()
    if choice < 0.35 and len(body) >= 4:
        for _ in range(rng.choice((1, 1, 20, len(body) // 4))):
            struct.pack_into("<f", body, 4 * rng.randrange(len(body) // 4), rng.choice(FLOATS))
    elif choice < 0.5 and body:
        body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    elif choice < 0.9:
        header = json.dumps(mutate_tree(json.loads(header), rng, rng.choice((1, 1, 2)))).encode("utf-8")
        length = len(header)
    else:
        length = rng.choice((0, 1, length - 1, length + 1, 2**31, 2**40, 2**63, 2**64 - 1))
    return struct.pack("<Q", length) + header + bytes(body)


def mutate_npz(data: bytes, rng: Random) -> bytes:
    """Change the arrays of a catalog: values, types, shapes, names."""
    with np.load(io.BytesIO(data)) as file:
        arrays: dict[str, Any] = {name: file[name] for name in file.files}
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    choice = rng.randrange(9)
    if choice == 0:
        del arrays[name]
    elif choice == 1:
        arrays[name] = array[: len(array) // 2]
    elif choice == 2:
        arrays[name] = rng.choice((array.reshape(1, -1), array[0], np.zeros((0,)), np.zeros((2, 2)), np.array("x")))
    elif choice == 3:
        arrays[name] = (
            array.astype(rng.choice(("U1", "S3", "f8", "i8", "u1", "?", "c16")))
            if array.dtype.kind in "if"
            else array.astype("S")
        )
    elif choice == 4 and array.dtype.kind in "iu":
        changed = array.astype(np.int64)
        changed[rng.randrange(len(changed))] = rng.choice((-1, 2**31, 2**62, -(2**62), 0, 10**6))
        arrays[name] = changed
    elif choice == 5 and array.dtype.kind == "U":
        texts = array.tolist()
        for _ in range(rng.choice((1, 5))):
            texts[rng.randrange(len(texts))] = odd_string(rng)
        arrays[name] = np.array(texts)
    elif choice == 6:
        arrays[odd_string(rng).replace("\x00", "")[:40] or "x"] = array
    elif choice == 7 and array.dtype.kind in "if":
        changed = array.astype(np.float64)
        changed[rng.randrange(len(changed))] = float(rng.choice(NUMBERS))
        arrays[name] = changed
    else:
        return _claim_shape(arrays, name, rng)
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _claim_shape(arrays: dict[str, Any], name: str, rng: Random) -> bytes:
    """Write an array whose header claims another shape or type than its data has."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, array in arrays.items():
            member = io.BytesIO()
            header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
            if key == name:
                header["shape"] = rng.choice(
                    ((99_999_999_999,), (-1,), (2**31, 2), (), (10**9,), array.shape, (2**62, 4))
                )
                header["descr"] = rng.choice((array.dtype.str, "|O", "<U500000", "<f8", "|S1"))
            np.lib.format.write_array_header_1_0(member, header)
            member.write(array.tobytes())
            archive.writestr(f"{key}.npy", member.getvalue())
    return out.getvalue()
