"""What a classifier is trained on and from: data that does not fit, weights of labels, vectors, models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.config import load_recipe
from heedful.config.presets import CLASSIFIERS
from heedful.data.readers import world_pairs
from heedful.data.tokenizer import END, UNK
from heedful.errors import DataError, HeedfulError, ModelError
from heedful.tasks.classify import KIND, ClassifyTask, Labeller, learn, probabilities
from heedful.tasks.folder import open_model
from heedful.tasks.train import run
from heedful.training.loop import train
from heedful.training.types import Ears

TRAIN = "good film\tpos\na bad film\tneg\na good day\tpos\nbad soup\tneg\n"
SMALL = (
    "model.embedding=6",
    "model.encoder.hidden=4",
    "model.attention.hidden=5",
    "training.epochs=1",
    "training.threads=1",
)


def recipe(folder: Path, train: str = TRAIN, valid: str = "good\tpos\n", more: str = "") -> Path:
    (folder / "train.tsv").write_text(train, encoding="utf-8")
    (folder / "valid.tsv").write_text(valid, encoding="utf-8")
    path = folder / "r.toml"
    path.write_text(
        '[task]\nkind = "classify"\n[data]\ntrain = ["train.tsv"]\nvalid = ["valid.tsv"]\n'
        f'[model]\npreset = "classify-learned"\n{more}',
        encoding="utf-8",
    )
    return path


def trained(folder: Path, *overrides: str, out: str = "m", **files: str) -> tuple[Labeller, list[str]]:
    said: list[str] = []
    run(load_recipe(recipe(folder, **files), [*SMALL, *overrides]), folder / out, Ears(say=said.append))
    return open_model(folder / out), said


def refused(folder: Path, *overrides: str, **files: str) -> str:
    with pytest.raises(HeedfulError) as caught:
        trained(folder, *overrides, **files)
    assert not (folder / "m").exists(), "nothing half-made is left"
    return str(caught.value)


def test_data_that_does_not_fit_is_refused_in_words(tmp_path: Path) -> None:
    said = refused(tmp_path, valid="good\tpos\nfine\tposs\n")
    assert 'valid.tsv, line 2: the label "poss" is not in the training data; did you mean "pos"?' in said
    assert 'the only one is "pos"' in refused(tmp_path, train="a\tpos\nb\tpos\n")
    assert "class_weights: no label 'x'" in refused(tmp_path, 'training.class_weights=["x=2"]')
    swapped = "".join(f"pos\tthis is text {n}\n" for n in range(30))
    assert "the wrong way round" in refused(tmp_path, train=swapped)


def test_strange_labels_can_be_left_out_of_the_validation(tmp_path: Path) -> None:
    _, said = trained(tmp_path, 'data.broken="skip"', valid="good\tpos\nfine\tposs\n")
    assert any('left out for labels that are not in the training data: "poss" 1' in line for line in said)
    with pytest.raises(DataError, match="none of its labels is in the training data"):
        trained(tmp_path, 'data.broken="skip"', out="n", valid="fine\tposs\n")


@torch.no_grad()
def test_weights_of_labels_reach_the_loss(tmp_path: Path) -> None:
    loaded = load_recipe(recipe(tmp_path), [*SMALL, 'training.class_weights=["neg=3"]'])
    words = learn(train_pairs(loaded), loaded.recipe)
    task = ClassifyTask(loaded.recipe, {"train": train_pairs(loaded), "valid": train_pairs(loaded)}, words)
    model = KIND.build(loaded.recipe, words).eval()
    batch = next(task.batches(1))
    assert batch.labels is not None
    logp = model.judge(batch).logits.log_softmax(dim=-1)
    each = -logp[torch.arange(len(logp)), batch.labels]
    assert float(task.loss(model, batch).total) == pytest.approx(float(each.sum()), rel=1e-5)
    model.train()
    model.drop_said.p = model.dropout.p = model.encoder.dropout.p = 0.0  # type: ignore[union-attr]
    assert words.labels.names == ["neg", "pos"]
    weights = torch.tensor([1.5, 0.5])[batch.labels]
    assert float(task.loss(model, batch).total) == pytest.approx(float((each * weights).sum()), rel=1e-5)


def train_pairs(loaded: Any) -> list[Any]:
    from heedful.tasks.text import open_splits

    return list(open_splits(loaded.recipe, loaded.base)["train"])


def test_vectors_from_a_file(tmp_path: Path) -> None:
    numbers = " ".join(["0.25"] * 6)
    (tmp_path / "v.txt").write_text(f"good {numbers}\nelsewhere {numbers}\n")
    opened, said = trained(tmp_path, "data.vectors=v.txt", "training.hold_vectors=true")
    assert any("vectors for 1 of 6 words from v.txt" in line for line in said)
    good = opened.words.source.encode("good")[0]
    assert opened.model.embedding.weight[good].tolist() == [0.25] * 6, "held, they stay as they are"
    assert opened.recipe.data.vectors == str(tmp_path / "v.txt")
    other, _ = trained(tmp_path, "data.vectors=v.txt", out="n")
    assert other.model.embedding.weight[good].tolist() != [0.25] * 6
    (tmp_path / "v.txt").write_text("good 1 2\n")
    with pytest.raises(DataError, match=r"vectors of 2 numbers, but model.embedding = 6"):
        trained(tmp_path, "data.vectors=v.txt", out="o")
    (tmp_path / "v.txt").write_text(f"Good {numbers}\n")
    with pytest.raises(DataError, match=r"not one of the 6 words has a vector.*tokenizer.lowercase"):
        trained(tmp_path, "data.vectors=v.txt", out="o")


def test_a_model_to_start_from(tmp_path: Path) -> None:
    first, _ = trained(tmp_path)
    files = {"train": "good film\t5\nsoup again\t1\n", "valid": "good\t5\n"}
    still = ("training.rate=1e-9", "training.start_from=m")
    second, said = trained(tmp_path, *still, out="n", **files)
    assert "the reader of m, and its vectors for 7 of 8 words" in said
    mine, theirs = second.model.state_dict(), first.model.state_dict()
    for name in mine:
        if not name.startswith(("output.", "embedding.")):
            assert torch.allclose(mine[name], theirs[name], atol=1e-6), name
    rows = [opened.words.source.encode("soup")[0] for opened in (second, first)]
    assert torch.allclose(mine["embedding.weight"][rows[0]], theirs["embedding.weight"][rows[1]], atol=1e-6)
    with pytest.raises(ModelError, match=r"not of this recipe's shape:\n  - model.encoder.hidden: 4 -> 5"):
        trained(tmp_path, *still, "model.encoder.hidden=5", out="o", **files)
    with pytest.raises(DataError, match="is not there"):
        trained(tmp_path, "training.start_from=none", out="o")


def test_teachers_say_what_is_learnt_beside_the_labels(tmp_path: Path) -> None:
    first, _ = trained(tmp_path, out="a")
    second, _ = trained(tmp_path, "training.seed=2", "tokenizer.kind=bpe", "tokenizer.size=300", out="b")
    teachers, plain = 'training.teachers=["a", "b"]', ("training.smoothing=0.0", "training.teaching=0.25")
    loaded = load_recipe(recipe(tmp_path), [*SMALL, teachers, *plain])
    started = KIND.start(loaded.recipe, loaded.base, None, Ears())
    task = started.task
    assert isinstance(task, ClassifyTask)
    assert task.taught is not None
    said = [
        probabilities(
            o.model, o.words.source.encode_all([line.split("\t")[0] for line in TRAIN.splitlines()])
        )
        for o in (first, second)
    ]
    assert torch.allclose(task.taught, (said[0] + said[1]) / 2, atol=1e-6)
    model = KIND.build(loaded.recipe, task.words)
    model.drop_said.p = model.dropout.p = model.encoder.dropout.p = 0.0  # type: ignore[union-attr]
    batch = next(task.batches(1))
    assert batch.labels is not None
    assert batch.taught is not None
    logp = model.judge(batch).logits.detach().log_softmax(dim=-1)
    own = -logp[torch.arange(len(logp)), batch.labels]
    theirs = -(batch.taught * logp).sum(dim=1)
    wanted = float((0.75 * own + 0.25 * theirs).sum())
    for parts in ([batch], [batch.rows(0, 2), batch.rows(1, 2)]):
        total = sum(float(task.loss(model, part).total.detach()) for part in parts)
        assert total == pytest.approx(wanted, rel=1e-5)


def test_a_taught_training_ends_and_its_recipe_finds_the_teachers_again(tmp_path: Path) -> None:
    trained(tmp_path, out="a")
    opened, _ = trained(tmp_path, 'training.teachers=["a"]')
    assert opened.recipe.training.teachers == (str(tmp_path / "a"),)


def test_a_teacher_reads_as_much_of_a_text_as_it_can(tmp_path: Path) -> None:
    """Its tokens may be shorter than the pupil's, and its table of positions too."""
    letters = ("tokenizer.kind=character", "data.max_source=6", "data.longer=cut")
    table = ("model.encoder.positions=learned", "model.encoder.max_positions=7")
    sizes = ("model.encoder.heads=2", "model.encoder.feedforward=8", "model.attention.hidden=5")
    shape = ("model.preset=classify-transformer", *table, *sizes)
    teacher, _ = trained(tmp_path, *letters, *shape, out="a")
    loaded = load_recipe(recipe(tmp_path), [*SMALL, 'training.teachers=["a"]'])
    said: list[str] = []
    task = KIND.start(loaded.recipe, loaded.base, None, Ears(say=said.append)).task
    assert said == ["asking a about 4 texts"]
    assert isinstance(task, ClassifyTask)
    assert task.taught is not None
    firsts = ["good", "a bad", "a good", "bad"]  # whole words of at most six letters
    wanted = probabilities(teacher.model, teacher.words.source.encode_all(firsts))
    assert torch.allclose(task.taught, wanted, atol=1e-6)


