"""The scenes world: pixels, true captions, gold regions, the files of Flickr8k."""

import hashlib
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from fresh_python import run_python
from heedful.data.worlds.scenes import COLORS, SHAPES, SIZES, Box, Scene, SceneObject, draw_scenes, write
from heedful.errors import WorldError

COUNT_OF_NUMBER = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4}
NOUNS = {
    **{shape: shape for shape in SHAPES},
    **{f"{shape}s": shape for shape in SHAPES if shape != "cross"},
    **{"crosses": "cross", "shape": None, "shapes": None},
}


def digest(sequence: list[Scene]) -> str:
    total = hashlib.sha256()
    for scene in sequence:
        total.update(scene.image.tobytes())
        total.update(json.dumps([scene.captions, scene.regions, scene.objects]).encode())  # names do not count
    return total.hexdigest()[:16]


GroundedWords = list[tuple[str, tuple[Box, ...]]]


def read_phrase(words: GroundedWords, objects: tuple[SceneObject, ...]) -> list[Box]:
    """Remove a noun phrase from the front, and check its number, its grammar and its regions."""
    number = words.pop(0)
    modifiers = []
    while words[0][0] in SIZES or words[0][0] in COLORS:
        modifiers.append(words.pop(0))
    noun = words.pop(0)
    attributes = {word for word, _ in modifiers}
    matching = [
        item.box for item in objects if attributes <= {item.size, item.color} and NOUNS[noun[0]] in (None, item.shape)
    ]
    assert len(matching) == COUNT_OF_NUMBER[number[0]]
    assert noun[0].endswith("s") == (len(matching) > 1 or noun[0] == "cross")
    assert (number[0] == "an") == (len(matching) == 1 and (modifiers or [noun])[0][0] == "orange")
    assert number[1] == (tuple(matching) if len(matching) > 1 else ())
    assert all(boxes == tuple(matching) for _, boxes in [*modifiers, noun])
    return matching


def relations(one: Box, other: Box) -> set[str]:
    """Return all relations that hold between two boxes."""
    holds = {
        "left": one.x + one.w <= other.x,
        "right": other.x + other.w <= one.x,
        "above": one.y + one.h <= other.y,
        "below": other.y + other.h <= one.y,
    }
    return {name for name, is_true in holds.items() if is_true}


def place(box: Box, size: int) -> set[str]:
    across, down = (box.x + box.w / 2) / size, (box.y + box.h / 2) / size
    column = "left" if across < 1 / 3 else "right" if across >= 2 / 3 else None
    row = "top" if down < 1 / 3 else "bottom" if down >= 2 / 3 else None
    return {word for word in (row, column) if word} or {"middle"}


def check_caption(words: GroundedWords, objects: tuple[SceneObject, ...], size: int) -> str:
    """Check a caption word by word against the objects, and return its kind."""
    if words[0][0] in ("there", "here"):
        verb = words[1][0]
        assert words.pop(0)[1] == words.pop(0)[1] == ()
        assert verb == ("is" if words[0][0] in ("a", "an") else "are")
    one = read_phrase(words, objects)
    between: GroundedWords = []
    while words and words[0][0] not in COUNT_OF_NUMBER:
        between.append(words.pop(0))
    other = read_phrase(words, objects) if words else []
    assert not words
    assert not set(one) & set(other)
    content = [word for word, _ in between if word not in ("is", "are", "to", "the", "of", "and", "in", "at", "on")]
    for word, boxes in between:
        assert boxes == ((*one, *other) if word in content else ())
    if content and other:
        (relation,) = content
        relation = {"under": "below"}.get(relation, relation)
        assert all(relation in relations(a, b) for a in one for b in other)
        return relation
    if other:
        assert [word for word, _ in between] == ["and"]
        return "and"
    if content:
        assert all(place(box, size) == set(content) - {"corner"} for box in one)
        assert ("corner" in content) == (len(content) == 3)
        return "place"
    return "plain"


