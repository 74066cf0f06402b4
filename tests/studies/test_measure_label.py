"""The honesty tests on classifiers: probes against single edits, and everything that is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import labels
from heedful.data.readers import TextPair
from heedful.errors import DataError, TraceError
from heedful.record import graded
from heedful.studies.measure import TESTS, Asked, items_of, measure
from heedful.studies.probe_label import label_probes, label_saliency
from heedful.tasks.classify_trace import trace_text
from heedful.tasks.tracing import Wanted
from heedful.trace import edit_of

GOLD = [graded(pair.links or ()) for pair in labels.PAIRS]


@pytest.mark.parametrize("preset", ["classify-final", "classify-learned", "classify-heads", "classify-zhou"])
def test_a_probe_answers_as_a_single_edit_does(tmp_path: Path, preset: str) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset(preset))
    lines = [pair.source for pair in labels.PAIRS]
    ids = [opened.words.source.encode(line) for line in lines]
    (probe,) = label_probes(opened.model, ids, range(len(ids)))
    for row, text in enumerate(probe.sentences):
        own = trace_text(opened, Wanted(lines[text])).steps[0]
        assert float(probe.p[row].max().log()) == pytest.approx(own.logp, abs=1e-5)
        for place in range(len(ids[text]) - 1):
            weights = torch.zeros_like(probe.weights[:, None])
            weights[..., place] = 1
            p = probe.outcome(weights.masked_fill(~probe.open[:, None, None], 0.0))[row, 0].detach()
            edit = edit_of(f"onehot:position={place}")
            best = trace_text(opened, Wanted(lines[text], edits=[edit])).steps[0].top[0]
            assert best.id is not None
            assert float(p[best.id].log()) == pytest.approx(best.logp, abs=1e-4)


@pytest.mark.parametrize("preset", ["classify-final", "classify-heads", "classify-transformer"])
def test_everything_is_measured_and_means_something(tmp_path: Path, preset: str) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset(preset))
    asked = Asked(TESTS, counterfactuals=2, search=10)
    found = measure(opened, labels.PAIRS, asked, GOLD)
    assert json.loads(json.dumps(found)) == found, "plain numbers"
    assert found == measure(opened, labels.PAIRS, asked, GOLD), "the same seed measures the same"
    assert all(0 <= value <= 1 for value in found["looks"].values())
    assert 0 <= found["gold"]["mass on gold"] <= 1
    assert found["gold"]["mass on gold, uniform"] == pytest.approx((2 / 5 + 1 / 6 + 1 + 1 / 6) / 4)
    tests = found["tests"]
    assert set(TESTS) <= set(tests)
    assert tests["decisions"] == 4
    assert 0 <= tests["permutation"]["median TVD"]["mean"] <= 1
    assert set(tests["outputs"]) == {"as it is", "uniform", "permute"}


def test_mass_on_gold_is_the_weight_of_those_words(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-learned"), kind="bpe")
    pair = labels.PAIRS[0]
    table = trace_text(opened, Wanted(pair.source)).table(specials=False).weights[0]
    found = measure(opened, [pair], Asked(()), GOLD[:1])["gold"]
    assert found["mass on gold"] == pytest.approx(table[[3, 4]].sum(), abs=1e-5)
    assert found["favoured word is gold"] == float(int(table.argmax()) in (3, 4))


def test_gradients_lead_to_words_by_a_small_step(tmp_path: Path) -> None:
    """`x . dP/dx` by changing the vectors a little; uniform weights are always held fast."""
    opened = labels.folder(tmp_path / "m", labels.preset("classify-learned", attention__placement="uniform"))
    model = opened.model.double()
    ids = [opened.words.source.encode(labels.PAIRS[1].source)]
    (found,) = label_saliency(model, ids, [0])
    from heedful.data.batch import pad
    from heedful.data.labels import LabelBatch

    batch = LabelBatch(pad(ids))
    best = int(model.judge(batch).logits.argmax())

    def likely() -> float:
        with torch.no_grad():
            return float(model.judge(batch).logits.softmax(dim=-1)[0, best])

    slopes = []
    step = 1e-5
    for token in ids[0]:  # every word occurs once
        with torch.no_grad():
            row = model.embedding.weight[token].clone()
            model.embedding.weight[token] = row * (1 + step)
            up = likely()
            model.embedding.weight[token] = row * (1 - step)
            down = likely()
            model.embedding.weight[token] = row
        slopes.append(abs(up - down) / (2 * step))
    assert found.tolist() == pytest.approx([slope / sum(slopes) for slope in slopes], abs=1e-5)


def test_items_and_gold_from_files(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-learned"))
    (tmp_path / "d.tsv").write_text("the soup\tgood\nred fish\tbad\n")
    (tmp_path / "g").write_text("1\n0 1\n")
    pairs, gold = items_of(opened, [str(tmp_path / "d.tsv")], "test", tmp_path / "g", 0)
    assert pairs == [TextPair("the soup", "good"), TextPair("red fish", "bad")]
    assert gold is not None
    assert [sorted(links.possible) for links in gold] == [[(1, 0)], [(0, 0), (1, 0)]]
    (tmp_path / "g").write_text("1\n0-1\n")
    with pytest.raises(DataError, match="line 2: expected words' numbers from 0: '0-1'"):
        items_of(opened, [str(tmp_path / "d.tsv")], "test", tmp_path / "g", 0)
    world = items_of(opened, [], "test", None, 0, limit=3)
    assert world.gold is not None
    assert len(world.pairs) == len(world.gold) == 3


def test_what_has_no_looks_is_told_so(tmp_path: Path) -> None:
    opened = labels.folder(tmp_path / "m", labels.preset("classify-max"))
    with pytest.raises(TraceError, match="has no attention"):
        measure(opened, labels.PAIRS, Asked())
    tape = labels.folder(tmp_path / "t", labels.preset("classify-lstmn"))
    with pytest.raises(TraceError, match="looks only while it reads"):
        measure(tape, labels.PAIRS, Asked())
