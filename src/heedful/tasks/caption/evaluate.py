"""`heedful evaluate` of captioners: several references per image, BLEU with and without brevity penalty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.data.captions import normalize_caption, read_captions
from heedful.data.images.features import CachedFeatures
from heedful.data.images.files import ImageFile
from heedful.decoding import Hypothesis
from heedful.errors import DataError, ModelError
from heedful.metrics import Comparison, Metric, check_metric_names, evaluate, paired_bootstrap, primary_metric
from heedful.metrics.captions import cider_state
from heedful.metrics.meteor import meteor_available
from heedful.parallel import available_cpus
from heedful.tasks.base import EvaluationRequest, Table
from heedful.tasks.caption.assets import LoadedCaptioner
from heedful.tasks.caption.data import Item, open_items
from heedful.tasks.caption.predict import open_features, search_items
from heedful.tasks.generation import make_generator
from heedful.tasks.model_folder import load_model
from heedful.tasks.splits import choose_split
from heedful.viz.gallery import CaptionEntry, choose_examples, write_gallery

DEFAULT_METRICS = (
    *(f"caption-bleu-{n}" for n in range(1, 5)),
    *(f"caption-bleu-{n}-raw" for n in range(1, 5)),
    "length-ratio",
    "caption-rouge-l",
    "cider",
)


class CaptionEvaluation(NamedTuple):
    """The metrics of a captioner on some images."""

    name: str
    metrics: list[Metric]
    outputs: list[str]
    references: list[tuple[str, ...]]
    unit: str = "images"
    main: str = "cider"  # the metric of comparisons

    @property
    def items(self) -> int:
        return len(self.outputs)

    def tables(self) -> list[Table]:
        """Return the diversity of the captions."""
        words = {word for output in self.outputs for word in output.split()}
        mean_length = sum(len(output.split()) for output in self.outputs) / len(self.outputs)
        rows = [
            ("distinct captions", f"{len(set(self.outputs)):,}"),
            ("distinct words", f"{len(words):,}"),
            ("words per caption", f"{mean_length:.1f}"),
        ]
        return [Table(("diversity", ""), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {"metrics": [m.to_dict() for m in self.metrics]}

    def compare_to(self, other: CaptionEvaluation) -> Comparison:
        """Compare two models by a paired bootstrap over the main metric."""
        return paired_bootstrap(self.outputs, other.outputs, self.references, metric=self.main)


def evaluation_items(loaded: LoadedCaptioner, files: Sequence[str], split: str) -> list[Item]:
    """Return the images of a folder with a file of captions, or of a split of the model's recipe."""
    if files and len(files) != 2:
        raise DataError("--data: captions need two: a folder with images, and a file with captions")
    if files:
        folder, file = map(Path, files)
        captioned = read_captions(file, loaded.recipe.data)[0]
        return [Item(ImageFile(folder / c.image), tuple(map(normalize_caption, c.captions))) for c in captioned]
    return choose_split(open_items(loaded.recipe, Path()), split, loaded.name)


def evaluate_models(folders: Sequence[Path], request: EvaluationRequest) -> CaptionEvaluation:
    """Evaluate one captioner or an ensemble on the requested data."""
    check_metric_names(request.metrics)
    models: list[LoadedCaptioner] = [load_model(folder) for folder in folders]
    first, features = models[0], _shared_features(models)
    items = evaluation_items(first, request.data, request.split)
    generator = make_generator([model.model for model in models], request.int8)
    decoding = first.recipe.decoding.override(request.decoding)
    site = generator.alignment_site
    hooks = Hooks(Detail.WEIGHTS, frozenset({site})) if request.gallery and site else NO_HOOKS
    features.extract([item.image for item in items])
    threads = request.threads or available_cpus()
    hypotheses = search_items(generator, features.load, items, decoding, hooks, threads, request.stop)
    outputs = [first.assets.target.decode(best[0].tokens) for best in hypotheses]
    references = [item.captions for item in items]
    names = request.metrics or (*DEFAULT_METRICS, *(["meteor"] if meteor_available() else []))
    metrics = evaluate(names, outputs, references)
    name, main = "+".join(model.name for model in models), primary_metric(request.metrics, "cider")
    evaluation = CaptionEvaluation(name, metrics, outputs, references, main=main)
    if request.gallery is not None:
        _write_gallery(request.gallery, evaluation, items, [best[0] for best in hypotheses], first)
    return evaluation


def _shared_features(models: Sequence[LoadedCaptioner]) -> CachedFeatures:
    """Return the feature cache of an ensemble, whose members need one vocabulary and one backbone."""
    first, features = models[0], open_features(models[0])
    for other in models[1:]:
        names = f"{first.name} and {other.name}"
        if other.assets.target.to_json() != first.assets.target.to_json():
            raise ModelError(f"{names} have different vocabularies and cannot form an ensemble")
        if open_features(other).key != features.key:
            raise ModelError(f"{names} have different backbones and cannot form an ensemble")
    return features


def _write_gallery(
    out: Path,
    evaluation: CaptionEvaluation,
    items: Sequence[Item],
    best: Sequence[Hypothesis],
    loaded: LoadedCaptioner,
) -> None:
    """Write a page with the best, the worst and some other captions by CIDEr-D."""
    scores = cider_state(evaluation.outputs, evaluation.references).rows[:, 0]
    site = loaded.model.alignment_site
    entries = []
    for kind, number in choose_examples(scores.tolist()):
        weights = best[number].attentions[site].float().mean(dim=1).numpy() if site else None
        entries.append(
            CaptionEntry(
                kind,
                items[number].image.name,
                items[number].image.open(),
                [loaded.assets.target.token_text(i) for i in best[number].tokens],
                evaluation.outputs[number],
                items[number].captions,
                float(scores[number]),
                weights,
                loaded.assets.backbone_info.grid,
            )
        )
    write_gallery(out, evaluation.name, entries)
