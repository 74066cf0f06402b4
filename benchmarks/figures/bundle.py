"""Copy a trained model into the package: half-precision weights and a complete model card.

    python benchmarks/figures/bundle.py en-fr

Cost and command come from the row's record; the test metrics are measured again on the model as it is stored.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch
from rows import BY_NAME
from run import MODELS, ROOT, evaluate_models, read_record
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from heedful.tasks.base import all_files
from heedful.tasks.model_card import CARD, RECIPE, WEIGHTS, hash_files
from heedful.tasks.model_folder import load_model
from heedful.tasks.registry import get_task
from heedful.tasks.self_test import make_self_test

BUNDLED_FOLDER = ROOT / "src" / "heedful" / "bundled"
CARDS: dict[str, dict[str, Any]] = {
    "en-fr": {
        "name": "en-fr",
        "max_bytes": 15_000_000,
        "about": "English to French, everyday language",
        "languages": ["en", "fr"],
        "test_on": "7,078 pairs of Tatoeba held out by their English side",
        "limits": "everyday language, a sentence or two; rare words, proverbs, names and long sentences often go wrong",
        "license": "CC BY 2.0 FR, CC BY-SA 3.0 and others (LICENSE-MODELS)",
        "attribution": "trained on sentences of tatoeba.org, as paired by manythings.org/anki, on manuals of Python,"
        " Django, GNOME and Godot by their translators, and on laws of Canada (contains information licensed under the"
        " Open Government Licence - Canada)",
    },
    **{
        f"flickr8k-{kind}": {
            "name": "photos",
            "max_bytes": 10_000_000,
            "about": "captions of everyday photographs: people, dogs, sports",
            "languages": ["en"],
            "test_on": "the 1,000 test photographs of Flickr8k",
            "limits": "people, dogs and sports outdoors; other pictures get captions of these, with a note where they"
            " look unlike the training data",
            "license": "research and non-commercial use only, as Flickr8k",
            "attribution": "trained on Flickr8k (Hodosh, Young & Hockenmaier 2013); backbone: EfficientNet-Lite0",
        }
        for kind in ("soft", "reward", "hard", "transformer")
    },
    "intents": {
        "name": "intents",
        "max_bytes": 5_000_000,
        "about": "intents of a bank's customers: 77 labels",
        "languages": ["en"],
        "test_on": "the 3,080 test questions of BANKING77",
        "limits": "questions to a bank; any other text gets one of the 77 labels too",
        "license": "CC BY 4.0",
        "attribution": "trained on BANKING77 (Casanueva et al. 2020), PolyAI",
    },
    "sentiment": {
        "name": "sentiment",
        "max_bytes": 5_000_000,
        "about": "sentiment of tweets: negative, neutral, positive",
        "languages": ["en"],
        "test_on": "1,366 held-out tweets of Tweet Sentiment Extraction",
        "license": "CC BY 4.0",
        "attribution": "trained on Tweet Sentiment Extraction (Kaggle 2020), from Data for Everyone, Emotion in Text;"
        " the tweets belong to their authors",
    },
    "novels-lstmn": {
        "name": "novels",
        "max_bytes": 6_000_000,
        "about": "surprisal of the words of English prose, as in novels from 1839 to 1912",
        "languages": ["en"],
        "test_on": "The Secret Garden, by sentence, per subword",
        "limits": "English of the 19th century: modern words surprise it",
        "license": "public domain",
        "attribution": "trained on 19 English novels in the public domain, from the collection 100 English Novels"
        " (Computational Stylistics Group)",
    },
    "assistant": {
        "name": "assistant",
        "max_bytes": 6_000_000,
        "about": "replies of an assistant that books tables, tickets, rooms and rides; names and prices are invented",
        "languages": ["en"],
        "test_on": "24,861 test pairs of Schema-Guided Dialogue, a part of it",
        "license": "CC BY-SA 4.0",
        "attribution": "trained on a part of Schema-Guided Dialogue (Rastogi et al. 2020), Google",
    },
    "paper-titles": {
        "name": "paper-titles",
        "max_bytes": 6_000_000,
        "about": "titles of papers on computational linguistics from the first sentences of their abstracts",
        "languages": ["en"],
        "test_on": "2,874 papers of 2025 and 2026 in the ACL Anthology",
        "license": "CC BY 4.0",
        "attribution": "trained on abstracts and titles of the ACL Anthology, 2016 to 2023, by their authors",
    },
    "films-nais": {
        "name": "films",
        "max_bytes": 5_000_000,
        "about": "films for somebody who has seen certain films, as of 2013",
        "languages": ["en"],
        "test_on": "the latest film of each user, against 99 films the user has not rated",
        "limits": "films until 2013; its ranking is no better than that of FISM, which has no attention",
        "license": "MIT",
        "attribution": "trained on MovieTweetings (Dooms, De Pessemier & Martens 2013)",
    },
    "english-sounds": {
        "name": "english-sounds",
        "max_bytes": 5_000_000,
        "about": "English words to their pronunciation (General American, IPA)",
        "languages": ["en"],
        "test_on": "the 4,168 English test words of SIGMORPHON 2021",
        "license": "CC BY-SA, as Wiktionary",
        "attribution": "trained on pronunciations of Wiktionary, as collected by WikiPron (Lee et al. 2020) and"
        " SIGMORPHON 2021, task 1 (Ashby et al. 2021)",
    },
}


def bundle(row: str) -> Path:
    fields = dict(CARDS[row])
    source, folder, max_bytes = MODELS / f"{row}-1", BUNDLED_FOLDER / fields.pop("name"), fields.pop("max_bytes")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    card = json.loads((source / CARD).read_text())
    for name in (RECIPE, *all_files(get_task(card["task"]))):
        if (source / name).exists():
            shutil.copy(source / name, folder / name)
    weights = load_file(source / WEIGHTS)
    half = {name: w.half() if w.dtype == torch.float32 else w for name, w in weights.items()}
    save_file(half, folder / WEIGHTS, metadata=_read_metadata(source / WEIGHTS))
    record = read_record(row)["runs"][0]
    card = {key: value for key, value in card.items() if key not in ("sha256", "self_test")}
    card |= {**fields, "files": hash_files(folder)}
    card["trained"] = {key: record[key] for key in ("command", "commit", "date", "minutes", "threads")}
    _write_card(folder, card)
    loaded = load_model(folder)
    card["self_test"] = make_self_test(loaded.recipe, loaded.assets, loaded.model)  # of the rounded weights
    metrics = evaluate_models([folder], BY_NAME[row].metrics)
    card["test"] = {name: round(metric["value"], 2) for name, metric in metrics.items()}
    card["signatures"] = {name: metric["signature"] for name, metric in metrics.items()}
    _write_card(folder, card)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > max_bytes:
        raise SystemExit(f"{folder.name} has {size:,} bytes, more than {max_bytes:,}")
    print(f"{folder.name}: {size:,} bytes, {card['test']}")
    return folder


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    (folder / CARD).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _read_metadata(path: Path) -> dict[str, str]:
    """Return the metadata of a safetensors file, which says which names share one tensor."""
    with safe_open(path, "pt") as file:
        return dict(file.metadata() or {})


if __name__ == "__main__":
    bundle(sys.argv[1])
