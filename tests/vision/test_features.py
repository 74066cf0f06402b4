"""What was seen is kept: computed once a picture, whole or not there, never mixed up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from eyes import Patches
from heedful.errors import DataError
from heedful.vision.features import CHUNK, Features, seen
from heedful.vision.pictures import FilePicture, Picture, ScenePicture


def files(folder: Path, count: int) -> list[Picture]:
    rng = np.random.default_rng(1)
    found: list[Picture] = []
    for number in range(count):
        path = folder / f"{number}.png"
        Image.fromarray(rng.integers(0, 255, (20, 30, 3), dtype=np.uint8)).save(path)
        found.append(FilePicture(path))
    return found


class Counting(Patches):
    seen = 0

    def __call__(self, pictures: np.ndarray) -> torch.Tensor:
        Counting.seen += len(pictures)
        return super().__call__(pictures)


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    Counting.seen = 0


def test_each_picture_is_seen_once(tmp_path: Path) -> None:
    pictures = files(tmp_path, 5)
    ticks: list[int] = []
    Features(Counting(), tmp_path).extract([*pictures, *pictures], ticks.append)
    again = Features(Counting(), tmp_path)
    again.extract(pictures)
    assert Counting.seen == 5
    assert sum(ticks) == 10
    direct = seen(Patches(), [picture.open() for picture in pictures])
    assert torch.equal(again.of(pictures), direct.half().float())


def test_an_interrupted_extraction_goes_on(tmp_path: Path) -> None:
    pictures = files(tmp_path, CHUNK + 3)

    def stop(count: int) -> None:
        if count == CHUNK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Features(Counting(), tmp_path).extract(pictures, stop)
    assert Counting.seen == CHUNK
    Features(Counting(), tmp_path).extract(pictures)
    assert Counting.seen == CHUNK + 3


def test_a_damaged_chunk_is_made_again(tmp_path: Path) -> None:
    pictures = files(tmp_path, 3)
    Features(Counting(), tmp_path).extract(pictures)
    (chunk,) = tmp_path.glob("features/*/*.npy")
    chunk.write_bytes(chunk.read_bytes()[:100])
    healed = Features(Counting(), tmp_path)
    healed.extract(pictures)
    assert Counting.seen == 6
    assert torch.isfinite(healed.of(pictures)).all()


def test_another_backbone_has_a_cache_of_its_own(tmp_path: Path) -> None:
    class Other(Patches):
        def fingerprint(self) -> str:
            return "other"

    Features(Patches(), tmp_path).extract(files(tmp_path, 1))
    other = Features(Other(), tmp_path)
    assert not other.places


def test_broken_pictures_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    pictures = files(tmp_path, 3)
    (tmp_path / "1.png").write_bytes(b"no picture")
    (tmp_path / "2.png").unlink()
    told: list[str] = []
    features = Features(Patches(), tmp_path)
    features.extract(pictures, broken=told.append)
    assert len(told) == 2
    assert [features.has(picture) for picture in pictures] == [True, False, False]
    with pytest.raises(DataError, match=r"1\.png: not a picture"):
        Features(Patches(), tmp_path).extract(pictures[:2])


def test_a_scene_is_known_without_being_drawn() -> None:
    assert ScenePicture(3, 1, 48).content() == ScenePicture(3, 1, 48).content()
    assert ScenePicture(3, 1, 48).content() != ScenePicture(3, 2, 48).content()
