"""Put a trained model on the shelf of the package: weights in half precision, and a card that says it all.

    python benchmarks/figures/bundle.py tatoeba-en-fr

The test figures come from the row's record; what is measured again here is the model as it is stored.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from rows import BY_NAME
from run import MODELS, ROOT, figures_of, read
from safetensors.torch import load_file, save_file

from heedful.tasks.folder import CARD, RECIPE
from heedful.tasks.kind import WEIGHTS, hash_of_weights, kind_of

SHELF = ROOT / "src" / "heedful" / "bundled"
SAID: dict[str, dict[str, Any]] = {
    "tatoeba-en-fr": {
        "name": "en-fr",
        "largest": 15_000_000,
        "about": "English to French, everyday sentences",
        "languages": ["en", "fr"],
        "test_on": "7,078 pairs of Tatoeba held out by their English side",
        "licence": "CC BY 2.0 FR",
        "attribution": "trained on sentences of tatoeba.org, as paired by manythings.org/anki",
    },
    **{
        f"flickr8k-{kind}": {
            "name": "photos",
            "largest": 10_000_000,
            "about": "captions of everyday photographs: people, dogs, sports",
            "languages": ["en"],
            "test_on": "the 1,000 test photographs of Flickr8k",
            "licence": "research and non-commercial use only, as Flickr8k",
            "attribution": "trained on Flickr8k (Hodosh, Young & Hockenmaier 2013); eyes: EfficientNet-Lite0",
        }
        for kind in ("soft", "reward", "hard", "transformer")
    },
}


def bundle(row: str) -> Path:
    said = dict(SAID[row])
    source, folder, largest = MODELS / f"{row}-1", SHELF / said.pop("name"), said.pop("largest")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    card = json.loads((source / CARD).read_text())
    for name in (RECIPE, *kind_of(card["task"]).files):
        shutil.copy(source / name, folder / name)
    recipe = folder / RECIPE  # what it began with is named as in the repository
    here = f"{ROOT}/recipes/../"
    recipe.write_text(recipe.read_text(encoding="utf-8").replace(here, ""), encoding="utf-8")
    weights = load_file(source / WEIGHTS)
    half = {name: w.half() if w.dtype == torch.float32 else w for name, w in weights.items()}
    save_file(half, folder / WEIGHTS, metadata=_shared(source / WEIGHTS))
    record = read(row)["runs"][0]
    card |= {**said, "sha256": hash_of_weights(folder)}
    card["trained"] = {key: record[key] for key in ("command", "commit", "date", "minutes", "threads")}
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found = figures_of([folder], BY_NAME[row].metrics)
    card["test"] = {name: round(metric["value"], 2) for name, metric in found.items()}
    card["signatures"] = {name: metric["signature"] for name, metric in found.items()}
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > largest:
        raise SystemExit(f"{folder.name}: {size:,} bytes are more than {largest:,}")
    print(f"{folder.name}: {size:,} bytes, {card['test']}")
    return folder


def _shared(path: Path) -> dict[str, str]:
    """Which names stand for one weight: save_model's note for load_model."""
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        return dict(file.metadata() or {})


if __name__ == "__main__":
    bundle(sys.argv[1])
