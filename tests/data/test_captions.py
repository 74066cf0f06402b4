"""Captions come in five formats and give one list."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.captions import Captioned, plain, read_captions, split_captions
from heedful.errors import DataError

WANTED = [Captioned("a.jpg", ("A dog .", "A brown dog .")), Captioned("b.jpg", ("Two cats .", "Cats ."))]
KARPATHY = {
    "images": [
        {"filename": w.image, "split": split, "sentences": [{"raw": caption} for caption in w.captions]}
        for w, split in zip(WANTED, ("restval", "test"), strict=True)
    ]
}
COCO = {
    "images": [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.jpg"}],
    "annotations": [
        {"image_id": number, "caption": caption}
        for number, item in zip((7, 9), WANTED, strict=True)
        for caption in item.captions
    ],
}


def formats() -> dict[str, str]:
    rows = [(item.image, k, caption) for item in WANTED for k, caption in enumerate(item.captions)]
    return {
        "tokens.txt": "".join(f"{image}#{k}\t{caption}\n" for image, k, caption in rows),
        "rows.tsv": "".join(f"{image}\t{caption}\n" for image, _, caption in rows),
        "rows.jsonl": "".join(json.dumps({"image": i.image, "captions": i.captions}) + "\n" for i in WANTED),
        "one.jsonl": "".join(json.dumps({"image": i, "caption": c}) + "\n" for i, _, c in rows),
        "karpathy.json": json.dumps(KARPATHY),
        "coco.json": json.dumps(COCO),
    }


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("packed", [False, True])
def test_every_format_gives_the_same(name: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    text = formats()[name].encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    found, told = read_captions(path)
    assert found == WANTED
    assert told == ({"a.jpg": "train", "b.jpg": "test"} if name == "karpathy.json" else {})


def test_splits_go_by_lists_of_names(tmp_path: Path) -> None:
    (tmp_path / "valid.txt").write_text("b.jpg\n")
    found = split_captions(WANTED, {"a.jpg": "train"}, {"valid": tmp_path / "valid.txt"})
    assert found == {"valid": [WANTED[1]], "train": [WANTED[0]]}
    (tmp_path / "valid.txt").write_text("c.jpg\n")
    with pytest.raises(DataError, match=r"1 pictures have no caption, such as c\.jpg"):
        split_captions(WANTED, {}, {"valid": tmp_path / "valid.txt"})


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "a.jpg#0 no tab\n", "line 1: expected a picture's name, a tab and a caption"),
        ("a.jsonl", '{"picture": 1}\n', 'line 1: expected {"image": name'),
        ("a.json", '{"pictures": []}', "neither Karpathy's nor COCO's JSON"),
        ("a.json", '{"images": [', "neither Karpathy's nor COCO's JSON"),
        ("a.txt", "\n", "no captions in it"),
    ],
)
def test_what_is_wrong_is_said(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=said.replace("{", r"\{").replace("(", r"\(")):
        read_captions(tmp_path / name)


def test_captions_are_learnt_in_small_letters_without_punctuation() -> None:
    assert plain("A \"T-shirt\" , the man 's , isn't red !") == "a t-shirt the man 's isn't red"
    assert plain("Ünïcode Đà Nẵng .") == "ünïcode đà nẵng"
