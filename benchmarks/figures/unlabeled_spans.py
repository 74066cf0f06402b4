"""Cut unlabeled spans from SST's training sentences: extra training texts for recipes with teachers.

    python benchmarks/figures/unlabeled_spans.py

Takes eight spans of 2 to 16 words from every training sentence of SST-5 (which includes the neutral sentences that
SST-2 leaves out), without the phrases that SST-2 has. The label written beside each span is the teachers' most likely
one; their probabilities are computed when the recipe is trained. Writes nothing for recipes whose teachers are not
trained yet.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from heedful.atomic_write import atomic_write
from heedful.config import load_recipe
from heedful.data.paths import locate, resolve
from heedful.errors import DataError
from heedful.tasks.classify.distill import load_teachers, teacher_probs
from heedful.tasks.model_card import is_finished
from heedful.tasks.model_folder import load_model

ROOT = Path(__file__).parents[2]
RECIPES = ("sst2-distilled", "sst5-distilled")
SPANS_PER_SENTENCE, MIN_WORDS, MAX_WORDS, SEED = 8, 2, 16, 1


def read_texts(name: str) -> list[str]:
    with gzip.open(locate(f"data:text_classification/{name}.tsv.gz", ROOT), "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t")[1].strip() for line in file]


def cut_spans() -> list[str]:
    """Return the spans in random order."""
    labeled, rng, spans = set(read_texts("sst2_glue.train")), random.Random(SEED), set()
    for text in read_texts("sst5.train"):
        words = text.split()
        for _ in range(SPANS_PER_SENTENCE):
            count = min(len(words), rng.randint(MIN_WORDS, MAX_WORDS))
            first = rng.randint(0, len(words) - count)
            spans.add(" ".join(words[first : first + count]))
    unlabeled = sorted(spans - labeled)
    rng.shuffle(unlabeled)
    return unlabeled


def write_spans(name: str) -> None:
    """Write the file that a recipe names in `data.extra_train`, unless it exists."""
    loaded_recipe = load_recipe(ROOT / "recipes" / f"{name}.toml")
    recipe, base = loaded_recipe.recipe, loaded_recipe.base
    (extra,) = recipe.data.extra_train
    path, teachers = resolve(extra, base), [resolve(teacher, base) for teacher in recipe.training.teachers]
    if path.exists() or not all(map(is_finished, teachers)):
        return
    labels = load_model(teachers[0]).assets.labels
    texts = cut_spans()
    best = teacher_probs(load_teachers(recipe, base, labels), texts).argmax(dim=1).tolist()
    lines = (f"{labels.names[label]}\t{text}\n" for label, text in zip(best, texts, strict=True))
    with atomic_write(path, DataError) as draft:
        draft.write_text("".join(lines), encoding="utf-8")
    print(f"{path.name}: {len(texts):,} texts for {name}")


if __name__ == "__main__":
    for recipe_name in RECIPES:
        write_spans(recipe_name)
