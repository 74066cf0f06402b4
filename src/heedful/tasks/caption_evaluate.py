"""`heedful evaluate` of captioners: several references a picture, measures with and without penalty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import Recipe
from heedful.data.batch import TextBatch
from heedful.data.captions import Captioned, plain, read_captions
from heedful.decoding import Ensemble, Hypothesis
from heedful.errors import DataError, ModelError, nearest
from heedful.evaluation import Comparison, Metric, check_names, evaluate, main_of, paired_bootstrap
from heedful.evaluation.meteor import meteor_is_there
from heedful.models import Writer, quickest
from heedful.tasks.caption import Captioner, Item, features_of, open_items, regions
from heedful.tasks.folder import open_model
from heedful.tasks.kind import Question, Table
from heedful.tasks.use import processors
from heedful.tasks.writing import searched
from heedful.vision.pictures import FilePicture

USUAL = (
    *(f"caption-bleu-{n}" for n in range(1, 5)),
    *(f"caption-bleu-{n}-raw" for n in range(1, 5)),
    "length-ratio",
    "caption-rouge-l",
    "cider",
)


class CaptionEvaluation(NamedTuple):
    """What was measured on some pictures."""

    name: str
    metrics: list[Metric]
    outputs: list[str]
    references: list[tuple[str, ...]]
    unit: str = "pictures"
    main: str = "cider"  # the metric to compare by

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """How many different things it says."""
        words = {word for output in self.outputs for word in output.split()}
        rows = [
            ("different captions", f"{len(set(self.outputs)):,}"),
            ("different words", f"{len(words):,}"),
            ("words a caption", f"{sum(len(o.split()) for o in self.outputs) / len(self.outputs):.1f}"),
        ]
        return [Table(("what it says", ""), rows)]

    def plain(self) -> dict[str, Any]:
        return {"metrics": [m._asdict() for m in self.metrics]}

    def against(self, other: CaptionEvaluation) -> Comparison:
        """Paired bootstrap by the first metric asked for, or by CIDEr."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def items_of(opened: Captioner, files: Sequence[str], split: str) -> list[Item]:
    """The pictures to measure on: a folder and a file with captions, or a split of the model's recipe."""
    if files and len(files) != 2:
        raise DataError(
            "--data: give it twice for captions: a folder with pictures, and a file with captions"
        )
    if files:
        folder, file = map(Path, files)
        listed: list[Captioned] = read_captions(file)[0]
        return [Item(FilePicture(folder / c.image), tuple(map(plain, c.captions))) for c in listed]
    recipe: Recipe = opened.recipe
    splits = open_items(recipe, Path())
    if split not in splits:
        raise DataError(
            f'the recipe of {opened.name} names no "{split}" data; {nearest(split, splits)}; or give --data'
        )
    return splits[split]


def evaluated(folders: Sequence[Path], asked: Question) -> CaptionEvaluation:
    """One model, or several as one, on the data asked for."""
    check_names(asked.metrics)
    models: list[Captioner] = [open_model(folder) for folder in folders]
    first = models[0]
    for other in models[1:]:
        if other.words.target.to_json() != first.words.target.to_json():
            raise ModelError(
                f"{first.name} and {other.name} have different vocabularies, so they cannot write as one"
            )
    features = features_of(first)
    if any(features_of(other).key != features.key for other in models[1:]):
        raise ModelError(f"{first.name} and others see by different backbones, so they cannot write as one")
    items = items_of(first, asked.data, asked.split)
    writers: list[Writer] = [quickest(m.model) if asked.int8 else m.model for m in models]
    writer = Ensemble(writers) if len(writers) > 1 else writers[0]
    how = first.recipe.decoding.model_copy(update=dict(asked.decoding))
    site = writer.alignment
    watch = Watch(Detail.WEIGHTS, frozenset({site})) if asked.gallery and site else PLAIN
    features.extract([item.picture for item in items])
    found = searched(
        writer,
        lambda rows: TextBatch(regions(features.of([items[row].picture for row in rows]))),
        [1] * len(items),
        how,
        watch,
        threads=asked.threads or processors(),
    )
    outputs = [first.words.target.decode(best[0].tokens) for best in found]
    references = [item.captions for item in items]
    names = asked.metrics or (*USUAL, *(["meteor"] if meteor_is_there() else []))
    metrics = evaluate(names, outputs, references)
    name, main = "+".join(m.name for m in models), main_of(asked.metrics, "cider")
    made = CaptionEvaluation(name, metrics, outputs, references, main=main)
    if asked.gallery is not None:
        _gallery(asked.gallery, made, items, [best[0] for best in found], first)
    return made


def _gallery(
    out: Path, made: CaptionEvaluation, items: Sequence[Item], best: Sequence[Hypothesis], opened: Captioner
) -> None:
    from heedful.evaluation.captions import cider_tally
    from heedful.view.gallery import Entry, chosen, write_gallery

    scores = cider_tally(made.outputs, made.references).rows[:, 0]
    site = opened.model.alignment
    entries = []
    for kind, number in chosen(scores.tolist()):
        weights = best[number].looks[site].float().mean(dim=1).numpy() if site else None
        entries.append(
            Entry(
                kind,
                items[number].picture.name,
                items[number].picture.open(),
                [opened.words.target.shown(i) for i in best[number].tokens],
                made.outputs[number],
                items[number].captions,
                float(scores[number]),
                weights,
                opened.words.sight.grid,
            )
        )
    write_gallery(out, made.name, entries)
