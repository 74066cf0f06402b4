"""Recommending as users do: train, measure, ask, trace, draw; and what is said to those who got it wrong."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import heedful
from heedful.config import load_recipe
from heedful.data.ratings import open_ratings
from heedful.record import Trace
from heedful.studies.measure_history import HistorySubject
from heedful.studies.measure_history import cases as history_cases
from heedful.tasks.folder import open_model
from heedful.tasks.recommend import RecommenderModel, RecommendTask
from test_bad_input import complaint, here, stopped

pytestmark = pytest.mark.usefixtures("as_users_run")
DATA = Path(os.environ.get("HEEDFUL_DATA", "nowhere")) / "movielens_1m_loo"
RECIPES = Path(__file__).parent.parent.parent / "recipes"
RECIPE = """
[task]
kind = "recommend"
[data.world]
name = "tastes"
train = 120
valid = 30
test = 30
[model]
preset = "nais-prod"
embedding = 8
[training]
epochs = 2
batch_tokens = 500
rate = 0.02
threads = 1
"""
HEADS = """
[task]
kind = "recommend"
[model]
preset = "fism"
embedding = 4
[training]
epochs = 1
threads = 1
"""


def trained(folder: Path, *overrides: str, name: str = "m") -> Path:
    (folder / "r.toml").write_text(RECIPE)
    done = here("train", folder / "r.toml", *overrides, "--out", folder / name)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("recommend"))


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("counting"), "model.preset=popularity", "model.embedding=1")


def asked(*words: str | Path) -> dict[str, Any]:
    done = here("recommend", *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_is_measured(model: Path) -> None:
    done = here("evaluate", "-m", model)
    assert done.returncode == 0, done.stderr
    assert re.search(r"hr@10 +\d+\.\d\d +among:99 given\|ties:against\|users:30\|percent", done.stdout)
    assert re.search(r"weight on the right items of a history +\d+\.\d%", done.stdout)
    every = here("evaluate", "-m", model, "--metric", "hr@10:all", "--metric", "ndcg@5:ties-for", "--json")
    names = [metric["name"] for metric in json.loads(every.stdout)["metrics"]]
    assert names == ["hr@10:all", "ndcg@5:ties-for"]


def test_two_models_are_compared(model: Path, counting: Path) -> None:
    done = here("evaluate", "-m", model, "--against", counting)
    assert "difference" in done.stdout, done.stderr


def test_items_are_recommended_with_their_reasons(model: Path) -> None:
    found = asked("-m", model, "--user", "7", "--top", "5")
    known = {item["id"] for item in found["history"]}
    scores = [item["score"] for item in found["items"]]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert not known & {item["id"] for item in found["items"]}
    for item in found["items"]:
        assert len(item["because"]) <= 3
        assert {reason["id"] for reason in item["because"]} <= known
    every = asked("-m", model, "--user", "7", "--top", "200")["items"]
    assert all(reason["effect"] > 0 for item in every for reason in item["because"]), "it spoke for it"
    said = here("recommend", "-m", model, "--user", "7")
    assert f"for user 7, who took {len(known)} items:" in said.stderr
    lines = [line.split("\t") for line in said.stdout.splitlines()]
    assert [line[0] for line in lines] == [str(place) for place in range(1, 11)]
    assert lines[0][1] == found["items"][0]["title"]
    assert found["items"][0]["because"][0]["title"] in lines[0][3]


def test_the_effect_of_an_item_is_the_score_with_it_minus_without_it(model: Path) -> None:
    found = asked("-m", model, "--user", "7", "--top", "1")
    opened: RecommenderModel = open_model(model)
    history = opened.words.histories.of(7)
    best = found["items"][0]
    target = torch.tensor([opened.words.item_numbers[best["id"]]])
    assert opened.model.judge(torch.from_numpy(history), target).scores.item() == pytest.approx(
        best["score"], abs=1e-4
    )
    for reason in best["because"]:
        rest = history[history != opened.words.item_numbers[reason["id"]]]
        without = opened.model.judge(torch.from_numpy(rest), target).scores.item()
        assert reason["effect"] == pytest.approx(best["score"] - without, abs=1e-4)


def test_somebody_new_is_known_by_a_history(model: Path) -> None:
    titles = open_model(model).words.titles
    found = asked("-m", model, "--items", f"{titles[3]}; {titles[9].lower()} ;{titles[3]}")
    assert [item["title"] for item in found["history"]] == [titles[3], titles[9]]
    assert found["user"] is None
    assert len(found["items"]) == 10


def test_what_cannot_be_recommended_for(model: Path, tmp_path: Path) -> None:
    words = ("recommend", "-m", model)
    title = open_model(model).words.titles[3]
    assert 'no user "70000"' in complaint(*words, "--user", "70000")
    said = complaint(*words, "--items", f"{title[:-2]}q{title[-1]}; zzzz")
    assert f'did you mean "{title}"' in said
    assert 'no item is called "zzzz"' in said
    assert "nothing to go by: give --user ID" in complaint(*words)
    assert "nothing to go by" in complaint(*words, "--items", " ; ")
    assert "not both" in complaint(*words, "--user", "7", "--items", title)
    assert "--about: names the item that -o draws" in complaint(*words, "--user", "7", "--about", title)
    assert "there is no such model folder" in complaint("recommend", "-m", tmp_path / "none", "--user", "7")


def test_a_user_without_a_history(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("".join(f"{u}\t{i}\n" for u in range(6) for i in range(u, u + 4)))
    (tmp_path / "test.tsv").write_text("0\t9\nnew\t1\n")
    data = '[data]\ntrain = ["t.tsv"]\ntest = ["test.tsv"]\n[data.ratings]\nnegatives = 3\n'
    (tmp_path / "r.toml").write_text(HEADS + data)
    assert here("train", tmp_path / "r.toml", "--out", tmp_path / "m").returncode == 0
    assert here("evaluate", "-m", tmp_path / "m").stdout.startswith("m: 2 users")
    said = complaint("recommend", "-m", tmp_path / "m", "--user", "new")
    assert "user new has no history" in said


def test_reasons_are_drawn(model: Path, tmp_path: Path) -> None:
    title = open_model(model).words.titles[3]
    for name in ("bars.png", "bars.svg", "bars.pdf"):
        done = here("recommend", "-m", model, "--user", "7", "--about", title, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).stat().st_size > 2000
    drawn = (tmp_path / "bars.svg").read_text()
    assert title in drawn
    assert "score with it minus score without it" in drawn
    done = here("recommend", "-m", model, "--user", "7", "-o", tmp_path / "bars.xyz")
    assert (done.returncode, "cannot draw as '.xyz'" in done.stderr) == (2, True)
    assert not (tmp_path / "bars.xyz").exists()


@pytest.mark.parametrize("extra", [(), ("--detail", "full"), ("--replay",)])
def test_a_recommendation_is_traced(model: Path, tmp_path: Path, extra: tuple[str, ...]) -> None:
    out = tmp_path / "t.json"
    done = here("trace", "user:7", "-m", model, "-o", out, *extra)
    assert done.returncode == 0, done.stderr
    trace = Trace.load(out)
    history = open_model(model).words.histories.of(7)
    assert [token.id for token in trace.source.tokens] == history.tolist()
    assert trace.matrix().shape == (10, len(history))
    assert trace.checks is not None
    assert trace.checks.softmax is not None
    assert max(trace.checks.softmax, trace.checks.context or 1.0) < 1e-6
    if extra == ("--replay",):
        again = trace.checks
        parts = (again.score, again.softmax, again.context, again.said, again.output)
        assert max(part for part in parts if part is not None) < 1e-5
        assert None not in parts
    shown = here("show", out)
    assert trace.source.words[0][:5] in shown.stdout
    assert here("show", out, "-o", tmp_path / "t.png").returncode == 0


def test_a_trace_of_items_that_were_asked_for(model: Path, tmp_path: Path) -> None:
    words = open_model(model).words
    own = words.name(int(words.histories.of(7)[0]))
    out = tmp_path / "t.json"
    done = here(
        "trace", "user:7", "-m", model, "--target", f"{own}; {words.titles[3]}", "-o", out, "--replay"
    )
    assert done.returncode == 0, done.stderr
    trace = Trace.load(out)
    assert trace.target.words == [own, words.titles[3]]
    assert trace.matrix()[0, 0] == 0.0  # no item reads itself
    assert trace.checks is not None
    assert (trace.checks.softmax or 0.0) < 1e-6
    done = here("trace", f"items:{own}", "-m", model, "-o", out, "--set", "zero:position=0")
    assert done.returncode == 0, done.stderr
    assert Trace.load(out).matrix().max() == 0.0


@pytest.mark.parametrize("preset", ["nais-concat", "fism", "self-attention"])
def test_every_recommender_is_trained_and_traced(preset: str, tmp_path: Path) -> None:
    sizes = ["model.encoder.hidden=8"] if preset == "self-attention" else []
    made = trained(tmp_path, f"model.preset={preset}", "training.epochs=1", *sizes)
    assert here("evaluate", "-m", made).returncode == 0
    assert len(asked("-m", made, "--user", "3")["items"]) == 10
    done = here("trace", "user:3", "-m", made, "--detail", "full", "--replay", "-o", tmp_path / "t.json")
    assert done.returncode == 0, done.stderr
    again = Trace.load(tmp_path / "t.json").checks
    assert again is not None
    assert max(again.score or 0.0, again.context or 0.0, again.said or 0.0, again.output or 0.0) < 1e-4


def test_what_cannot_be_traced(model: Path, tmp_path: Path) -> None:
    out = ("-m", model, "-o", tmp_path / "t.json")
    assert "whose history? say user:ID" in complaint("trace", "7", *out)
    assert 'no user "x"' in complaint("trace", "user:x", *out)
    assert "a history has no words" in complaint("trace", "user:7", *out, "--set", "source:position=0")
    assert "models that write" in complaint("trace", "user:7", *out, "--what-if")
    assert not (tmp_path / "t.json").exists()


def test_popularity_learns_nothing(counting: Path, tmp_path: Path) -> None:
    opened: RecommenderModel = open_model(counting)
    words = opened.words
    counts = np.bincount(words.histories.items, minlength=len(words.items))
    found = asked("-m", counting, "--user", "7", "--top", "3")
    strange = np.setdiff1d(np.arange(len(counts)), words.histories.of(7))
    assert [item["score"] for item in found["items"]] == sorted(counts[strange].tolist(), reverse=True)[:3]
    assert all(item["because"] == [] for item in found["items"])
    first = here("recommend", "-m", counting, "--user", "7").stdout.splitlines()[0].split("\t")
    assert first[1:] == [found["items"][0]["title"], f"{found['items'][0]['score']:.0f}"]
    done = here("recommend", "-m", counting, "--user", "7", "-o", tmp_path / "b.png")
    assert "looks at no history" in done.stderr
    assert here("trace", "user:7", "-m", counting, "-o", tmp_path / "t.json", "--replay").returncode == 0
    assert "has no attention" in complaint("show", tmp_path / "t.json")
    assert "weights to change" in complaint(
        "trace", "user:7", "-m", counting, "-o", tmp_path / "t.json", "--set", "uniform"
    )


def test_a_text_model_is_no_recommender(counting: Path, tmp_path: Path) -> None:
    assert "was trained to recommend" in complaint("translate", "-m", counting, stdin="a\n")
    assert "recommenders do not join" in complaint("evaluate", "-m", counting, "-m", counting)
    assert "a recommender writes nothing" in complaint("evaluate", "-m", counting, "--beam", "3")
    assert "no such metric of a recommender" in complaint("evaluate", "-m", counting, "--metric", "bleu")
    assert "histories are for training" in complaint("evaluate", "-m", counting, "--split", "train")


def test_vectors_of_another_model_are_begun_with(tmp_path: Path) -> None:
    fism = trained(tmp_path, "model.preset=fism", "training.epochs=1", name="fism")
    still = ("training.epochs=1", "training.max_steps=1", "training.rate=1e-12")
    made = trained(tmp_path, "training.start_from=fism", *still, name="nais")
    before, after = (load_file(folder / "model.safetensors") for folder in (fism, made))
    for name in ("target.weight", "taken.weight", "bias"):
        torch.testing.assert_close(before[name], after[name], rtol=0, atol=1e-6)
    words = ("train", tmp_path / "r.toml", "--out", tmp_path / "x", "training.start_from=fism")
    assert "its vectors have width 8, but model.embedding = 4" in complaint(*words, "model.embedding=4")
    assert "was trained on other items" in complaint(*words, "data.world.items=240")
    assert "nowhere is not there" in complaint(*words[:-1], "training.start_from=nowhere")
    assert not (tmp_path / "x").exists()


def test_a_training_that_was_stopped_ends_with_the_same_bits(model: Path, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    words = ("train", tmp_path / "r.toml", "--out", tmp_path / "m")
    stopped(*words)
    assert here(*words).returncode == 0
    one, other = (load_file(folder / "model.safetensors") for folder in (model, tmp_path / "m"))
    assert {name: t.numpy().tobytes() for name, t in one.items()} == {
        name: t.numpy().tobytes() for name, t in other.items()
    }


def test_a_batch_in_parts_has_the_loss_of_the_whole(model: Path) -> None:
    opened: RecommenderModel = open_model(model)
    task = RecommendTask(opened.recipe, open_ratings(opened.recipe.data, Path()))
    batch = next(task.batches(1))
    parts = task.parts(batch, 2)
    assert len(parts) == 2
    with torch.no_grad():
        whole, *halves = (float(task.loss(opened.model, part).total) for part in (batch, *parts))  # type: ignore[arg-type]
    assert sum(halves) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.preset=bigru-gru", "histories, and only they, are read by a recommender"),
        ("task.kind=translate", "histories, and only they, are read by a recommender"),
        ("data.world.name=phrases", 'the world "phrases" has no users'),
        ("data.world.test=100", "every user of the tastes has one item held out"),
        ("model.dropout=0.1", "dropout = 0.1: belongs to self-attention"),
        ("model.encoder.kind=gru", 'encoder.kind = "gru": a history has no order'),
        ("model.attention.placement=local-m", "a history has no order, so no place to look at"),
        ("model.attention.read_end=false", "has no end token"),
        ("model.attention.heads=3", "attention.heads = 3: does not divide embedding = 8"),
        ("training.metric=bleu", 'training.metric = "bleu": no such metric of a recommender'),
    ],
)
def test_settings_that_do_not_fit(override: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    assert words in complaint("train", tmp_path / "r.toml", override, "--out", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_attention_finds_the_reasons_that_were_planted(tmp_path: Path) -> None:
    made = here("train", RECIPES / "world-tastes.toml", "training.epochs=8", "--out", tmp_path / "m")
    assert made.returncode == 0, made.stderr
    found = json.loads(here("evaluate", "-m", tmp_path / "m", "--json").stdout)
    assert found["gold"] > 0.9
    assert found["metrics"][1]["value"] > 97


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("movielens-*.toml")), ids=lambda path: path.stem)
def test_recipes_can_be_used(recipe: Path) -> None:
    assert load_recipe(recipe).recipe.task.kind == "recommend"


@pytest.mark.skipif(not DATA.is_dir(), reason="HEEDFUL_DATA has no movielens_1m_loo")
def test_popularity_on_movielens_has_the_figures_that_are_known(tmp_path: Path) -> None:
    done = here("train", RECIPES / "movielens-popularity.toml", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    names = ("hr@10", "ndcg@10", "hr@10:ties-for", "ndcg@10:ties-for")
    metrics = [word for name in names for word in ("--metric", name)]
    found = json.loads(here("evaluate", "-m", tmp_path / "m", *metrics, "--json").stdout)
    assert found["users"] == 6040
    assert [round(metric["value"], 2) for metric in found["metrics"]] == [45.20, 25.26, 45.38, 25.45]
    said = complaint("recommend", "-m", tmp_path / "m", "--items", "Toy Stroy")
    assert 'did you mean "Toy Story (1995)"' in said


def test_a_page_of_recommendations(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    done = here("recommend", "-m", model, "--user", "7", "-o", page)
    assert done.returncode == 0, done.stderr
    assert "#/history" in page.read_text(encoding="utf-8")
    out = tmp_path / "t.json"
    here("trace", "user:7", "-m", model, "-o", out)
    trace = Trace.load(out)
    effect = trace.array(trace.tests["leave-one-out"])
    assert effect.shape == trace.matrix().shape
    best = asked("-m", model, "--user", "7")["items"][0]
    titles = [reason["title"] for reason in best["because"]]
    for reason, at in zip(best["because"], map(trace.source.words.index, titles), strict=True):
        assert effect[0, at] == pytest.approx(reason["effect"], abs=1e-5)


def test_looks_at_histories_are_measured(model: Path, counting: Path, tmp_path: Path) -> None:
    done = here("measure", "-m", model, "--limit", "12", "--test", "all", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["sentences"], found["unit"], found["tests"]["decisions"]) == (12, "users", 12)
    assert found["gold"]["mass on gold"] > found["gold"]["mass on gold, uniform"] - 0.05
    tests = found["tests"]
    assert set(tests["outputs"]) == {"as it is", "uniform", "permute"}
    assert 0 <= tests["uniform"]["TVD"]["mean"] <= 1
    assert tests["correlation"]["weight and leave-one-out"]["decisions"] > 0
    opened: RecommenderModel = open_model(model)
    cases = history_cases(opened, [], "test")[:12]
    assert HistorySubject(opened, cases).outputs(1)["as it is"] == pytest.approx(tests["outputs"]["as it is"])
    fism = trained(tmp_path, "model.preset=fism", "training.epochs=1", name="fism")
    assert "weighs all items of a history alike" in complaint("measure", "-m", fism)
    assert "has no attention" in complaint("measure", "-m", counting)


def test_a_recommender_in_python(model: Path) -> None:
    ours = heedful.load(model, task="recommend")
    found = ours(user="7", top=3)
    told = asked("-m", model, "--user", "7", "--top", "3")["items"]
    assert [item.title for item in found] == [item["title"] for item in told]
    assert [reason.title for reason in found[0].because] == [r["title"] for r in told[0]["because"]]
    assert ours([found[0].title], top=1)[0].title != found[0].title
    assert ours.trace("user:7").target.words[:3] == [item.title for item in found]


def test_own_weights_give_the_models_own_chance(model: Path) -> None:
    """A probe whose weights nobody changed says what the model says; other weights, what plain loops say."""
    opened: RecommenderModel = open_model(model)
    subject = HistorySubject(opened, history_cases(opened, [], "test")[:5])
    (probe,) = subject.probes([{0}] * 5)
    assert probe.weights.sum(dim=-1).flatten().tolist() == pytest.approx([1.0] * 5, abs=1e-5)
    torch.testing.assert_close(probe.outcome(probe.weights[:, None])[:, 0], probe.p)
    net, case = subject.model.requires_grad_(False), subject.cases[0]
    row = probe.sentences.index(0)
    other = torch.zeros_like(probe.weights)
    other[row, :, 0] = 1.0
    score = float(net.bias[case.item]) + float(probe.mass[row]) * sum(
        float(a) * float(b)
        for a, b in zip(net.target.weight[case.item], net.taken.weight[int(case.history[0])], strict=True)
    )
    found = float(probe.outcome(other[:, None])[row, 0, 0])
    assert found == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-5)
    leaves = subject.again([(0, 0)], [subject.sources[0]])
    torch.testing.assert_close(leaves[0], probe.p[row], atol=1e-5, rtol=0)
    assert float(subject.saliency([(0, 0)])[0].sum()) == pytest.approx(1.0, abs=1e-5)
