"""Pictures in, captions out: what joins pictures, a backbone, an encoder-decoder, search and its measures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DecodingConfig, PicturesConfig, Recipe, TokenizerConfig
from heedful.data.batch import Buckets, Encoded, Regions, TextBatch, pad
from heedful.data.captions import Captioned, plain, read_captions, split_captions
from heedful.data.paths import locate, locate_folder
from heedful.data.tokenizer import START, Tokenizer
from heedful.data.worlds.scenes import Thing, scene
from heedful.decoding import Hypothesis
from heedful.errors import DataError, ModelError, TraceError
from heedful.models import Seq2Seq, Writer, build
from heedful.record import Photo, Side, Token, Trace
from heedful.tasks.begin import begun_with, first_model
from heedful.tasks.kind import Evaluated, Opened, Question, Started
from heedful.tasks.writing import Tick, loss_of, nothing, parts_of, searched, validated
from heedful.training import Loss, Validation
from heedful.training import Sample as Shown
from heedful.training.types import Ears
from heedful.training.watch import attention_warnings
from heedful.vision.backbone import Backbone, open_backbone
from heedful.vision.features import Features, seen
from heedful.vision.pictures import FilePicture, Picture, ScenePicture

if TYPE_CHECKING:
    from PIL.Image import Image

    from heedful.tasks.tracing import Wanted

SHOWN = 3  # samples at each validation
WATCHED = 32  # validation pictures whose attention is looked at
TOKENIZER, SIGHT = "target.tokenizer.json", "pictures.json"
FIGURES = ("caption-bleu-4", "cider")  # of a validation
SPLITS = ("train", "valid", "test")
TOLD = 5  # broken pictures named
EYES = "eyes."  # of a model's parameters, those of its backbone


class Sight(NamedTuple):
    """What the backbone gives; a model serves only the backbone it was trained with."""

    width: int
    grid: tuple[int, int]
    fingerprint: str

    @classmethod
    def of(cls, backbone: Backbone) -> Sight:
        return cls(backbone.width, backbone.grid, backbone.fingerprint())


class CaptionWords(NamedTuple):
    """The task's assets: the words of captions, and what they were learnt to be about."""

    target: Tokenizer
    sight: Sight

    def save(self, folder: Path) -> None:
        self.target.save(folder / TOKENIZER)
        (folder / SIGHT).write_text(json.dumps(self.sight._asdict()) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> CaptionWords:
        try:
            told = json.loads((folder / SIGHT).read_text(encoding="utf-8"))
            rows, columns = told["grid"]
            sight = Sight(int(told["width"]), (int(rows), int(columns)), str(told["fingerprint"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{folder / SIGHT}: damaged") from None
        return cls(Tokenizer.load(folder / TOKENIZER), sight)

    def sizes(self) -> dict[str, int]:
        return {"target": len(self.target)}


Captioner = Opened[CaptionWords, Seq2Seq]


class Item(NamedTuple):
    """A picture and what is said of it; of a drawn scene the things in it are known."""

    picture: Picture
    captions: tuple[str, ...]
    things: tuple[Thing, ...] = ()


def pictures_of(recipe: Recipe) -> PicturesConfig:
    return recipe.data.pictures or PicturesConfig()


def backbone_of(recipe: Recipe, base: Path) -> Backbone:
    """What the recipe says should see."""
    config = pictures_of(recipe)
    weights = locate(config.weights, base) if config.weights else None
    return open_backbone(config.backbone, config.layer, config.size, weights)


def open_items(recipe: Recipe, base: Path) -> dict[str, list[Item]]:
    """The pictures of every split that the recipe names, with their captions in small letters."""
    if recipe.data.world is not None:
        return _world(recipe)
    config = pictures_of(recipe)
    everything, told = read_captions(locate(config.captions, base))
    files = {split: getattr(recipe.data, split) for split in SPLITS}
    lists = {split: locate(names[0], base) for split, names in files.items() if names}
    if not lists and not told:
        told = _by_hash(everything, recipe)
    folder = locate_folder(config.folder, base)
    found = split_captions(everything, told, lists)
    for split in ("train", "valid"):
        if not found.get(split):
            raise DataError(
                f"no pictures to {split} with: name a list in data.{split}, or give data.split_valid"
            )
    return {
        split: [Item(FilePicture(folder / item.image), tuple(map(plain, item.captions))) for item in items]
        for split, items in found.items()
    }


def _by_hash(everything: Sequence[Captioned], recipe: Recipe) -> dict[str, str]:
    """Shares held out by a hash of the picture's name."""
    valid, test = recipe.data.split_valid, recipe.data.split_test
    if not valid:
        return {}
    told = {}
    for item in everything:
        place = int.from_bytes(sha256(item.image.encode()).digest()[:8], "big") / 2**64
        told[item.image] = "valid" if place < valid else "test" if place < valid + test else "train"
    return told


def _world(recipe: Recipe) -> dict[str, list[Item]]:
    world = recipe.data.world
    assert world is not None
    first, found = 0, {}
    for split in SPLITS:
        items = []
        for number in range(first, first + getattr(world, split)):
            drawn = scene(number, world.seed, world.pixels, order=world.order)
            captions = tuple(" ".join(words) for words in drawn.captions)
            items.append(Item(ScenePicture(number, world.seed, world.pixels), captions, drawn.objects))
        first += len(items)
        found[split] = items
    return found


def _learn(items: Sequence[Item], config: TokenizerConfig) -> Tokenizer:
    whole = config.model_copy(update={"decompose": False})  # what is written stays whole
    return Tokenizer.learn((caption for item in items for caption in item.captions), whole)


class Seen(Protocol):
    """Where what was seen comes from: kept features, or pictures looked at anew."""

    def extract(
        self, pictures: Sequence[Picture], tick: Tick, broken: Callable[[str], None] | None
    ) -> None: ...
    def has(self, picture: Picture) -> bool: ...
    def of(self, pictures: Sequence[Picture]) -> torch.Tensor: ...


def _fresh(backbone: Backbone, recipe: Recipe) -> Seen:
    from heedful.tasks.caption_tune import Fresh, tunable

    return Fresh(tunable(backbone, pictures_of(recipe).backbone))


def _task(recipe: Recipe, items: dict[str, list[Item]], words: CaptionWords, features: Seen) -> CaptionTask:
    from heedful.tasks.caption_tune import Fresh, TunedTask

    if isinstance(features, Fresh):
        return TunedTask(recipe, items, words, features)
    if recipe.training.reward != "none":
        from heedful.tasks.caption_reward import RewardTask

        return RewardTask(recipe, items, words, features)
    return CaptionTask(recipe, items, words, features)


class CaptionTask:
    """What the training loop asks: batches, a loss, and figures on the validation pictures."""

    def __init__(
        self, recipe: Recipe, items: dict[str, list[Item]], words: CaptionWords, features: Seen
    ) -> None:
        self.recipe, self.words, self.features = recipe, words, features
        self.figures = validated(recipe.training.metric, FIGURES)
        self.train, self.valid = items["train"], items["valid"]
        if recipe.training.validate_pairs:
            self.valid = self.valid[: recipe.training.validate_pairs]
        self.corpus = self._encoded(self.train)
        self.buckets = Buckets(self.corpus, recipe.training.batch_tokens, recipe.training.seed)
        self.valid_corpus = self._encoded(self.valid)

    def _encoded(self, items: Sequence[Item]) -> list[Encoded]:
        """An example a caption, cut where it is too long; what is read is the number of its picture."""
        words, most = self.words.target, self.recipe.data.max_target
        return [
            Encoded([number], words.encode(words.cut(caption, most)))
            for number, item in enumerate(items)
            for caption in item.captions
        ]

    def _batch(self, items: Sequence[Item], examples: Sequence[Encoded]) -> TextBatch:
        pictures = [items[e.source[0]].picture for e in examples]
        return TextBatch(regions(self.features.of(pictures)), pad([[START, *e.target] for e in examples]))

    def batches(self, epoch: int, start: int = 0, rank: int = 0, world: int = 1) -> Iterator[TextBatch]:
        plan = self.buckets.arrange(epoch)
        for number in range(start + rank, len(plan), world):
            yield self._batch(self.train, [self.corpus[row] for row in plan.batch(number)])

    def steps_per_epoch(self, world: int = 1) -> int:
        return -(-len(self.buckets.arrange(1)) // world)

    def parts(self, batch: TextBatch, count: int) -> list[TextBatch]:
        return parts_of(batch, count, self.recipe)

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        return loss_of(model, batch, self.recipe)

    @torch.inference_mode()
    def validate(self, model: Seq2Seq) -> Validation:
        """Loss per token of all captions; BLEU-4, CIDEr and the chosen metric of greedy ones; samples."""
        total, count = 0.0, 0
        for first in range(0, len(self.valid_corpus), 100):
            loss = self.loss(model, self._batch(self.valid, self.valid_corpus[first : first + 100]))
            total, count = total + float(loss.total), count + loss.tokens
        how = self.recipe.decoding.model_copy(update={"method": "greedy", "n_best": 1})
        found = self._captions(model, self.valid, how, PLAIN)
        outputs = [self.words.target.decode(h[0].tokens) for h in found]
        references = [item.captions for item in self.valid]
        from heedful.evaluation import evaluate

        exact = sum(o in r for o, r in zip(outputs, references, strict=True)) / len(outputs)
        figures = {"loss": total / count, "exact": exact}
        figures |= {name: evaluate([name], outputs, references)[0].value for name in self.figures}
        shown = [
            Shown(item.picture.name, item.captions[0], output)
            for item, output in islice(zip(self.valid, outputs, strict=True), SHOWN)
        ]
        return Validation(figures, shown, self._oddities(model))

    def _oddities(self, model: Seq2Seq) -> list[str]:
        site = model.alignment
        if site is None or self.recipe.model.attention.placement == "uniform":
            return []
        how = DecodingConfig(max_length=self.recipe.decoding.max_length)
        watch = Watch(Detail.WEIGHTS, frozenset({site}))
        found = self._captions(model, self.valid[:WATCHED], how, watch)
        return attention_warnings(site, [h[0].looks[site].float().mean(dim=1).numpy() for h in found])

    def _captions(
        self, model: Seq2Seq, items: Sequence[Item], how: DecodingConfig, watch: Watch
    ) -> list[list[Hypothesis]]:
        def batch(rows: Sequence[int]) -> TextBatch:
            return TextBatch(regions(self._maps(model, [items[row].picture for row in rows])))

        return searched(model, batch, [1] * len(items), how, watch, threads=torch.get_num_threads())

    def _maps(self, model: Seq2Seq, pictures: Sequence[Picture]) -> torch.Tensor:
        """What is seen in these pictures: (picture, region, width)."""
        return self.features.of(pictures)


def regions(maps: torch.Tensor) -> Regions:
    return Regions(maps, torch.ones(maps.shape[:2], dtype=torch.bool))


def sighted(opened: Captioner) -> Backbone:
    """The backbone that a model was trained with; another is refused."""
    backbone = backbone_of(opened.recipe, Path())
    if Sight.of(backbone) != opened.words.sight:
        name = pictures_of(opened.recipe).backbone
        raise ModelError(f"{opened.name} was trained with other weights, or another version, of {name}")
    if pictures_of(opened.recipe).tuned:
        from heedful.tasks.caption_tune import eyes_of, tunable

        tunable(backbone, pictures_of(opened.recipe).backbone).net = eyes_of(opened.model)
    return backbone


def features_of(opened: Captioner) -> Features:
    """What the model's own eyes saw: of a tuned one nobody else's, and nobody else's of it."""
    tuned = pictures_of(opened.recipe).tuned
    return Features(sighted(opened), learnt=opened.sha256() if tuned else "")


def captions(
    model: Writer,
    backbone: Backbone,
    pictures: Sequence[Image],
    how: DecodingConfig,
    watch: Watch = PLAIN,
    tick: Tick = nothing,
    threads: int = 1,
) -> list[list[Hypothesis]]:
    """Search captions for each picture, seen now."""

    def batch(rows: Sequence[int]) -> TextBatch:
        return TextBatch(regions(seen(backbone, [pictures[row] for row in rows])))

    return searched(model, batch, [1] * len(pictures), how, watch, tick, threads)


class CaptionKind:
    files = (TOKENIZER, SIGHT)

    def load(self, folder: Path) -> CaptionWords:
        return CaptionWords.load(folder)

    def build(self, recipe: Recipe, words: CaptionWords) -> Seq2Seq:
        model = build(recipe.model, words.sight.width, len(words.target))
        if pictures_of(recipe).tuned:
            from heedful.tasks.caption_tune import Eyes, tunable

            model.eyes = Eyes(tunable(backbone_of(recipe, Path()), pictures_of(recipe).backbone).net)
        return model

    def start(self, recipe: Recipe, base: Path, words: CaptionWords | None, ears: Ears) -> Started:
        # what is missing is said before pictures are looked at
        first = first_model(recipe, base) if words is None else None
        items = open_items(recipe, base)
        backbone = backbone_of(recipe, base)
        tuned = pictures_of(recipe).tuned
        features = _fresh(backbone, recipe) if tuned else Features(backbone)
        notes = []
        for split in ("train", "valid"):
            items[split], left_out = _looked_at(items[split], features, recipe, ears)
            notes += left_out
        words = words or CaptionWords(_learn(items["train"], recipe.tokenizer), Sight.of(backbone))
        task = _task(recipe, items, words, features)
        facts = (
            f"{len(items['train']):,} pictures",
            f"{len(task.corpus):,} captions",
            f"{len(words.target):,} words",
            f"{backbone.grid[0]} x {backbone.grid[1]} regions of width {backbone.width:,}",
        )
        started = Started(task, words, facts, notes)
        if first is None:
            return started
        if first.words.target.names() != words.target.names():
            raise ModelError(f"training.start_from: {first.name} has other words")
        return started._replace(prepare=begun_with(first, recipe, anew=(EYES,)))

    def tested(self, recipe: Recipe, base: Path) -> bool:
        return "test" in open_items(recipe, base)

    def evaluate(self, folders: Sequence[Path], asked: Question) -> Evaluated:
        from heedful.tasks.caption_evaluate import evaluated

        return evaluated(folders, asked)

    def trace(self, opened: Captioner, wanted: Wanted, how: DecodingConfig) -> Trace:
        return _traced(opened, FilePicture(Path(wanted.line)), wanted, how)


def traced_picture(opened: Captioner, picture: Picture, how: DecodingConfig) -> Trace:
    """Everything a model does with a picture."""
    from heedful.tasks.tracing import Wanted

    return _traced(opened, picture, Wanted(picture.name), how.model_copy(update={"n_best": 1}))


def _traced(opened: Captioner, picture: Picture, wanted: Wanted, how: DecodingConfig) -> Trace:
    from heedful.tasks.tracing import Reading, traced
    from heedful.view.photo import photo_of

    if any(edit.op == "source" for edit in wanted.edits):
        raise TraceError("source: a picture has no words to replace; onehot, zero and uniform serve")
    backbone, image = sighted(opened), picture.open()
    side = _region_side(picture.name, photo_of(image, backbone.grid))
    return traced(opened, Reading(regions(seen(backbone, [image])), side), wanted, how)


def _region_side(name: str, photo: Photo) -> Side:
    """Regions as a reader would want them, named by row and column from 1."""
    rows, columns = photo.grid
    names = [f"r{row + 1}c{column + 1}" for row in range(rows) for column in range(columns)]
    tokens = [Token(text=text, word=at) for at, text in enumerate(names)]
    return Side(text=name, tokens=tokens, words=names, image=photo)


def _looked_at(
    items: Sequence[Item], features: Seen, recipe: Recipe, ears: Ears
) -> tuple[list[Item], list[str]]:
    """The items whose pictures could be seen, and what is said of the others; or all of them refused."""
    broken: list[str] = []
    with ears.busy("looking at pictures", len(items)) as tick:
        features.extract([item.picture for item in items], tick, broken.append)
    if not broken:
        return list(items), []
    told = "\n".join(f"  - {line}" for line in broken[:TOLD])
    more = f"\n  and {len(broken) - TOLD:,} more" if len(broken) > TOLD else ""
    what = f"{len(broken):,} of {len(items):,} pictures cannot be used:\n{told}{more}"
    if recipe.data.broken == "refuse":
        raise DataError(f'{what}\ndata.broken = "skip" goes on without them')
    kept = [item for item in items if features.has(item.picture)]
    if not kept:
        raise DataError(what)
    return kept, [what]


KIND = CaptionKind()