@given(seed=st.integers(0, 10**9), size=st.integers(48, 300), captions=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_captions_are_true_and_regions_exact(seed: int, size: int, captions: int) -> None:
    for scene in draw_scenes(3, seed, size, captions):
        assert len(scene.captions) == len(scene.regions) == captions
        for words, regions in zip(scene.captions, scene.regions, strict=True):
            check_caption(list(zip(words, regions, strict=True)), scene.objects, size)


def object_mask(image: np.ndarray) -> np.ndarray:
    """Return where objects are: background, texture and shadow are all lighter than this."""
    return np.asarray(image.min(axis=2) < 155)


@given(seed=st.integers(0, 10**9), size=st.integers(48, 300))
@settings(max_examples=40, deadline=None)
def test_boxes_contain_their_color(seed: int, size: int) -> None:
    names, palette = list(COLORS), np.array(list(COLORS.values()))
    for scene in draw_scenes(3, seed, size):
        assert scene.image.shape == (size, size, 3)
        assert scene.image.dtype == np.uint8
        outside = object_mask(scene.image)
        for item in scene.objects:
            x, y, w, h = item.box
            assert 0 <= x < x + w <= size
            assert 0 <= y < y + h <= size
            part = scene.image[y : y + h, x : x + w]
            mask = object_mask(part)
            assert mask.mean() > 0.2
            distances = ((part[mask][:, None].astype(int) - palette) ** 2).sum(axis=2)
            nearest = np.bincount(distances.argmin(axis=1), minlength=len(names))
            assert names[int(nearest.argmax())] == item.color
            slack = 2 + size // 60  # the tips of stars and moons are thinner than a pixel
            rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
            assert max(rows[0], columns[0], h - 1 - rows[-1], w - 1 - columns[-1]) <= slack
            assert (item.size == "big") == (max(w, h) > 0.23 * size)
            outside[y : y + h, x : x + w] = False
        assert not outside.any()
        for i, one in enumerate(scene.objects):
            assert all(relations(one.box, other.box) for other in scene.objects[:i])


def test_everyitem_occurs() -> None:
    drawn = list(draw_scenes(400))
    objects = [item for scene in drawn for item in scene.objects]
    assert {item.shape for item in objects} == set(SHAPES)
    assert {item.color for item in objects} == set(COLORS)
    assert {item.size for item in objects} == set(SIZES)
    assert {len(scene.objects) for scene in drawn} == {1, 2, 3, 4}
    kinds = [
        check_caption(list(zip(words, regions, strict=True)), scene.objects, 112)
        for scene in drawn
        for words, regions in zip(scene.captions, scene.regions, strict=True)
    ]
    assert set(kinds) == {"left", "right", "above", "below", "and", "place", "plain"}
    assert sum(kind in ("left", "right", "above", "below") for kind in kinds) > 600
    words = {word for scene in drawn for caption in scene.captions for word in caption}
    assert {"two", "three", "an", "shapes", "crosses", "middle", "corner", "under"} <= words
    assert sum(len(set(scene.captions)) == 5 for scene in drawn) > 395


def test_the_same_seed_gives_the_same_pixels_in_every_process() -> None:
    first = list(draw_scenes(30, seed=9))
    assert digest(first) == digest(list(draw_scenes(30, seed=9))) == digest(list(islice(draw_scenes(50, seed=9), 30)))
    assert digest(first) != digest(list(draw_scenes(30, seed=10)))
    fewer = list(draw_scenes(30, seed=9, captions=1))
    assert all((a.image == b.image).all() for a, b in zip(first, fewer, strict=True))
    code = (
        "import hashlib, json; from heedful.data.worlds.scenes import draw_scenes\n"
        "total = hashlib.sha256()\n"
        "for s in draw_scenes(30, seed=9):\n"
        "    total.update(s.image.tobytes())\n"
        "    total.update(json.dumps([s.captions, s.regions, s.objects]).encode())\n"
        "print(total.hexdigest()[:16])"
    )
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed).stdout.strip() == digest(first)
    assert digest(first) == "fdd821aae53f3577", "the scenes changed: note it in CHANGELOG.md and update this digest"


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def test_files_have_the_formats_of_flickr8k(tmp_path: Path) -> None:
    assert write(tmp_path, 12, 3, size=64, captions=2, valid=2, test=3) == {"train": 7, "valid": 2, "test": 3}
    drawn = list(draw_scenes(12, 3, 64, 2))
    names = [name for split in ("train", "dev", "test") for name in lines(tmp_path / f"splits/{split}Images.txt")]
    assert len(lines(tmp_path / "splits/devImages.txt")) == 2
    assert len(set(names)) == len(names) == 12
    assert {path.name for path in (tmp_path / "images").iterdir()} == set(names)
    for name, scene in zip(names, drawn, strict=True):
        with Image.open(tmp_path / "images" / name) as image:
            assert (image.format, image.mode) == ("PNG", "RGB")
            assert (np.asarray(image) == scene.image).all()
    captions, regions = iter(lines(tmp_path / "captions.token.txt")), iter(lines(tmp_path / "regions.jsonl"))
    for name, scene in zip(names, drawn, strict=True):
        for number in range(2):
            key, caption = next(captions).split("\t")
            assert key == f"{name}#{number}"
            assert tuple(caption.split(" ")) == scene.captions[number]
            assert json.loads(next(regions)) == {
                "image": name,
                "caption": number,
                "words": list(scene.captions[number]),
                "boxes": [[list(box) for box in boxes] for boxes in scene.regions[number]],
            }
    assert not [*captions, *regions]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    sizes = "--size 64 --captions 2 --order any --valid 2 --test 3"
    command = f"heedful world scenes --n 12 --seed 3 {sizes} --out DIR\n"
    assert command in readme
    assert {path.name for path in tmp_path.iterdir()} == {
        *("README.md", "captions.token.txt", "images", "regions.jsonl", "splits")
    }


