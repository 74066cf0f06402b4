"""Image captions in four formats.

- Flickr8k tokens: `name.jpg#0<TAB>caption`, with files of image names for the splits;
- Karpathy's JSON: `{"images": [{"filename", "split", "sentences": [{"raw"}]}]}`;
- COCO's JSON: `{"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}`;
- tables (CSV, TSV, JSONL, JSON, Parquet): columns of image and caption, one caption or a list of captions per row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from heedful.config import DataConfig
from heedful.data.json_rows import JSON_SUFFIXES, MAX_JSON_BYTES
from heedful.data.lines import EXCERPT_LENGTH, BadLine, read_lines, read_text
from heedful.data.tables import Table
from heedful.errors import DataError, nearest

KARPATHY_SPLITS = {
    "train": "train",
    "restval": "train",
    "val": "valid",
    "valid": "valid",
    "dev": "valid",
    "test": "test",
}
MAX_NAMES_LISTED = 8  # images, in an error
WORD = re.compile(r"'?\w+(?:[-'’]\w+)*")


class CaptionedImage(NamedTuple):
    """The file name of an image, and its captions."""

    image: str
    captions: tuple[str, ...]


class CaptionFile(NamedTuple):
    """The images of a caption file, and the split of those for which the file names one."""

    images: list[CaptionedImage]
    splits: dict[str, str]
    note: str = ""  # for the log: the columns of a table


def normalize_caption(caption: str) -> str:
    """Return a caption in lower case without punctuation, as it is trained on and scored.

    >>> normalize_caption("A man 's T-shirt , seen from above .")
    "a man 's t-shirt seen from above"
    """
    return " ".join(WORD.findall(caption.lower()))


def read_captions(path: Path, data: DataConfig | None = None) -> CaptionFile:
    """Read all images of a caption file; the format follows from the name of the file and its content."""
    if path.name.lower().endswith(JSON_SUFFIXES) and (tree := _parse_tree(path)) is not None:
        return _read_tree(tree, path)
    table = _CaptionTable(path, ("image", "caption"), data)
    captions: dict[str, list[str]] = {}
    for image, caption in _read_table(table):
        captions.setdefault(image, []).append(caption)
    return CaptionFile(_group(captions, path), {}, table.describe())


def _group(captions: Mapping[str, Iterable[str]], path: Path) -> list[CaptionedImage]:
    if not captions:
        raise DataError(f"{path}: contains no captions")
    for name in captions:
        parts = PurePath(name).parts
        if not parts or ".." in parts or PurePath(name).is_absolute() or "\0" in name:
            raise DataError(f"{path}: image {name[:EXCERPT_LENGTH]!r}: expected a file within the folder of images")
    return [CaptionedImage(image, tuple(texts)) for image, texts in captions.items()]


class _CaptionTable(Table):
    """A table in which a cell may have a list of captions."""

    def _expand(self, values: list[object]) -> Iterable[list[object]]:
        image, captions = values
        return [[image, caption] for caption in captions] if isinstance(captions, list) else [values]


def _read_table(table: Table) -> Iterator[tuple[str, str]]:
    """Yield image and caption of every row; `name.jpg#0` of Flickr8k is the image `name.jpg`."""
    for row in table:
        if isinstance(row, BadLine):
            if row.reason != "blank":
                raise DataError(f"{row}; expected the name of an image and a caption")
        elif row is not None:
            name, caption = row.texts
            image, _, caption_number = name.rpartition("#")
            yield (image if image and caption_number.isdigit() else name).strip(), caption.strip()


def _parse_tree(path: Path) -> Mapping[str, Any] | None:
    """Return the object of a JSON file; None: it has a list of rows."""
    try:
        tree = json.loads(read_text(path, MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    return tree if isinstance(tree, Mapping) else None


def _read_tree(tree: Mapping[str, Any], path: Path) -> CaptionFile:
    try:
        images = _list(tree["images"])
        if "annotations" in tree:
            return CaptionFile(_parse_coco(tree, path), {})
        captions = {
            _text(image["filename"]): [_text(sentence["raw"]).strip() for sentence in _list(image["sentences"])]
            for image in images
        }
        splits = {
            image["filename"]: KARPATHY_SPLITS[image["split"]]
            for image in images
            if image.get("split") in KARPATHY_SPLITS
        }
        return CaptionFile(_group(captions, path), splits)
    except KeyError as error:
        raise DataError(f"{path}: neither Karpathy's nor COCO's JSON: no field {error}") from None
    except MALFORMED as error:
        raise DataError(f"{path}: neither Karpathy's nor COCO's JSON: {error}") from None


class _MalformedError(ValueError):
    """A value of JSON that has another type than a caption file has there."""


MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what a wrong tree of JSON raises


def _text(value: object) -> str:
    """Return a text of a caption file; other values and half surrogate pairs are malformed."""
    if not isinstance(value, str):
        raise _MalformedError(f"expected text, found {json.dumps(value)[:EXCERPT_LENGTH]}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _MalformedError(f"{value[:EXCERPT_LENGTH]!r} has half a surrogate pair, which is not valid Unicode")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise _MalformedError(f"expected a list, found {json.dumps(value)[:EXCERPT_LENGTH]}")
    return value


def _parse_coco(tree: Mapping[str, Any], path: Path) -> list[CaptionedImage]:
    names = {image["id"]: _text(image["file_name"]) for image in tree["images"]}
    captions: dict[str, list[str]] = {}
    for annotation in _list(tree["annotations"]):
        if annotation["image_id"] not in names:
            raise DataError(f"{path}: an annotation names image {annotation['image_id']}, which is not in the file")
        captions.setdefault(names[annotation["image_id"]], []).append(_text(annotation["caption"]).strip())
    return _group(captions, path)


def split_captions(
    images: Iterable[CaptionedImage], splits: Mapping[str, str], lists: Mapping[str, Path]
) -> dict[str, list[CaptionedImage]]:
    """Return the images of each split: by `lists` of image names, else by `splits`, from image name to split."""
    by_name = {item.image: item for item in images}
    members: dict[str, list[CaptionedImage]] = {}
    for split, path in lists.items():
        names = [line.strip() for line in read_lines(path) if line.strip()]
        missing = [name for name in names if name not in by_name]
        if missing:
            raise DataError(
                f"{path}: {len(missing):,} image(s) have no caption, such as {missing[0]};"
                f" {nearest(missing[0], by_name, MAX_NAMES_LISTED)}"
            )
        members[split] = [by_name[name] for name in names]
    for name, split in splits.items():
        if split not in lists:
            members.setdefault(split, []).append(by_name[name])
    return members
