"""Measure how often inputs are noted as unlike the training data, and how well the confidence is calibrated.

python benchmarks/figures/unlike_inputs.py text
python benchmarks/figures/unlike_inputs.py confidence 1000
python benchmarks/figures/unlike_inputs.py images FOLDER   # of pictures from elsewhere, one folder per kind
"""

from __future__ import annotations

import gzip
import random
import string
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heedful.data.images.features import compute_features
from heedful.data.images.files import ImageFile, ImageSource
from heedful.data.paths import locate
from heedful.metrics import evaluate
from heedful.tasks.bundled import bundled_models
from heedful.tasks.caption.data import open_items
from heedful.tasks.caption.predict import find_unlike, load_backbone, open_pixels, pool_features
from heedful.tasks.model_folder import load_model
from heedful.tasks.seq2seq.predict import generate_records, make_predictor
from heedful.tasks.splits import open_splits

N_LINES = 3_000  # per language
MIN_WORDS = 4
N_BINS = 10
CHRF = 50.0  # an output above it counts as good
SEED = 1


def measure_text() -> None:
    """Print the share of lines that are noted, of all and of those of four words or more."""
    loaded = load_model(bundled_models()["en-fr"])
    predictor, splits = make_predictor([loaded]), open_splits(loaded.recipe, Path())
    rng = random.Random(SEED)
    inputs = {f"English, Tatoeba, {name}": [pair.source for pair in splits[name]] for name in ("valid", "test")}
    for name, file, column in (
        ("French, Tatoeba", "tatoeba_fra_eng_2019/eng-fra.tsv.gz", 1),
        ("Vietnamese, Tatoeba", "tatoeba_vie_eng/eng-vie.tsv.gz", 1),
        ("Chinese, Tatoeba", "tatoeba_cmn_eng/eng-cmn.tsv.gz", 1),
        ("German, Multi30k", "multi30k/train.de.gz", 0),
        ("English, Multi30k", "multi30k/train.en.gz", 0),
    ):
        with gzip.open(locate(f"data:{file}", Path()), "rt", encoding="utf-8") as stream:
            lines = list(dict.fromkeys(line.rstrip("\n").split("\t")[column] for line in stream))
        inputs[name] = rng.sample(lines, N_LINES)
    inputs["random letters"] = [_random_line(rng) for _ in range(N_LINES)]
    for name, lines in inputs.items():
        flags = np.array(predictor.find_unlike(lines), dtype=bool)
        long = np.array([len(line.split()) >= MIN_WORDS for line in lines])
        of_long = f"{flags[long].mean():.1%}" if long.any() else "none"
        print(f"{name}: {len(lines):,} lines, noted {flags.mean():.1%}; of {MIN_WORDS} words or more {of_long}")


def _random_line(rng: random.Random) -> str:
    words = [rng.choices(string.ascii_lowercase, k=rng.randint(2, 9)) for _ in range(rng.randint(4, 10))]
    return " ".join("".join(word) for word in words)


def measure_confidence(n_lines: int) -> None:
    """Print the expected calibration error of the confidence on test lines, as the probability of a good output."""
    loaded = load_model(bundled_models()["en-fr"])
    predictor = make_predictor([loaded])
    pairs = list(open_splits(loaded.recipe, Path())["test"])
    references: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        references[pair.source].append(pair.target)
    lines = random.Random(SEED).sample(list(references), n_lines)
    records = generate_records(predictor, lines, predictor.decoding)
    confidence = np.array([record["confidence"] for record in records])
    best = [
        [max(evaluate([name], [record["outputs"][0]["text"]], [r])[0].value for r in references[line])
         for line, record in zip(lines, records, strict=True)]
        for name in ("chrf", "exact")
    ]  # fmt: skip
    for name, good in (("chrF above 50", np.array(best[0]) > CHRF), ("exact match", np.array(best[1]) > 0)):
        error = calibration_error(confidence, good)
        print(f"{name}: {good.mean():.1%} of {n_lines:,} lines, confidence {confidence.mean():.1%}, ECE {error:.3f}")
        for low in np.arange(0, 1, 1 / N_BINS):
            inside = (confidence > low) & (confidence <= low + 1 / N_BINS)
            if inside.any():
                print(f"  {low:.1f}-{low + 1 / N_BINS:.1f}: {inside.sum()} lines, {good[inside].mean():.1%} good")


def calibration_error(confidence: np.ndarray, good: np.ndarray) -> float:
    """Return the mean distance of confidence and share of good outputs over ten bins, weighted by their lines."""
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = [(bins == b).mean() * abs(confidence[bins == b].mean() - good[bins == b].mean()) for b in np.unique(bins)]
    return float(sum(gaps))


def measure_images(folder: Path) -> None:
    """Print the share of test images of Flickr8k, and of other pictures by kind, that are noted."""
    loaded = load_model(bundled_models()["photos"])
    backbone = load_backbone(loaded)

    def flags(images: Sequence[ImageSource]) -> np.ndarray:
        parts = [images[i : i + 64] for i in range(0, len(images), 64)]
        features = [compute_features(backbone, [open_pixels(image, backbone) for image in part]) for part in parts]
        return np.array(find_unlike(loaded, np.concatenate([pool_features(f) for f in features])), dtype=bool)

    test = [item.image for item in open_items(loaded.recipe, Path())["test"]]
    print(f"Flickr8k test: {len(test):,} images, noted {flags(test).mean():.1%}")
    kinds = {kind.name: [ImageFile(path) for path in sorted(kind.iterdir())] for kind in sorted(folder.iterdir())}
    noted = {name: flags(images) for name, images in kinds.items()}
    for name, values in noted.items():
        print(f"{name}: {values.sum()} of {len(values)}")
    everything = np.concatenate(list(noted.values()))
    print(f"all: {everything.sum()} of {len(everything)} ({everything.mean():.1%})")


if __name__ == "__main__":
    if sys.argv[1] == "text":
        measure_text()
    elif sys.argv[1] == "confidence":
        measure_confidence(int(sys.argv[2]))
    else:
        measure_images(Path(sys.argv[2]))