def test_in_the_order_left_every_caption_begins_with_the_leftmost_object() -> None:
    for scene, free in zip(draw_scenes(40, order="left"), draw_scenes(40), strict=True):
        assert (scene.image == free.image).all()
        leftmost = min(scene.objects, key=lambda item: (item.box.x, item.box.y)).box
        for words, regions in zip(scene.captions, scene.regions, strict=True):
            assert leftmost in next(boxes for boxes in regions if boxes), words


def test_the_locale_changes_noitem(tmp_path: Path) -> None:
    code = "import sys, pathlib; from heedful.data.worlds.scenes import write; write(pathlib.Path(sys.argv[1]), 5)"
    done = run_python(code, str(tmp_path / "c"), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    write(tmp_path / "here", 5)
    files = [path for path in (tmp_path / "here").rglob("*") if path.is_file()]
    assert len(files) == 5 + 6
    for path in files:
        assert (tmp_path / "c" / path.relative_to(tmp_path / "here")).read_bytes() == path.read_bytes()


def test_an_interrupted_run_leaves_complete_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*options: int) -> Iterator[Scene]:
        yield from draw_scenes(2, 1)
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.data.worlds.scenes.draw_scenes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, 5)
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == ["scene-000000.png", "scene-000001.png"]


def test_without_pillow_scenes_are_drawn_but_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(WorldError, match=r"needs Pillow .* pip install heedful\[caption\]"):
        write(tmp_path / "new", 5)
    assert not (tmp_path / "new").exists()
    assert len(list(draw_scenes(2))) == 2


def test_pillow_is_imported_lazily() -> None:
    done = run_python("import sys; import heedful.data.worlds.scenes; print('PIL' in sys.modules)")
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0: it must be an integer of at least 1"),
        ({"seed": -1}, "seed is -1"),
        ({"size": 47}, "size is 47: it must be an integer from 48 to 1024"),
        ({"size": 1025}, "size is 1025"),
        ({"captions": 0}, "captions is 0"),
        ({"order": "lef"}, "order 'lef' is unknown; did you mean \"left\""),
    ],
)
def test_wrong_arguments_are_an_error_at_the_call(options: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        draw_scenes(**{"n": 5, **options})
