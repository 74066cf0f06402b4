"""Cached features: computed once per image, never partial, never of another backbone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from heedful.data.images.features import CHUNK_SIZE, CachedFeatures, extract_features
from heedful.data.images.files import ImageFile, ImageSource, SceneImage
from heedful.errors import DataError
from toy_backbones import Patches


def image_files(folder: Path, count: int) -> list[ImageSource]:
    rng = np.random.default_rng(1)
    images: list[ImageSource] = []
    for number in range(count):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8)).save(path)
        images.append(ImageFile(path))
    return images


class Counting(Patches):
    n_images = 0

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        Counting.n_images += len(images)
        return super().__call__(images)


@pytest.fixture(autouse=True)
def reset_counter() -> None:
    Counting.n_images = 0


def test_each_image_is_computed_once(tmp_path: Path) -> None:
    images = image_files(tmp_path, 5)
    ticks: list[int] = []
    CachedFeatures(Counting(), tmp_path).extract([*images, *images], ticks.append)
    again = CachedFeatures(Counting(), tmp_path)
    again.extract(images)
    assert Counting.n_images == 5
    assert sum(ticks) == 10
    direct = extract_features(Patches(), [image.open() for image in images])
    assert torch.equal(again.load(images), direct.half().float())


def test_an_interrupted_extraction_continues(tmp_path: Path) -> None:
    images = image_files(tmp_path, CHUNK_SIZE + 3)

    def stop(count: int) -> None:
        if count == CHUNK_SIZE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CachedFeatures(Counting(), tmp_path).extract(images, stop)
    assert Counting.n_images == CHUNK_SIZE
    CachedFeatures(Counting(), tmp_path).extract(images)
    assert Counting.n_images == CHUNK_SIZE + 3


def test_two_processes_may_extract_the_same_images(tmp_path: Path) -> None:
    """Each opened the cache before the other wrote to it; a third finds the work of both, and computes nothing."""
    images = image_files(tmp_path, 6)
    first, second = CachedFeatures(Counting(), tmp_path), CachedFeatures(Counting(), tmp_path)
    first.extract(images[:4])
    second.extract(images[2:])
    third = CachedFeatures(Counting(), tmp_path)
    third.extract(images)
    assert Counting.n_images == 8
    expected = extract_features(Patches(), [image.open() for image in images]).half().float()
    assert torch.equal(third.load(images), expected)
    assert torch.equal(first.load(images[:4]), expected[:4])
    assert torch.equal(second.load(images[2:]), expected[2:])


def test_a_damaged_chunk_is_computed_again(tmp_path: Path) -> None:
    images = image_files(tmp_path, 3)
    CachedFeatures(Counting(), tmp_path).extract(images)
    (chunk,) = tmp_path.glob("features/*/*.npy")
    chunk.write_bytes(chunk.read_bytes()[:100])
    healed = CachedFeatures(Counting(), tmp_path)
    healed.extract(images)
    assert Counting.n_images == 6
    assert torch.isfinite(healed.load(images)).all()


def test_a_flipped_bit_is_noticed_computed_again_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = image_files(tmp_path, 5)
    CachedFeatures(Counting(), tmp_path).extract(images)
    expected = extract_features(Patches(), [image.open() for image in images]).half().float()
    (path,) = tmp_path.glob("features/*/*.npy")
    content = bytearray(path.read_bytes())
    content[-7] ^= 0x40  # in the last image
    path.write_bytes(content)
    healed = CachedFeatures(Counting(), tmp_path)
    ticks: list[int] = []
    healed.extract(images, ticks.append)
    assert torch.equal(healed.load(images), expected)
    assert (Counting.n_images, sum(ticks)) == (6, 5), "only the damaged one"
    assert "the cached features of 1 image are damaged, and computed again" in capsys.readouterr().err
    again = CachedFeatures(Counting(), tmp_path)
    again.extract(images)
    assert torch.equal(again.load(images), expected)
    assert (Counting.n_images, capsys.readouterr().err) == (6, ""), "the damaged features are not used any more"


def test_a_cache_that_is_all_damaged_is_replaced(tmp_path: Path) -> None:
    images = image_files(tmp_path, 2)
    CachedFeatures(Counting(), tmp_path).extract(images)
    (path,) = tmp_path.glob("features/*/*.npy")
    header = len(path.read_bytes()) - 2 * Patches.grid[0] ** 2 * Patches.width * 2
    path.write_bytes(path.read_bytes()[:header] + bytes(2 * Patches.grid[0] ** 2 * Patches.width * 2))
    CachedFeatures(Counting(), tmp_path).extract(images)
    assert Counting.n_images == 4
    (path,) = tmp_path.glob("features/*/*.npy")
    CachedFeatures(Counting(), tmp_path).extract(images)
    assert Counting.n_images == 4


@pytest.mark.parametrize(
    "index",
    [
        "[",
        "{}",
        '{"images": ["a", "b"]}',
        '{"images": ["a", "b"], "crc32": [1]}',
        '{"images": [1, 2], "crc32": [1, 2]}',
        "7",
    ],
)
def test_a_damaged_index_is_computed_again(index: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = image_files(tmp_path, 2)
    CachedFeatures(Counting(), tmp_path).extract(images)
    (path,) = tmp_path.glob("features/*/*.json")
    path.write_text(index)
    CachedFeatures(Counting(), tmp_path).extract(images)
    assert Counting.n_images == 4
    assert "are damaged, and computed again" in capsys.readouterr().err


def test_features_of_another_shape_are_computed_again(tmp_path: Path) -> None:
    images = image_files(tmp_path, 2)
    CachedFeatures(Counting(), tmp_path).extract(images)
    (path,) = tmp_path.glob("features/*/*.npy")
    np.save(path, np.zeros((2, 3, 5), np.float16))
    CachedFeatures(Counting(), tmp_path).extract(images)
    assert Counting.n_images == 4


def test_a_cache_without_checksums_is_computed_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = image_files(tmp_path, 3)
    CachedFeatures(Counting(), tmp_path).extract(images)
    (path,) = tmp_path.glob("features/*/*.json")
    path.write_text(json.dumps(json.loads(path.read_text())["images"]))  # as the first versions wrote it
    array = path.with_suffix(".npy")
    array.write_bytes(array.read_bytes()[:-1] + b"\x7c")  # damage from before there were checksums
    features = CachedFeatures(Counting(), tmp_path)
    features.extract(images)
    assert "(no checksums), are damaged, and computed again" in capsys.readouterr().err
    assert Counting.n_images == 6
    direct = extract_features(Patches(), [image.open() for image in images])
    assert torch.equal(features.load(images), direct.half().float())
    assert not array.exists()


def test_another_backbone_has_a_cache_of_its_own(tmp_path: Path) -> None:
    class Other(Patches):
        def fingerprint(self) -> str:
            return "other"

    CachedFeatures(Patches(), tmp_path).extract(image_files(tmp_path, 1))
    other = CachedFeatures(Other(), tmp_path)
    assert not other.positions


def test_unreadable_images_are_reported_and_the_others_extracted(tmp_path: Path) -> None:
    images = image_files(tmp_path, 3)
    (tmp_path / "1.png").write_bytes(b"not an image")
    (tmp_path / "2.png").unlink()
    messages: list[str] = []
    features = CachedFeatures(Patches(), tmp_path)
    features.extract(images, on_bad_image=messages.append)
    assert len(messages) == 2
    assert [features.has(image) for image in images] == [True, False, False]
    with pytest.raises(DataError, match=r"1\.png: not an image"):
        CachedFeatures(Patches(), tmp_path).extract(images[:2])


def test_a_scene_is_hashed_without_being_drawn() -> None:
    assert SceneImage(3, 1, 48).content_hash() == SceneImage(3, 1, 48).content_hash()
    assert SceneImage(3, 1, 48).content_hash() != SceneImage(3, 2, 48).content_hash()
