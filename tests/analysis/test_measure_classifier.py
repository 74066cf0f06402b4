"""`heedful measure` of classifiers, and their probes against single edits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import small_classifiers
from heedful.analysis.faithfulness import TESTS, FaithfulnessOptions
from heedful.analysis.measure import load_items, measure
from heedful.data.pairs import TextPair
from heedful.errors import DataError, TraceError
from heedful.tasks.base import TraceRequest
from heedful.tasks.classify.probes import label_probes, text_saliency
from heedful.tasks.classify.trace import trace_text
from heedful.trace.edits import parse_edit
from heedful.trace.schema import grade_links

GOLD = [grade_links(pair.links or ()) for pair in small_classifiers.PAIRS]


@pytest.mark.parametrize("preset", ["classify-final", "classify-learned", "classify-heads", "classify-zhou"])
def test_a_probe_predicts_what_a_single_edit_gives(tmp_path: Path, preset: str) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset(preset))
    lines = [pair.source for pair in small_classifiers.PAIRS]
    ids = [loaded.assets.source.encode(line) for line in lines]
    (probe,) = label_probes(loaded.model, ids, range(len(ids)))
    for row, text in enumerate(probe.items):
        step = trace_text(loaded, TraceRequest(lines[text])).steps[0]
        assert float(probe.probabilities[row].max().log()) == pytest.approx(step.logp, abs=1e-5)
        for position in range(len(ids[text]) - 1):
            weights = torch.zeros_like(probe.weights[:, None])
            weights[..., position] = 1
            p = probe.predict(weights.masked_fill(~probe.readable[:, None, None], 0.0))[row, 0].detach()
            edit = parse_edit(f"onehot:position={position}")
            best = trace_text(loaded, TraceRequest(lines[text], edits=[edit])).steps[0].top[0]
            assert best.id is not None
            assert float(p[best.id].log()) == pytest.approx(best.logp, abs=1e-4)


@pytest.mark.parametrize("preset", ["classify-final", "classify-heads", "classify-transformer"])
def test_every_value_is_in_its_range_and_reproducible(tmp_path: Path, preset: str) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset(preset))
    options = FaithfulnessOptions(TESTS, counterfactuals=2, search_steps=10)
    report = measure(loaded, small_classifiers.PAIRS, options, GOLD)
    assert json.loads(json.dumps(report)) == report, "plain numbers"
    assert report == measure(loaded, small_classifiers.PAIRS, options, GOLD), "the same seed gives the same report"
    assert all(0 <= value <= 1 for value in report["attention"].values())
    assert 0 <= report["gold"]["gold_weight"] <= 1
    assert report["gold"]["gold_weight_uniform"] == pytest.approx((2 / 5 + 1 / 6 + 1 + 1 / 6) / 4)
    tests = report["faithfulness"]
    assert {name.replace("-", "_") for name in TESTS} <= set(tests)
    assert tests["decisions"] == 4
    assert 0 <= tests["permutation"]["median_tvd"]["mean"] <= 1
    assert set(tests["outputs"]) == {"unchanged", "uniform", "permuted"}


def test_gold_weight_is_the_weight_of_the_gold_words(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-learned"), kind="bpe"
    )
    pair = small_classifiers.PAIRS[0]
    table = trace_text(loaded, TraceRequest(pair.source)).table(specials=False).weights[0]
    gold = measure(loaded, [pair], FaithfulnessOptions(()), GOLD[:1])["gold"]
    assert gold["gold_weight"] == pytest.approx(table[[3, 4]].sum(), abs=1e-5)
    assert gold["largest_weight_is_gold"] == float(int(table.argmax()) in (3, 4))


def test_saliency_equals_finite_differences(tmp_path: Path) -> None:
    """`x . dP/dx` by scaling each embedding a little; uniform weights do not depend on it."""
    loaded = small_classifiers.random_model_folder(
        tmp_path / "m", small_classifiers.small_preset("classify-learned", attention__placement="uniform")
    )
    model = loaded.model.double()
    ids = [loaded.assets.source.encode(small_classifiers.PAIRS[1].source)]
    (saliency,) = text_saliency(model, ids, [0])
    from heedful.data.batch import pad
    from heedful.data.labels import LabelBatch

    batch = LabelBatch(pad(ids))
    best = int(model(batch).logits.argmax())

    def probability() -> float:
        with torch.no_grad():
            return float(model(batch).logits.softmax(dim=-1)[0, best])

    differences = []
    step = 1e-5
    for token in ids[0]:  # each word occurs once
        with torch.no_grad():
            row = model.embedding.weight[token].clone()
            model.embedding.weight[token] = row * (1 + step)
            up = probability()
            model.embedding.weight[token] = row * (1 - step)
            down = probability()
            model.embedding.weight[token] = row
        differences.append(abs(up - down) / (2 * step))
    assert saliency.tolist() == pytest.approx([value / sum(differences) for value in differences], abs=1e-5)


def test_items_and_gold_come_from_files_or_the_world(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-learned"))
    (tmp_path / "d.tsv").write_text("the soup\tgood\nred fish\tbad\n")
    (tmp_path / "g").write_text("1\n0 1\n")
    pairs, gold = load_items(loaded, [str(tmp_path / "d.tsv")], "test", tmp_path / "g", 0)
    assert pairs == [TextPair("the soup", "good"), TextPair("red fish", "bad")]
    assert gold is not None
    assert [sorted(links.possible) for links in gold] == [[(1, 0)], [(0, 0), (1, 0)]]
    (tmp_path / "g").write_text("1\n0-1\n")
    with pytest.raises(DataError, match='line 2: expected numbers of words from 0, such as 3 4, found "0-1"'):
        load_items(loaded, [str(tmp_path / "d.tsv")], "test", tmp_path / "g", 0)
    (tmp_path / "g").write_text(f"1\n{'1' * 5_000}\n")  # more digits than Python converts
    with pytest.raises(DataError, match="line 2: expected numbers of words"):
        load_items(loaded, [str(tmp_path / "d.tsv")], "test", tmp_path / "g", 0)
    world = load_items(loaded, [], "test", None, 0, limit=3)
    assert world.gold is not None
    assert len(world.items) == len(world.gold) == 3


def test_a_model_without_attention_to_measure_is_an_error(tmp_path: Path) -> None:
    loaded = small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-max"))
    with pytest.raises(TraceError, match="has no attention"):
        measure(loaded, small_classifiers.PAIRS, FaithfulnessOptions())
    tape = small_classifiers.random_model_folder(tmp_path / "t", small_classifiers.small_preset("classify-lstmn"))
    with pytest.raises(TraceError, match="has attention inside its encoder only"):
        measure(tape, small_classifiers.PAIRS, FaithfulnessOptions())