def test_teachers_that_cannot_teach(tmp_path: Path) -> None:
    trained(tmp_path, out="a", train="good\t5\nbad\t1\n", valid="good\t5\n")
    said = refused(tmp_path, 'training.teachers=["a"]')
    assert "knows other labels (only there: 1, 5; only here: neg, pos)" in said
    many = "".join(f"text {n}\tlabel{n}\n" * 3 for n in range(8))
    trained(tmp_path, out="b", train=many, valid="text\tlabel1\n")
    said = refused(tmp_path, 'training.teachers=["b"]', train=many[:-42], valid="text\tlabel1\n")
    assert "knows other labels (only there: label7)" in said
    unfinished = tmp_path / "c"
    unfinished.mkdir()
    assert f"training.teachers: {unfinished}: not a finished model" in refused(
        tmp_path, 'training.teachers=["c"]'
    )
    assert 'did you mean "a"' in refused(tmp_path, 'training.teachers=["aa"]')
    assert "take one" in refused(tmp_path, 'training.teachers=["a"]', "training.agreement=1.0")


def test_recipes_that_do_not_fit_together(tmp_path: Path) -> None:
    path = recipe(tmp_path)
    for overrides, words in (
        (["task.kind=translate"], 'has no section [model.classifier]; that is for "classify"'),
        (["model.preset=luong"], "give a preset such as classify-learned"),
        (["model.encoder.kind=transformer", "model.classifier.query=final"], "has no final state"),
        (["model.attention.placement=hard"], "looks once, at all words"),
        (["model.attention.coverage=true"], "nothing to remember"),
        (["model.attention.heads=3"], "does not divide the encoder's width 256"),
        (["model.decoder.hidden=9"], "a classifier writes nothing"),
        (["model.preset=classify-zhou", "model.encoder.bidirectional=false"], "reads from both ends"),
        (
            ["model.preset=classify-mean", "model.classifier.form=zhou"],
            'needs classifier.pooling = "attention"',
        ),
        (["model.preset=classify-sentences", "model.encoder.kind=conv"], "are read by recurrence"),
        (
            ["model.preset=classify-sentences", "model.classifier.query=final"],
            'take classifier.query = "lear',
        ),
        (["model.preset=classify-sentences", "model.attention.heads=2"], "not with attention.heads"),
        (["model.preset=classify-sentences", "model.classifier.neighbours=1"], "nor with classifier.neig"),
        (['model.classifier.sentences=[" "]'], "a mark is empty"),
        (
            [
                "model.preset=classify-sentences",
                "model.classifier.pooling=max",
                "model.attention.coverage=true",
            ],
            "nothing to remember",
        ),
        (["tokenizer.shared=true"], "labels are taken as they are"),
        (["data.split_by=target"], "each label would be in one split only"),
        (["training.metric=exact"], 'of labels that is "accuracy"'),
        (["data.vectors=v", "tokenizer.kind=bpe"], 'are of words, so tokenizer.kind = "word"'),
        (["training.hold_vectors=true"], "needs data.vectors"),
        (['training.class_weights=["a"]'], 'expected "label=weight", or only "balanced"'),
    ):
        with pytest.raises(HeedfulError) as caught:
            load_recipe(path, overrides)
        assert words in str(caught.value)
    text = path.parent / "text.toml"
    text.write_text("[data.world]\n")
    for override, words in (
        ("data.world.name=moods", 'the world "moods" has labels'),
        ("training.hold_vectors=true", 'training.hold_vectors: only task.kind = "classify" knows it'),
        ('training.teachers=["a"]', 'training.teachers: only task.kind = "classify" knows it'),
    ):
        with pytest.raises(HeedfulError) as caught:
            load_recipe(text, [override])
        assert words in str(caught.value)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_preset_learns_some_texts_by_heart(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text('[task]\nkind = "classify"\n[data.world]\nname = "moods"\nmax_words = 8\ntrain = 48\n')
    sizes = ["model.embedding=16", "model.encoder.hidden=16", "model.encoder.feedforward=32"]
    rate = ["training.rate=0.02", "training.epochs=40", "training.batch_tokens=90", "training.threads=1"]
    plain = ["model.dropout=0.0", "model.classifier.dropout=0.0", "training.validate_every=1000"]
    if name == "classify-sentences":
        plain.append('model.classifier.sentences=["was", "is", "felt", "looked"]')
    plan = load_recipe(path, [f"model.preset={name}", *sizes, *rate, *plain, "training.warmup=10"]).recipe
    assert plan.data.world is not None
    texts = world_pairs(plan.data.world)["train"]
    task = ClassifyTask(plan, {"train": texts, "valid": texts}, learn(texts, plan))
    torch.manual_seed(1)
    outcome = train(task, KIND.build(plan, task.words), plan.training, tmp_path)
    assert outcome.best.figures["accuracy"] >= 95, outcome.best.figures


def test_texts_without_sentences_are_said(tmp_path: Path) -> None:
    said = refused(tmp_path, "model.preset=classify-sentences")
    assert "no word of the texts ends with . or ! or ?" in said


@pytest.mark.parametrize("kind", ["word", "bpe", "character"])
def test_marks_are_what_people_write(tmp_path: Path, kind: str) -> None:
    """Whatever a tokeniser calls them; special tokens, which have marks in their names, end nothing."""
    text = "好 。 坏 > 好 。\tpos\n坏 … 好 >\tneg\n"
    marks = 'model.classifier.sentences=["。", ">"]'
    opened, _ = trained(
        tmp_path, "model.preset=classify-sentences", f"tokenizer.kind={kind}", marks, train=text, valid=text
    )
    found = opened.model.get_buffer("marks").nonzero().flatten().tolist()
    assert {opened.words.source.shown(i)[-1] for i in found if i != END} == {"。", ">"}
    assert UNK not in found
