"""Pictures and what people said of them: five formats, one list.

- Flickr8k tokens: `name.jpg#0<TAB>caption`, with files of names for the splits;
- Karpathy's JSON: `{"images": [{"filename", "split", "sentences": [{"raw"}]}]}`;
- COCO's JSON: `{"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}`;
- TSV: `name<TAB>caption`, a line a caption;
- JSONL: `{"image": name, "captions": [...]}` or `{"image": name, "caption": "..."}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.readers import text_lines
from heedful.errors import DataError, nearest

SPLITS = {
    "train": ("train", "restval"),
    "valid": ("val", "valid", "dev"),
    "test": ("test",),
}  # Karpathy's names
WORD = re.compile(r"'?\w+(?:[-'’]\w+)*")


class Captioned(NamedTuple):
    """A picture and its captions."""

    image: str
    captions: tuple[str, ...]


def plain(caption: str) -> str:
    """Small letters, no punctuation: what is learnt, and what outputs are compared with.

    >>> plain("A man 's T-shirt , seen from above .")
    "a man 's t-shirt seen from above"
    """
    return " ".join(WORD.findall(caption.lower()))


def read_captions(path: Path) -> tuple[list[Captioned], dict[str, str]]:
    """All pictures of a file, and the split of those that it tells."""
    if path.name.endswith((".json", ".json.gz")):
        return _json(path)
    rows: dict[str, list[str]] = {}
    for image, caption in _jsonl(path) if ".jsonl" in path.name else _lines(path):
        rows.setdefault(image, []).append(caption)
    return _listed(rows, path), {}


def _listed(rows: Mapping[str, Iterable[str]], path: Path) -> list[Captioned]:
    if not rows:
        raise DataError(f"{path}: no captions in it")
    return [Captioned(image, tuple(captions)) for image, captions in rows.items()]


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_lines(path), 1):
        name, tab, caption = line.partition("\t")
        if not line.strip():
            continue
        if not tab or not caption.strip():
            raise DataError(f"{path}, line {number}: expected a picture's name, a tab and a caption")
        image, _, which = name.rpartition("#")
        yield (image if image and which.isdigit() else name), caption.strip()


def _jsonl(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            captions = row["captions"] if "captions" in row else [row["caption"]]
            found = [(str(row["image"]), str(caption).strip()) for caption in captions]
        except (ValueError, KeyError, TypeError):
            raise DataError(f'{path}, line {number}: expected {{"image": name, "captions": [...]}}') from None
        yield from found


def _json(path: Path) -> tuple[list[Captioned], dict[str, str]]:
    try:
        tree: Any = json.loads("\n".join(text_lines(path)))
        images = tree["images"]
        if "annotations" in tree:
            return _coco(tree, path), {}
        rows = {
            str(image["filename"]): [str(s["raw"]).strip() for s in image["sentences"]] for image in images
        }
        told = {name: split for split, names in SPLITS.items() for name in names}
        splits = {
            str(image["filename"]): told[image["split"]] for image in images if image.get("split") in told
        }
        return _listed(rows, path), splits
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: neither Karpathy's nor COCO's JSON: {error!r}") from None


def _coco(tree: Mapping[str, Any], path: Path) -> list[Captioned]:
    names = {image["id"]: str(image["file_name"]) for image in tree["images"]}
    rows: dict[str, list[str]] = {}
    for note in tree["annotations"]:
        if note["image_id"] not in names:
            raise DataError(f"{path}: a caption of picture {note['image_id']}, which is not in it")
        rows.setdefault(names[note["image_id"]], []).append(str(note["caption"]).strip())
    return _listed(rows, path)


def split_captions(
    everything: Iterable[Captioned], told: Mapping[str, str], lists: Mapping[str, Path]
) -> dict[str, list[Captioned]]:
    """The pictures of each split: by lists of names, else as the file itself tells."""
    by_name = {item.image: item for item in everything}
    found: dict[str, list[Captioned]] = {}
    for split, path in lists.items():
        names = [line.strip() for line in text_lines(path) if line.strip()]
        missing = [name for name in names if name not in by_name]
        if missing:
            raise DataError(
                f"{path}: {len(missing):,} pictures have no caption, such as {missing[0]};"
                f" {nearest(missing[0], by_name)}"
            )
        found[split] = [by_name[name] for name in names]
    for name, split in told.items():
        if split not in lists:
            found.setdefault(split, []).append(by_name[name])
    return found
