"""Image captions: every format gives the same images."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from heedful.data.captions import CaptionedImage, normalize_caption, read_captions, split_captions
from heedful.errors import DataError

EXPECTED = [CaptionedImage("a.jpg", ("A dog .", "A brown dog .")), CaptionedImage("b.jpg", ("Two cats .", "Cats ."))]
KARPATHY = {
    "images": [
        {"filename": item.image, "split": split, "sentences": [{"raw": caption} for caption in item.captions]}
        for item, split in zip(EXPECTED, ("restval", "test"), strict=True)
    ]
}
COCO = {
    "images": [{"id": 7, "file_name": "a.jpg"}, {"id": 9, "file_name": "b.jpg"}],
    "annotations": [
        {"image_id": number, "caption": caption}
        for number, item in zip((7, 9), EXPECTED, strict=True)
        for caption in item.captions
    ],
}


def formats() -> dict[str, str]:
    rows = [(item.image, k, caption) for item in EXPECTED for k, caption in enumerate(item.captions)]
    return {
        "tokens.txt": "".join(f"{image}#{k}\t{caption}\n" for image, k, caption in rows),
        "rows.tsv": "".join(f"{image}\t{caption}\n" for image, _, caption in rows),
        "rows.jsonl": "".join(json.dumps({"image": i.image, "captions": i.captions}) + "\n" for i in EXPECTED),
        "one.jsonl": "".join(json.dumps({"image": i, "caption": c}) + "\n" for i, _, c in rows),
        "karpathy.json": json.dumps(KARPATHY),
        "coco.json": json.dumps(COCO),
    }


@pytest.mark.parametrize("name", formats())
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_gives_the_same_images(name: str, compressed: bool, tmp_path: Path) -> None:
    path = tmp_path / (f"{name}.gz" if compressed else name)
    text = formats()[name].encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    images, splits, _ = read_captions(path)
    assert images == EXPECTED
    assert splits == ({"a.jpg": "train", "b.jpg": "test"} if name == "karpathy.json" else {})


def test_splits_follow_lists_of_image_names(tmp_path: Path) -> None:
    (tmp_path / "valid.txt").write_text("b.jpg\n")
    members = split_captions(EXPECTED, {"a.jpg": "train"}, {"valid": tmp_path / "valid.txt"})
    assert members == {"valid": [EXPECTED[1]], "train": [EXPECTED[0]]}
    (tmp_path / "valid.txt").write_text("c.jpg\n")
    with pytest.raises(DataError, match=r"1 image\(s\) have no caption, such as c\.jpg"):
        split_captions(EXPECTED, {}, {"valid": tmp_path / "valid.txt"})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.txt",
            "a.jpg#0 no tab\n",
            "line 1: expected at least 2 columns .*expected the name of an image and a caption",
        ),
        ("a.jsonl", '{"picture": 1}\n', "set data.columns .* of image and caption; its columns are: picture"),
        ("a.json", '{"pictures": []}', "neither Karpathy's nor COCO's JSON"),
        ("a.json", '{"images": [', "not JSON"),
        ("a.json", "[3]", "expected an object with fields, found '3'"),
        ("a.txt", "\n", "contains no captions"),
        ("a.jsonl", '{"image": "a.jpg", "caption": null}\n', 'line 1: column "caption" is blank'),
        ("a.jsonl", '{"image": "\\ud800.jpg", "caption": "a"}\n', "half a surrogate pair"),
        ("a.txt", "../a.jpg\ta dog\n", "image '../a.jpg': expected a file within the folder of images"),
        ("a.txt", "b/../../a.jpg#1\ta dog\n", "expected a file within the folder"),
        ("a.txt", "/a.jpg\ta dog\n", "expected a file within the folder"),
        ("a.txt", "a\0.jpg\ta dog\n", "expected a file within the folder"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", "9" * 5_000, "line 1: not JSON"),
        ("a.json", "[" * 100_000, "not JSON"),
        ("a.json", '{"images": {"a": 1}}', "COCO's JSON: expected a list"),
        ("a.json", '{"images": [[]]}', "neither Karpathy's nor COCO's JSON"),
        ("a.json", '{"images": [{"filename": 3}]}', "COCO's JSON: expected text, found 3"),
        ("a.json", '{"images": [{"filename": "a"}]}', "COCO's JSON: no field 'sentences'"),
    ],
)
def test_a_bad_file_is_an_error(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message.replace("{", r"\{").replace("(", r"\(")):
        read_captions(tmp_path / name)


def test_captions_are_normalized_to_lower_case_without_punctuation() -> None:
    assert normalize_caption("A \"T-shirt\" , the man 's , isn't red !") == "a t-shirt the man 's isn't red"
    assert normalize_caption("Ünïcode Đà Nẵng .") == "ünïcode đà nẵng"
