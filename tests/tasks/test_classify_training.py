"""Training of classifiers: bad data, class weights, word vectors, initialization, distillation, presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.config import load_recipe
from heedful.config.presets import CLASSIFIERS
from heedful.data.pairs import world_pairs
from heedful.data.tokenizer import END, UNK
from heedful.errors import DataError, HeedfulError, ModelError
from heedful.tasks.classify.assets import ClassifierAssets, LoadedClassifier
from heedful.tasks.classify.score import label_probabilities
from heedful.tasks.classify.task import TASK
from heedful.tasks.classify.training import ClassificationTraining
from heedful.tasks.model_folder import load_model
from heedful.tasks.splits import open_splits
from heedful.tasks.train import train_recipe
from heedful.training.loop import train
from heedful.training.types import Callbacks

TRAIN = "good film\tpos\na bad film\tneg\na good day\tpos\nbad soup\tneg\n"
SMALL = (
    "model.embedding=6",
    "model.encoder.hidden=4",
    "model.attention.hidden=5",
    "training.epochs=1",
    "training.threads=1",
)


def write_recipe(folder: Path, train: str = TRAIN, valid: str = "good\tpos\n", more: str = "") -> Path:
    (folder / "train.tsv").write_text(train, encoding="utf-8")
    (folder / "valid.tsv").write_text(valid, encoding="utf-8")
    path = folder / "r.toml"
    path.write_text(
        '[task]\nkind = "classify"\n[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n'
        f'[model]\npreset = "classify-learned"\n{more}',
        encoding="utf-8",
    )
    return path


def trained(folder: Path, *overrides: str, out: str = "m", **files: str) -> tuple[LoadedClassifier, list[str]]:
    log: list[str] = []
    loaded_recipe = load_recipe(write_recipe(folder, **files), [*SMALL, *overrides])
    train_recipe(loaded_recipe, folder / out, Callbacks(log=log.append))
    return load_model(folder / out), log


def refused(folder: Path, *overrides: str, **files: str) -> str:
    with pytest.raises(HeedfulError) as caught:
        trained(folder, *overrides, **files)
    assert not (folder / "m").exists(), "no unfinished folder is left"
    return str(caught.value)


def test_bad_data_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, valid="good\tpos\nfine\tposs\n")
    assert 'valid.tsv, line 2: the label "poss" is not in the training data; did you mean "pos"?' in error
    assert 'the only one is "pos"' in refused(tmp_path, train="a\tpos\nb\tpos\n")
    assert "class_weights: no label 'x'" in refused(tmp_path, 'training.class_weights=["x=2"]')
    swapped = "".join(f"pos\tthis is text {n}\n" for n in range(30))
    assert "are the columns of text and label swapped?" in refused(tmp_path, train=swapped)


def test_unknown_labels_can_be_left_out_of_the_validation(tmp_path: Path) -> None:
    _, log = trained(tmp_path, 'data.on_error="skip"', valid="good\tpos\nfine\tposs\n")
    assert any('left out for labels that are not in the training data: "poss" 1' in line for line in log)
    with pytest.raises(DataError, match="none of its labels is in the training data"):
        trained(tmp_path, 'data.on_error="skip"', out="n", valid="fine\tposs\n")


@torch.no_grad()
def test_class_weights_scale_the_loss(tmp_path: Path) -> None:
    loaded_recipe = load_recipe(write_recipe(tmp_path), [*SMALL, 'training.class_weights=["neg=3"]'])
    assets = ClassifierAssets.train(train_pairs(loaded_recipe), loaded_recipe.recipe)
    task = ClassificationTraining(
        loaded_recipe.recipe,
        {"train": train_pairs(loaded_recipe), "valid": train_pairs(loaded_recipe)},
        assets,
    )
    model = TASK.build(loaded_recipe.recipe, assets).eval()
    batch = next(task.batches(1))
    assert batch.labels is not None
    logp = model(batch).logits.log_softmax(dim=-1)
    each = -logp[torch.arange(len(logp)), batch.labels]
    assert float(task.loss(model, batch).total) == pytest.approx(float(each.sum()), rel=1e-5)
    model.train()
    model.output_dropout.p = model.dropout.p = model.encoder.dropout.p = 0.0  # type: ignore[union-attr]
    assert assets.labels.names == ["neg", "pos"]
    weights = torch.tensor([1.5, 0.5])[batch.labels]
    assert float(task.loss(model, batch).total) == pytest.approx(float((each * weights).sum()), rel=1e-5)


def train_pairs(loaded_recipe: Any) -> list[Any]:
    return list(open_splits(loaded_recipe.recipe, loaded_recipe.base)["train"])


def test_embeddings_are_initialized_from_a_file_of_vectors(tmp_path: Path) -> None:
    numbers = " ".join(["0.25"] * 6)
    (tmp_path / "v.txt").write_text(f"good {numbers}\nelsewhere {numbers}\n")
    loaded, log = trained(tmp_path, "data.vectors=v.txt", "training.freeze_embeddings=true")
    assert any("vectors for 1 of 6 words from v.txt" in line for line in log)
    good = loaded.assets.source.encode("good")[0]
    assert loaded.model.embedding.weight[good].tolist() == [0.25] * 6, "frozen embeddings stay"
    assert loaded.recipe.data.vectors == str(tmp_path / "v.txt")
    other, _ = trained(tmp_path, "data.vectors=v.txt", out="n")
    assert other.model.embedding.weight[good].tolist() != [0.25] * 6
    (tmp_path / "v.txt").write_text("good 1 2\n")
    with pytest.raises(DataError, match=r"has vectors of 2 numbers, but model.embedding = 6"):
        trained(tmp_path, "data.vectors=v.txt", out="o")
    (tmp_path / "v.txt").write_text(f"Good {numbers}\n")
    with pytest.raises(DataError, match=r"has a vector for none of the 6 words.*tokenizer.lowercase"):
        trained(tmp_path, "data.vectors=v.txt", out="o")


def test_the_encoder_is_initialized_from_another_classifier(tmp_path: Path) -> None:
    first, _ = trained(tmp_path)
    files = {"train": "good film\t5\nsoup again\t1\n", "valid": "good\t5\n"}
    frozen = ("training.learning_rate=1e-9", "training.init_from=m")
    second, log = trained(tmp_path, *frozen, out="n", **files)
    assert "initialized from m: its encoder, and embeddings of 7 of 8 words" in log
    actual, expected = second.model.state_dict(), first.model.state_dict()
    for name in actual:
        if not name.startswith(("output.", "embedding.")):
            assert torch.allclose(actual[name], expected[name], atol=1e-6), name
    rows = [loaded.assets.source.encode("soup")[0] for loaded in (second, first)]
    assert torch.allclose(actual["embedding.weight"][rows[0]], expected["embedding.weight"][rows[1]], atol=1e-6)
    with pytest.raises(ModelError, match=r"has a different shape:\n  - model.encoder.hidden: 4 -> 5"):
        trained(tmp_path, *frozen, "model.encoder.hidden=5", out="o", **files)
    with pytest.raises(DataError, match="does not exist"):
        trained(tmp_path, "training.init_from=none", out="o")


def test_targets_are_mixed_with_the_mean_probabilities_of_the_teachers(tmp_path: Path) -> None:
    first, _ = trained(tmp_path, out="a")
    second, _ = trained(tmp_path, "training.seed=2", "tokenizer.kind=bpe", "tokenizer.vocab_size=300", out="b")
    teachers, plain = 'training.teachers=["a", "b"]', ("training.label_smoothing=0.0", "training.distill_weight=0.25")
    loaded_recipe = load_recipe(write_recipe(tmp_path), [*SMALL, teachers, *plain])
    setup = TASK.setup_training(loaded_recipe.recipe, loaded_recipe.base, None, Callbacks())
    task = setup.task
    assert isinstance(task, ClassificationTraining)
    assert task.teacher_probs is not None
    texts = [line.split("\t")[0] for line in TRAIN.splitlines()]
    probs = [label_probabilities(o.model, o.assets.source.encode_all(texts)) for o in (first, second)]
    assert torch.allclose(task.teacher_probs, (probs[0] + probs[1]) / 2, atol=1e-6)
    model = TASK.build(loaded_recipe.recipe, task.assets)
    model.output_dropout.p = model.dropout.p = model.encoder.dropout.p = 0.0  # type: ignore[union-attr]
    batch = next(task.batches(1))
    assert batch.labels is not None
    assert batch.teacher_probs is not None
    logp = model(batch).logits.detach().log_softmax(dim=-1)
    of_label = -logp[torch.arange(len(logp)), batch.labels]
    of_teachers = -(batch.teacher_probs * logp).sum(dim=1)
    expected = float((0.75 * of_label + 0.25 * of_teachers).sum())
    for parts in ([batch], [batch.rows(0, 2), batch.rows(1, 2)]):
        total = sum(float(task.loss(model, part).total.detach()) for part in parts)
        assert total == pytest.approx(expected, rel=1e-5)


def test_the_stored_recipe_has_the_absolute_paths_of_the_teachers(tmp_path: Path) -> None:
    trained(tmp_path, out="a")
    loaded, _ = trained(tmp_path, 'training.teachers=["a"]')
    assert loaded.recipe.training.teachers == (str(tmp_path / "a"),)


def test_texts_too_long_for_a_teacher_are_truncated(tmp_path: Path) -> None:
    """A teacher may have shorter tokens than the student, and fewer positions."""
    letters = ("tokenizer.kind=character", "data.max_source=6", "data.on_too_long=cut")
    table = ("model.encoder.positions=learned", "model.encoder.max_positions=7")
    sizes = ("model.encoder.heads=2", "model.encoder.feedforward=8", "model.attention.hidden=5")
    shape = ("model.preset=classify-transformer", *table, *sizes)
    teacher, _ = trained(tmp_path, *letters, *shape, out="a")
    loaded_recipe = load_recipe(write_recipe(tmp_path), [*SMALL, 'training.teachers=["a"]'])
    log: list[str] = []
    task = TASK.setup_training(loaded_recipe.recipe, loaded_recipe.base, None, Callbacks(log=log.append)).task
    assert log == ["computing the probabilities of a for 4 texts"]
    assert isinstance(task, ClassificationTraining)
    assert task.teacher_probs is not None
    truncated = ["good", "a bad", "a good", "bad"]  # complete words of at most six characters
    expected = label_probabilities(teacher.model, teacher.assets.source.encode_all(truncated))
    assert torch.allclose(task.teacher_probs, expected, atol=1e-6)


def test_teachers_with_other_labels_are_refused(tmp_path: Path) -> None:
    trained(tmp_path, out="a", train="good\t5\nbad\t1\n", valid="good\t5\n")
    error = refused(tmp_path, 'training.teachers=["a"]')
    assert "has different labels (only in the teacher: 1, 5; only in the training data: neg, pos)" in error
    many = "".join(f"text {n}\tlabel{n}\n" * 3 for n in range(8))
    trained(tmp_path, out="b", train=many, valid="some words\tlabel1\nother words\tlabel2\n")
    error = refused(
        tmp_path, 'training.teachers=["b"]', train=many[:-42], valid="some words\tlabel1\nother words\tlabel2\n"
    )
    assert "has different labels (only in the teacher: label7)" in error
    unfinished = tmp_path / "c"
    unfinished.mkdir()
    assert f"training.teachers: {unfinished}: not a finished model" in refused(tmp_path, 'training.teachers=["c"]')
    assert 'did you mean "a"' in refused(tmp_path, 'training.teachers=["aa"]')
    assert "cannot be combined" in refused(tmp_path, 'training.teachers=["a"]', "training.rdrop=1.0")


def test_settings_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = write_recipe(tmp_path)
    for overrides, error in (
        (["task.kind=translate"], "not a preset for translate"),
        (["model.preset=luong"], "not a preset for classify; known: classify"),
        (["model.encoder.kind=transformer", "model.classifier.query=final"], "has no final state"),
        (["model.attention.placement=hard"], "attends once, to all words"),
        (["model.attention.coverage=true"], "nothing to cover"),
        (["model.attention.heads=3"], "does not divide the encoder's width 256"),
        (["model.decoder.hidden=9"], "a classifier has no decoder"),
        (
            ["model.preset=classify-zhou", "model.encoder.bidirectional=false"],
            "needs a bidirectional recurrent encoder",
        ),
        (
            ["model.preset=classify-mean", "model.classifier.form=zhou"],
            'needs classifier.pooling = "attention"',
        ),
        (["model.preset=classify-sentences", "model.encoder.kind=conv"], "needs a recurrent encoder"),
        (
            ["model.preset=classify-sentences", "model.classifier.query=final"],
            'needs classifier.query = "lear',
        ),
        (["model.preset=classify-sentences", "model.attention.heads=2"], "cannot be combined with attention.heads"),
        (["model.preset=classify-sentences", "model.classifier.lm_auxiliary=1"], "or classifier.lm_auxiliary"),
        (['model.classifier.sentences=[" "]'], "contains an empty token"),
        (
            [
                "model.preset=classify-sentences",
                "model.classifier.pooling=max",
                "model.attention.coverage=true",
            ],
            "nothing to cover",
        ),
        (["tokenizer.shared=true"], "labels are not tokenized"),
        (["data.split_by=target"], "would put every label into a single split"),
        (["training.metric=exact"], 'use "accuracy" for labels'),
        (["data.vectors=v", "tokenizer.kind=bpe"], 'word vectors need tokenizer.kind = "word"'),
        (["training.freeze_embeddings=true"], "needs data.vectors"),
        (['training.class_weights=["a"]'], 'expected "label=weight", or only "balanced"'),
    ):
        with pytest.raises(HeedfulError) as caught:
            load_recipe(path, overrides)
        assert error in str(caught.value)
    text = path.parent / "text.toml"
    text.write_text("[data.world]\n")
    for override, error in (
        ("data.world.name=moods", 'the world "moods" has labels'),
        ("training.freeze_embeddings=true", 'training.freeze_embeddings: is for task.kind = "classify"'),
        ('training.teachers=["a"]', 'training.teachers: is for task.kind = "classify"'),
    ):
        with pytest.raises(HeedfulError) as caught:
            load_recipe(text, [override])
        assert error in str(caught.value)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_preset_memorizes_some_texts(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('[task]\nkind = "classify"\n[data.world]\nname = "moods"\nmax_words = 8\ntrain = 48\n')
    sizes = ["model.embedding=16", "model.encoder.hidden=16", "model.encoder.feedforward=32"]
    rate = ["training.learning_rate=0.02", "training.epochs=40", "training.batch_tokens=90", "training.threads=1"]
    plain = ["model.dropout=0.0", "model.classifier.dropout=0.0", "training.validate_every=1000"]
    if name == "classify-sentences":
        plain.append('model.classifier.sentences=["was", "is", "felt", "looked"]')
    plan = load_recipe(path, [f"model.preset={name}", *sizes, *rate, *plain, "training.warmup_steps=10"]).recipe
    assert plan.data.world is not None
    texts = world_pairs(plan.data.world)["train"]
    task = ClassificationTraining(plan, {"train": texts, "valid": texts}, ClassifierAssets.train(texts, plan))
    torch.manual_seed(1)
    outcome = train(task, TASK.build(plan, task.assets), plan.training, tmp_path)
    assert outcome.best.metrics["accuracy"] >= 95, outcome.best.metrics


def test_texts_without_sentence_ends_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "model.preset=classify-sentences")
    assert "no word of the texts ends with . or ! or ?" in error


@pytest.mark.parametrize("kind", ["word", "bpe", "character"])
def test_sentence_ends_are_found_with_every_tokenizer(tmp_path: Path, kind: str) -> None:
    """Special tokens have marks in their names, but end no sentence."""
    text = "好 。 坏 > 好 。\tpos\n坏 … 好 >\tneg\n"
    marks = 'model.classifier.sentences=["。", ">"]'
    loaded, _ = trained(
        tmp_path, "model.preset=classify-sentences", f"tokenizer.kind={kind}", marks, train=text, valid=text
    )
    ends = loaded.model.get_buffer("ends_sentence").nonzero().flatten().tolist()
    assert {loaded.assets.source.token_text(i)[-1] for i in ends if i != END} == {"。", ">"}
    assert UNK not in ends
