"""The table of measures, and what a user can get wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from heedful.errors import DataError
from heedful.evaluation import METRICS, TALLIES, Metric, evaluate

OUTPUTS, REFERENCES = ["the cat sat", "a dog ran off"], ["the cat sat", "the dog ran away"]


OURS = [name for name in METRICS if name != "meteor"]  # that needs Java


@pytest.mark.parametrize("name", [name for name in OURS if name not in ("cider", "length-ratio")])
def test_every_metric_is_named_signed_and_knows_its_best(name: str) -> None:
    for metric in METRICS[name](OUTPUTS, REFERENCES):
        assert isinstance(metric, Metric)
        assert type(metric.value) is float
        assert metric.signature
        (best, *_) = [m for m in METRICS[name](REFERENCES, REFERENCES) if m.name == metric.name]
        assert best.value == pytest.approx(100 if metric.higher_is_better else 0)
        assert (best.value > metric.value) == metric.higher_is_better


def test_the_table_has_every_tally_and_rouge_whole() -> None:
    assert {name for name in METRICS if ":" not in name} == set(TALLIES) | {"rouge", "meteor"}
    assert METRICS["rouge"](OUTPUTS, REFERENCES) == evaluate(
        ["rouge-1", "rouge-2", "rouge-l"], OUTPUTS, REFERENCES
    )


def test_metrics_come_in_the_order_asked_for() -> None:
    found = evaluate(["line-error", "rouge", "exact"], OUTPUTS, REFERENCES)
    assert [metric.name for metric in found] == [
        "line error rate",
        "ROUGE-1",
        "ROUGE-2",
        "ROUGE-L",
        "exact match",
    ]
    assert evaluate("exact", OUTPUTS, REFERENCES) == evaluate(["exact"], OUTPUTS, REFERENCES)


def test_every_unknown_name_is_told_at_once() -> None:
    with pytest.raises(DataError) as caught:
        evaluate(["blue", "exact", "line-eror"], OUTPUTS, REFERENCES)
    first, second = str(caught.value).splitlines()
    assert first.startswith('"blue": no such metric; did you mean "bleu"? known: bleu, bleu-lc, chrf, ter')
    assert second.startswith('"line-eror": no such metric; did you mean "line-error"?')
    with pytest.raises(DataError, match="no metric asked for; known: bleu"):
        evaluate([], OUTPUTS, REFERENCES)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (["a", "b"], ["a"], "2 outputs but 1 references"),
        (["a", "b"], [["a", "b"]], "a list in its place"),  # sacrebleu's streams, turned the other way
        ([], [], "nothing to evaluate: 0 outputs and 0 references"),
        ([], ["a"], "0 outputs but 1 references"),
        ("ab", ["a", "b"], "outputs: expected a list of lines, found one string: 'ab'"),
        (["a", "b"], "ab", "references: expected a list of lines"),
        (["a", None], ["a", "b"], "output 2 is not text: None"),
        (["a", "b"], ["a", [None]], "reference 2 is not text: None"),
        (["a", "b"], ["a", []], "output 2 has no reference"),
    ],
)
def test_what_does_not_pair_up(name: str, outputs: Any, references: Sequence[Any], message: str) -> None:
    for attempt in (METRICS[name], lambda o, r: evaluate([name], o, r)):
        with pytest.raises(DataError, match=message):
            attempt(outputs, references)


def test_the_room_is_light_to_enter() -> None:
    banned = ["torch", "sacrebleu", "rouge_score", "nltk", "scipy"]
    code = f"import sys, heedful.evaluation; print(sorted(set(sys.modules) & set({banned!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
