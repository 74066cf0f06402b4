"""Further texts for `sst2-taught`: parts of SST's training sentences that nobody has labelled.

    python benchmarks/figures/spans.py

Eight spans of 2 to 16 words from every training sentence of SST-5 (the neutral ones, too, which SST-2 leaves
out), less the phrases that SST-2 has. The label that is written beside each is the teachers' own; what they
hold likely is asked again when `recipes/sst2-taught.toml` is trained.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from heedful.config import load_recipe
from heedful.data.paths import locate
from heedful.errors import DataError
from heedful.tasks.classify_teach import lessons, teachers_of
from heedful.tasks.folder import open_model
from heedful.whole import whole

ROOT = Path(__file__).parents[2]
OUT = ROOT / "build" / "figures" / "spans.tsv"
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


def main() -> None:
    if OUT.exists():
        return
    loaded = load_recipe(ROOT / "recipes" / "sst2-taught.toml")
    labels = open_model(loaded.base / loaded.recipe.training.teachers[0]).words.labels
    texts = spans()
    said = lessons(teachers_of(loaded.recipe, loaded.base, labels), texts).argmax(dim=1).tolist()
    with whole(OUT, DataError) as draft:
        lines = (f"{labels.names[label]}\t{text}\n" for label, text in zip(said, texts, strict=True))
        draft.write_text("".join(lines), encoding="utf-8")
    print(f"{OUT.relative_to(ROOT)}: {len(texts):,} texts")


if __name__ == "__main__":
    main()
