"""Recommenders on the command line and in Python: trained, evaluated, explained, traced, measured."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import heedful
from command_line import RECIPES, complaint, here, stopped
from command_line import heedful as run_forked
from heedful.config import load_recipe
from heedful.data.ratings import open_ratings
from heedful.errors import ArgumentError, DecodingError
from heedful.tasks.base import EvaluationRequest
from heedful.tasks.model_folder import load_model
from heedful.tasks.recommend.api import Recommender
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.evaluate import evaluate_models
from heedful.tasks.recommend.measure import HistoryProbeTarget, load_cases
from heedful.tasks.recommend.predict import find_history, weigh_history
from heedful.tasks.recommend.predict import recommend as recommend_items
from heedful.tasks.recommend.training import RecommendationTraining
from heedful.trace.schema import Trace

pytestmark = pytest.mark.usefixtures("as_users_run")
DATA = Path(os.environ.get("HEEDFUL_DATA", "nowhere")) / "movielens_1m_loo"
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
learning_rate = 0.02
threads = 1
"""
FISM = """
[task]
kind = "recommend"
[model]
preset = "fism"
embedding = 4
[training]
epochs = 1
threads = 1
"""


def train_recommender(folder: Path, *overrides: str, name: str = "m") -> Path:
    (folder / "r.toml").write_text(RECIPE)
    done = run_forked("train", folder / "r.toml", *overrides, "--out", folder / name)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_recommender(tmp_path_factory.mktemp("recommend"))


@pytest.fixture(scope="module")
def popularity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_recommender(tmp_path_factory.mktemp("popularity"), "model.preset=popularity", "model.embedding=1")


