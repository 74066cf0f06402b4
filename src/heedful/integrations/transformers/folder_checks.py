"""What is checked of a folder of transformers before it is opened, and errors of the library as errors of heedful."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.data.asset_files import read_json
from heedful.errors import HeedfulError, ModelError

MAX_INDEX_BYTES = 256_000_000
MAX_HEADER_BYTES = 100_000_000  # of a safetensors file, as the format says
LEAST_LIMIT = 1 << 20  # a size up to this one is never refused here
LAYERS = re.compile(r"(^|_)(?<!max_window_)layers?$")  # of Qwen2: layers without a window, more than there are
SIZES = re.compile(r"(_size|_dim|_heads|_positions|_position_embeddings|^d_\w+|^n_embd|^n_head|^n_ctx|^n_inner)$")


@contextmanager
def library_errors(message: str) -> Iterator[None]:
    """Raise ModelError, with the first line of its text, for whatever a damaged file leads to in transformers."""
    try:
        yield
    except BaseException as error:  # tokenizers' panics are no Exceptions
        if isinstance(error, HeedfulError | KeyboardInterrupt | SystemExit | MemoryError):
            raise
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"{message}: {reason}") from None


def check_folder(name: str, folder: Path) -> None:
    """Raise ModelError for files outside the folder, and for sizes in its config that its weights do not have."""
    _check_links(name, folder)
    shapes: list[list[int]] = []
    for path in sorted(folder.glob("*.safetensors")):
        shapes += _shapes(name, path)
    for path in sorted(folder.glob("*.index.json")):
        _check_index(name, path)
    if not shapes:
        return  # transformers says which files are missing
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError) as error:
        raise ModelError(f"{name}: config.json cannot be read: {error}") from None
    largest = max((size for shape in shapes for size in shape), default=0)
    _check_sizes(name, config, len(shapes), max(LEAST_LIMIT, 8 * largest))


def _check_links(name: str, folder: Path) -> None:
    """Refuse links out of the folder; those of the hub's cache lead to the blobs beside its snapshots."""
    home = folder.resolve()
    allowed = {home, home.parent.parent / "blobs"} if home.parent.name == "snapshots" else {home}
    for path in folder.rglob("*"):
        if path.is_symlink() and not allowed & set(path.resolve().parents):
            raise ModelError(f"{name}: {path.name} is a link out of the folder, which is not followed; copy the file")


def _check_index(name: str, path: Path) -> None:
    try:
        weights = read_json(path, MAX_INDEX_BYTES)["weight_map"]
        shards = {str(shard) for shard in weights.values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{name}: {path.name} is no index of weights") from None
    for shard in sorted(shards):
        if not re.fullmatch(r"[\w.-]+", shard) or shard.startswith("."):
            raise ModelError(f'{name}: {path.name} names "{shard[:60]}", which is no file of the folder')


def _shapes(name: str, path: Path) -> list[list[int]]:
    """Return the shapes of all tensors in a file, from its header."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > MAX_HEADER_BYTES:
                raise ValueError("its header is too long")
            header = json.loads(file.read(length))
        shapes = [tensor["shape"] for key, tensor in header.items() if key != "__metadata__"]
        if not all(isinstance(size, int) for shape in shapes for size in shape):
            raise ValueError("a shape is no list of numbers")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"{name}: {path.name} is no safetensors file: {error}") from None
    return shapes


def _check_sizes(name: str, config: Any, n_tensors: int, most: int) -> None:
    """Refuse sizes for which transformers would take memory and time before it compares them with the weights."""
    if not isinstance(config, dict):
        return
    for key, value in config.items():
        if isinstance(value, dict) and key.endswith("config"):
            _check_sizes(name, value, n_tensors, most)
        if not isinstance(value, int | float):
            continue
        limit = n_tensors if LAYERS.search(key) else most if SIZES.search(key) else None
        if limit is not None and value > limit:
            raise ModelError(f"{name}: config.json says {key} = {value:,}, which its weights do not have")
