"""Further texts for recipes with teachers: parts of SST's training sentences that nobody has labelled.

    python benchmarks/figures/spans.py

Eight spans of 2 to 16 words from every training sentence of SST-5 (the neutral ones, too, which SST-2 leaves
out), less the phrases that SST-2 has. The label that is written beside each is the teachers' own; what they
hold likely is asked again when the recipe is trained. Where teachers are not trained yet nothing is made.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from heedful.config import load_recipe
from heedful.data.paths import locate
from heedful.errors import DataError
from heedful.tasks.classify_teach import lessons, teachers_of
from heedful.tasks.folder import finished, open_model
from heedful.whole import whole

ROOT = Path(__file__).parents[2]
RECIPES = ("sst2-taught", "sst5-taught")
EACH, SHORTEST, LONGEST, SEED = 8, 2, 16, 1


def texts_of(name: str) -> list[str]:
    with gzip.open(locate(f"data:text_classification/{name}.tsv.gz", ROOT), "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t")[1].strip() for line in file]


def spans() -> list[str]:
    """In an order that has nothing to do with their sentences."""
    known, rng, found = set(texts_of("sst2_glue.train")), random.Random(SEED), set()
    for text in texts_of("sst5.train"):
        words = text.split()
        for _ in range(EACH):
            count = min(len(words), rng.randint(SHORTEST, LONGEST))
            first = rng.randint(0, len(words) - count)
            found.add(" ".join(words[first : first + count]))
    left = sorted(found - known)
    rng.shuffle(left)
    return left


def make(name: str) -> None:
    """The file that a recipe reads beside its training data, if it is not there yet."""
    loaded = load_recipe(ROOT / "recipes" / f"{name}.toml")
    (out,), teachers = loaded.recipe.data.also, loaded.recipe.training.teachers
    path = loaded.base / out
    if path.exists() or not all(finished(loaded.base / teacher) for teacher in teachers):
        return
    labels = open_model(loaded.base / teachers[0]).words.labels
    texts = spans()
    said = lessons(teachers_of(loaded.recipe, loaded.base, labels), texts).argmax(dim=1).tolist()
    lines = (f"{labels.names[label]}\t{text}\n" for label, text in zip(said, texts, strict=True))
    with whole(path, DataError) as draft:
        draft.write_text("".join(lines), encoding="utf-8")
    print(f"{path.name}: {len(texts):,} texts for {name}")


if __name__ == "__main__":
    for recipe in RECIPES:
        make(recipe)