@pytest.fixture(scope="module")
def fism(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_recommender(tmp_path_factory.mktemp("fism"), "model.preset=fism", "training.epochs=1", name="fism")


def recommend(*words: str | Path) -> dict[str, Any]:
    done = here("recommend", *words, "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_evaluate_ranks_held_out_items(model: Path) -> None:
    done = here("evaluate", "-m", model)
    assert done.returncode == 0, done.stderr
    assert re.search(r"hr@10 +\d+\.\d+ % +among:99 given\|ties:against\|users:30\|percent", done.stdout)
    assert re.search(r"weight on gold items of the history +\d+\.\d%", done.stdout)
    every = here("evaluate", "-m", model, "--metric", "hr@10:all", "--metric", "ndcg@5:ties-for", "--json")
    report = json.loads(every.stdout)
    assert [metric["name"] for metric in report["metrics"]] == ["hr@10:all", "ndcg@5:ties-for"]
    assert sum(group["users"] for group in report["by_history_length"]) == 30


def test_two_models_are_compared_over_users(model: Path, popularity: Path) -> None:
    done = here("evaluate", "-m", model, "--against", popularity)
    assert "difference" in done.stdout, done.stderr


def test_items_are_recommended_with_reasons(model: Path) -> None:
    report = recommend("-m", model, "--user", "7", "--top", "5")
    history = {item["id"] for item in report["history"]}
    scores = [item["score"] for item in report["items"]]
    assert len(scores) == 5
    assert scores == sorted(scores, reverse=True)
    assert not history & {item["id"] for item in report["items"]}
    for item in report["items"]:
        assert len(item["reasons"]) <= 3
        assert {reason["id"] for reason in item["reasons"]} <= history
    every = recommend("-m", model, "--user", "7", "--top", "200")["items"]
    assert all(reason["effect"] > 0 for item in every for reason in item["reasons"]), "reasons raise the score"
    done = here("recommend", "-m", model, "--user", "7")
    assert f"for user 7 with {len(history)} items:" in done.stderr
    assert "columns: rank, item, score, reasons (weight)" in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[0] for line in lines] == [str(rank) for rank in range(1, 11)]
    assert lines[0][1] == report["items"][0]["title"]
    assert report["items"][0]["reasons"][0]["title"] in lines[0][3]


def test_the_effect_of_an_item_is_the_score_with_it_minus_without_it(model: Path) -> None:
    best = recommend("-m", model, "--user", "7", "--top", "1")["items"][0]
    loaded: LoadedRecommender = load_model(model)
    history, numbers = loaded.assets.histories.items_of(7), loaded.assets.item_numbers
    target = torch.tensor([numbers[best["id"]]])

    def score(items: np.ndarray) -> float:
        return loaded.model.score_items(torch.from_numpy(items), target).scores.item()

    assert score(history) == pytest.approx(best["score"], abs=1e-4)
    for reason in best["reasons"]:
        without = score(history[history != numbers[reason["id"]]])
        assert reason["effect"] == pytest.approx(best["score"] - without, abs=1e-4)


def test_a_new_user_is_described_by_items(model: Path) -> None:
    titles = load_model(model).assets.titles
    report = recommend("-m", model, "--items", f"{titles[3]}; {titles[9].lower()} ;{titles[3]}")
    assert [item["title"] for item in report["history"]] == [titles[3], titles[9]]
    assert report["user"] is None
    assert len(report["items"]) == 10


def test_bad_requests_to_recommend_are_refused(model: Path, tmp_path: Path) -> None:
    words = ("recommend", "-m", model)
    title = load_model(model).assets.titles[3]
    assert 'no user "70000"' in complaint(*words, "--user", "70000")
    error = complaint(*words, "--items", f"{title[:-2]}q{title[-1]}; zzzz")
    assert f'did you mean "{title}"' in error
    assert "zzzz" in error
    assert "no history: give --user ID" in complaint(*words)
    assert "no history" in complaint(*words, "--items", " ; ")
    assert "not both" in complaint(*words, "--user", "7", "--items", title)
    assert "--explain: needs -o" in complaint(*words, "--user", "7", "--explain", title)
    assert "no such model folder" in complaint("recommend", "-m", tmp_path / "none", "--user", "7")


def test_a_user_without_a_history_is_evaluated_but_not_recommended_for(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("".join(f"{u}\t{i}\n" for u in range(6) for i in range(u, u + 4)))
    (tmp_path / "test.tsv").write_text("0\t9\nnew\t1\n")
    data = '[data]\ntrain = ["t.tsv"]\ntest = ["test.tsv"]\n[data.ratings]\nnegatives = 3\n'
    (tmp_path / "r.toml").write_text(FISM + data)
    assert here("train", tmp_path / "r.toml", "--out", tmp_path / "m").returncode == 0
    assert here("evaluate", "-m", tmp_path / "m").stdout.startswith("m: 2 users")
    assert "user new has no history" in complaint("recommend", "-m", tmp_path / "m", "--user", "new")


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_reasons_are_drawn(model: Path, tmp_path: Path, suffix: str) -> None:
    title, out = load_model(model).assets.titles[3], tmp_path / f"bars.{suffix}"
    done = here("recommend", "-m", model, "--user", "7", "--explain", title, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.stat().st_size > 2000
    if suffix == "svg":
        assert title in out.read_text()


def test_an_unknown_figure_format_is_refused(model: Path, tmp_path: Path) -> None:
    done = here("recommend", "-m", model, "--user", "7", "-o", tmp_path / "bars.xyz")
    assert (done.returncode, ".xyz" in done.stderr) == (2, True)
    assert not (tmp_path / "bars.xyz").exists()


@pytest.mark.parametrize("extra", [(), ("--detail", "full"), ("--replay",)])
def test_a_recommendation_is_traced(model: Path, tmp_path: Path, extra: tuple[str, ...]) -> None:
    out = tmp_path / "t.json"
    done = here("trace", "user:7", "-m", model, "-o", out, *extra)
    assert done.returncode == 0, done.stderr
    trace = Trace.load(out)
    history = load_model(model).assets.histories.items_of(7)
    assert [token.id for token in trace.source.tokens] == history.tolist()
    assert trace.matrix().shape == (10, len(history))
    checks = trace.checks
    assert checks is not None
    assert checks.weights is not None
    assert max(checks.weights, checks.context or 1.0) < 1e-6
    if extra == ("--replay",):
        differences = (checks.scores, checks.weights, checks.context, checks.features, checks.output)
        assert None not in differences
        assert max(value for value in differences if value is not None) < 1e-5
    assert trace.source.words[0][:5] in here("show", out).stdout
    assert here("show", out, "-o", tmp_path / "t.png").returncode == 0


def test_given_items_are_traced_and_edited(model: Path, tmp_path: Path) -> None:
    catalog = load_model(model).assets
    own = catalog.name(int(catalog.histories.items_of(7)[0]))
    out = tmp_path / "t.json"
    target = f"{own}; {catalog.titles[3]}"
    done = here("trace", "user:7", "-m", model, "--target", target, "-o", out, "--replay")
    assert done.returncode == 0, done.stderr
    trace = Trace.load(out)
    assert trace.target.words == [own, catalog.titles[3]]
    assert trace.matrix()[0, 0] == 0.0, "no item attends to itself"
    assert trace.checks is not None
    assert (trace.checks.weights or 0.0) < 1e-6
    done = here("trace", f"items:{own}", "-m", model, "-o", out, "--set", "zero:position=0")
    assert done.returncode == 0, done.stderr
    assert Trace.load(out).matrix().max() == 0.0


@pytest.mark.parametrize("preset", ["nais-concat", "self-attention"])
def test_every_preset_is_trained_and_replayed(preset: str, tmp_path: Path) -> None:
    sizes = ["model.encoder.hidden=8"] if preset == "self-attention" else []
    check_preset(train_recommender(tmp_path, f"model.preset={preset}", "training.epochs=1", *sizes), tmp_path)


def test_fism_is_trained_and_replayed(fism: Path, tmp_path: Path) -> None:
    check_preset(fism, tmp_path)


def check_preset(folder: Path, tmp_path: Path) -> None:
    assert here("evaluate", "-m", folder).returncode == 0
    assert len(recommend("-m", folder, "--user", "3")["items"]) == 10
    done = here("trace", "user:3", "-m", folder, "--detail", "full", "--replay", "-o", tmp_path / "t.json")
    assert done.returncode == 0, done.stderr
    checks = Trace.load(tmp_path / "t.json").checks
    assert checks is not None
    assert max(checks.scores or 0.0, checks.context or 0.0, checks.features or 0.0, checks.output or 0.0) < 1e-4


def test_bad_requests_to_trace_are_refused(model: Path, tmp_path: Path) -> None:
    words = ("-m", model, "-o", tmp_path / "t.json")
    assert "expected user:ID" in complaint("trace", "7", *words)
    assert 'no user "x"' in complaint("trace", "user:x", *words)
    assert "a history has no words" in complaint("trace", "user:7", *words, "--set", "source:position=0")
    assert "--target: 1,001 items" in complaint("trace", "user:7", *words, "--target", "1;" * 1_001)
    assert not (tmp_path / "t.json").exists()


def test_popularity_counts_users(popularity: Path, tmp_path: Path) -> None:
    catalog = load_model(popularity).assets
    counts = np.bincount(catalog.histories.items, minlength=len(catalog.items))
    report = recommend("-m", popularity, "--user", "7", "--top", "3")
    candidates = np.setdiff1d(np.arange(len(counts)), catalog.histories.items_of(7))
    assert [item["score"] for item in report["items"]] == sorted(counts[candidates].tolist(), reverse=True)[:3]
    assert all(item["reasons"] == [] for item in report["items"])
    first = here("recommend", "-m", popularity, "--user", "7").stdout.splitlines()[0].split("\t")
    assert first[1:] == [report["items"][0]["title"], f"{report['items'][0]['score']:.0f}"]
    done = here("recommend", "-m", popularity, "--user", "7", "-o", tmp_path / "b.png")
    assert "does not use the history" in done.stderr
    trace = ("trace", "user:7", "-m", popularity, "-o", tmp_path / "t.json")
    assert here(*trace, "--replay").returncode == 0
    assert "has no attention" in complaint("show", tmp_path / "t.json")
    assert "no weights to edit" in complaint(*trace, "--set", "uniform")


def test_requests_that_do_not_fit_a_recommender_are_refused(popularity: Path) -> None:
    evaluate = ("evaluate", "-m", popularity)
    assert "was trained to recommend" in complaint("translate", "-m", popularity, stdin="a\n")
    assert "an ensemble of recommenders is not supported" in complaint(*evaluate, "-m", popularity)
    assert "generates no text" in complaint(*evaluate, "--beam", "3")
    assert '"bleu"' in complaint(*evaluate, "--metric", "bleu")
    assert "no items are held out of it" in complaint(*evaluate, "--split", "train")


def test_item_embeddings_are_initialized_from_another_model(fism: Path, tmp_path: Path) -> None:
    source = f"training.init_from={fism}"
    frozen = ("training.epochs=1", "training.max_steps=1", "training.learning_rate=1e-12")
    nais = train_recommender(tmp_path, source, *frozen, name="nais")
    expected, actual = (load_file(folder / "model.safetensors") for folder in (fism, nais))
    for name in ("target_embedding.weight", "history_embedding.weight", "bias"):
        torch.testing.assert_close(actual[name], expected[name], rtol=0, atol=1e-6)
    words = ("train", tmp_path / "r.toml", "--out", tmp_path / "x")
    assert "its embeddings have width 8, but model.embedding = 4" in complaint(*words, source, "model.embedding=4")
    assert "was trained on other items" in complaint(*words, source, "data.world.items=240")
    assert "nowhere" in complaint(*words, "training.init_from=nowhere")
    assert not (tmp_path / "x").exists()


def test_an_interrupted_training_ends_with_the_same_bits(model: Path, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    words = ("train", tmp_path / "r.toml", "--out", tmp_path / "m")
    stopped(*words)
    assert here(*words).returncode == 0
    resumed, expected = (load_file(folder / "model.safetensors") for folder in (tmp_path / "m", model))
    assert {name: t.numpy().tobytes() for name, t in resumed.items()} == {
        name: t.numpy().tobytes() for name, t in expected.items()
    }


def test_the_losses_of_the_parts_of_a_batch_sum_to_its_loss(model: Path) -> None:
    loaded: LoadedRecommender = load_model(model)
    training = RecommendationTraining(loaded.recipe, open_ratings(loaded.recipe.data, Path()))
    batch = next(training.batches(1))
    parts = training.split_batch(batch, 2)
    assert len(parts) == 2
    with torch.no_grad():
        whole, *halves = (float(training.loss(loaded.model, part).total) for part in (batch, *parts))  # type: ignore[arg-type]
    assert sum(halves) == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("model.preset=bigru-gru", "not a preset for recommend; known: nais-prod"),
        ("task.kind=translate", 'users and items are for task.kind = "recommend"'),
        ("data.world.name=phrases", 'the world "phrases" has no users'),
        ("data.world.test=100", "each user has one item held out"),
        ("model.dropout=0.1", "dropout = 0.1: is for self-attention"),
        ("model.encoder.kind=gru", 'encoder.kind = "gru": a history has no order'),
        ("model.attention.placement=local-m", "a history has no order, so positions cannot be used"),
        ("model.attention.read_end=false", "has no end token"),
        ("model.attention.heads=3", "attention.heads = 3: does not divide embedding = 8"),
        ("training.metric=bleu", 'training.metric = "bleu": no such ranking metric'),
    ],
)
def test_settings_that_do_not_fit_are_refused(override: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "r.toml").write_text(RECIPE)
    assert error in complaint("train", tmp_path / "r.toml", override, "--out", tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_attention_finds_the_planted_reasons(tmp_path: Path) -> None:
    done = run_forked("train", RECIPES / "world-tastes.toml", "training.epochs=8", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    report = json.loads(here("evaluate", "-m", tmp_path / "m", "--json").stdout)
    assert report["gold"] > 0.9
    assert report["metrics"][1]["value"] > 97


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("movielens-*.toml")), ids=lambda path: path.stem)
def test_the_movielens_recipes_can_be_loaded(recipe: Path) -> None:
    assert load_recipe(recipe).recipe.task.kind == "recommend"


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="HEEDFUL_DATA has no movielens_1m_loo")
def test_popularity_reaches_the_known_metrics_on_movielens(tmp_path: Path) -> None:
    done = here("train", RECIPES / "movielens-popularity.toml", "--out", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    names = ("hr@10", "ndcg@10", "hr@10:ties-for", "ndcg@10:ties-for")
    metrics = [word for name in names for word in ("--metric", name)]
    report = json.loads(here("evaluate", "-m", tmp_path / "m", *metrics, "--json").stdout)
    assert report["users"] == 6040
    assert [round(metric["value"], 2) for metric in report["metrics"]] == [45.20, 25.26, 45.38, 25.45]
    assert 'did you mean "Toy Story (1995)"' in complaint("recommend", "-m", tmp_path / "m", "--items", "Toy Stroy")


def test_a_page_and_a_trace_have_the_effects_of_the_reasons(model: Path, tmp_path: Path) -> None:
    done = here("recommend", "-m", model, "--user", "7", "-o", tmp_path / "why.html")
    assert done.returncode == 0, done.stderr
    assert "#/history" in (tmp_path / "why.html").read_text(encoding="utf-8")
    here("trace", "user:7", "-m", model, "-o", tmp_path / "t.json")
    trace = Trace.load(tmp_path / "t.json")
    effects = trace.array(trace.attributions["leave-one-out"])
    assert effects.shape == trace.matrix().shape
    best = recommend("-m", model, "--user", "7")["items"][0]
    for reason in best["reasons"]:
        at = trace.source.words.index(reason["title"])
        assert effects[0, at] == pytest.approx(reason["effect"], abs=1e-5)


def test_attention_to_histories_is_measured(model: Path, fism: Path, popularity: Path) -> None:
    done = here("measure", "-m", model, "--limit", "6", "--test", "all", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    tests = report["faithfulness"]
    assert (report["items"], report["unit"], tests["decisions"]) == (6, "users", 6)
    assert report["gold"]["gold_weight"] > report["gold"]["gold_weight_uniform"] - 0.05
    assert set(tests["outputs"]) == {"unchanged", "uniform", "permuted"}
    loaded: LoadedRecommender = load_model(model)
    cases = load_cases(loaded, [], "test")[:6]
    unchanged = HistoryProbeTarget(loaded, cases).output_metrics(1)["unchanged"]
    assert unchanged == pytest.approx(tests["outputs"]["unchanged"])
    assert "weighs all items of a history equally" in complaint("measure", "-m", fism)
    assert "has no attention" in complaint("measure", "-m", popularity)


def test_a_recommender_in_python_gives_items_with_reasons(model: Path) -> None:
    recommender = heedful.load(model, task="recommend")
    assert isinstance(recommender, Recommender)
    best = recommender(user="7", top=3)
    expected = recommend("-m", model, "--user", "7", "--top", "3")["items"]
    assert [item.title for item in best] == [item["title"] for item in expected]
    assert [reason.title for reason in best[0].reasons] == [reason["title"] for reason in expected[0]["reasons"]]
    assert [item.id for item in best] == [item["id"] for item in expected]
    assert recommender(user=7, top=3) == best, "users are named by number or by text"
    assert recommender(user=[7, "8"], top=3) == [best, recommender(user=8, top=3)]
    assert recommender.trace(user=7).target.words[:3] == [item.title for item in best]
    assert [trace.target.words[:3] for trace in recommender.trace(user=[7])] == [[item.title for item in best]]


def test_a_recommender_in_python_takes_items_by_title_or_id(model: Path) -> None:
    recommender = heedful.load(model)
    first = recommender(user=7, top=1)[0]
    by_title = recommender(items=[first.title], top=2)
    assert first.title not in [item.title for item in by_title]
    assert recommender(items=[f"id:{first.id}"], top=2) == by_title
    assert recommender(items=first.title, top=2) == by_title, "one text is a list of one"
    assert recommender(items=[[first.title], [first.title]], top=2) == [by_title] * 2
    assert recommender.trace(items=[first.title]).source.words == [first.title]
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({}, "user, items: give one of them"),
        ({"user": 7, "items": [first.title]}, "user, items: give one of them"),
        ({"items": 7}, "items: expected a list of items, got int"),
        ({"user": 7, "beam": 3}, "beam: no such argument"),
        ({"user": 7, "top": 0}, "top=0: expected a whole number"),
    ]
    for arguments, message in mistakes:
        with pytest.raises(ArgumentError, match=message):
            recommender(**arguments)
    with pytest.raises(ArgumentError, match=r"say what it is: user=7"):
        recommender([first.title])


def test_a_probe_with_the_models_weights_gives_its_probabilities_and_with_others_plain_loops(model: Path) -> None:
    loaded: LoadedRecommender = load_model(model)
    probe_target = HistoryProbeTarget(loaded, load_cases(loaded, [], "test")[:5])
    (probe,) = probe_target.probes([{0}] * 5)
    assert probe.weights.sum(dim=-1).flatten().tolist() == pytest.approx([1.0] * 5, abs=1e-5)
    torch.testing.assert_close(probe.predict(probe.weights[:, None])[:, 0], probe.probabilities)
    net, case = probe_target.model.requires_grad_(False), probe_target.cases[0]
    row = probe.items.index(0)
    weights = torch.zeros_like(probe.weights)
    weights[row, :, 0] = 1.0
    vectors = net.target_embedding.weight[case.item], net.history_embedding.weight[int(case.history[0])]
    product = sum(float(a) * float(b) for a, b in zip(*vectors, strict=True))
    score = float(net.bias[case.item]) + float(probe.mass[row]) * product
    actual = float(probe.predict(weights[:, None])[row, 0, 0])
    assert actual == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-5)
    same = probe_target.predict_from([(0, 0)], [probe_target.sources[0]])
    torch.testing.assert_close(same[0], probe.probabilities[row], atol=1e-5, rtol=0)
    assert float(probe_target.saliency([(0, 0)])[0].sum()) == pytest.approx(1.0, abs=1e-5)


def test_scores_that_are_not_finite_are_an_error(model: Path) -> None:
    loaded: LoadedRecommender = load_model(model)
    history = find_history(loaded, "7")
    for parameter in loaded.model.parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(DecodingError, match=r"a history of \d+ items: the output of m is not finite"):
        recommend_items(loaded, history)
    with pytest.raises(DecodingError, match=r"a history of \d+ items: the output of m is not finite"):
        weigh_history(loaded, history, [1])
    with (
        patch("heedful.tasks.recommend.evaluate.load_model", lambda _: loaded),
        pytest.raises(DecodingError, match="the held-out items: the output of m is not finite"),
    ):
        evaluate_models([model], EvaluationRequest())
