"""Add the statistics of its training data to a model folder that was trained without them, and hash them in its card.

    python benchmarks/figures/input_statistics.py src/heedful/bundled/{en-fr,intents,photos}

The data is that which the recipe names. Inputs that are unlike it are then noted by `heedful translate`, `classify` and
`caption`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from heedful.data.corpus import open_corpus
from heedful.data.token_statistics import source_statistics
from heedful.parallel import no_progress
from heedful.tasks.caption.data import open_items
from heedful.tasks.caption.predict import open_features
from heedful.tasks.caption.training import image_statistics
from heedful.tasks.model_card import CARD, hash_file, read_card
from heedful.tasks.model_folder import load_model
from heedful.tasks.splits import open_splits


def add_statistics(folder: Path) -> None:
    loaded = load_model(folder)
    before = {path.name for path in folder.iterdir()}
    if loaded.recipe.task.kind == "caption":
        items, features = open_items(loaded.recipe, Path()), open_features(loaded)
        for split in ("train", "valid"):
            features.extract([item.image for item in items[split]], no_progress)
        statistics = image_statistics(items["train"], items["valid"], features)
    else:
        splits, assets = open_splits(loaded.recipe, Path()), loaded.assets
        target = assets.labels if loaded.recipe.task.kind == "classify" else assets.target
        corpus = open_corpus(splits["train"], assets.source, target, loaded.recipe.data)
        statistics = source_statistics(corpus, splits["valid"], assets.source)
    if statistics is None:
        raise SystemExit(f"{folder}: too little data")
    statistics.save(folder)
    new = {path.name: hash_file(path) for path in folder.iterdir() if path.name not in (before | {CARD})}
    card = read_card(folder)
    card["files"] = dict(sorted({**card["files"], **new}.items()))
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{folder.name}: threshold {statistics.threshold:.4f}, {', '.join(new)}")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        add_statistics(Path(name))
