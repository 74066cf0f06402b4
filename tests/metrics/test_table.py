"""The table of metrics: names, aliases, directions, and errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from heedful import registry
from heedful.errors import DataError
from heedful.metrics import (
    METRICS,
    Metric,
    MetricSpec,
    MetricState,
    evaluate,
    find_metric,
    get_metric,
    higher_is_better,
    metric_names,
    paired_bootstrap,
    primary_metric,
)
from heedful.metrics.state import percent

OUTPUTS, REFERENCES = ["the cat sat", "a dog ran off"], ["the cat sat", "the dog ran away"]
TEXT_METRICS = [name for name in metric_names() if name != "meteor"]  # which needs Java
UNBOUNDED = ("cider", "length-ratio")  # their best value is not 100


@pytest.mark.parametrize("name", [name for name in TEXT_METRICS if name not in UNBOUNDED])
def test_every_metric_has_a_name_a_signature_and_the_right_direction(name: str) -> None:
    for metric, best in zip(
        evaluate([name], OUTPUTS, REFERENCES), evaluate([name], REFERENCES, REFERENCES), strict=True
    ):
        assert isinstance(metric, Metric)
        assert type(metric.value) is float
        assert metric.signature
        assert best.value == pytest.approx(100 if metric.higher_is_better else 0)
        assert (best.value > metric.value) == metric.higher_is_better == higher_is_better(name)


def test_every_entry_is_listed_under_its_own_name_with_a_help_text() -> None:
    for name, spec in METRICS.items():
        assert spec.name == name
        assert spec.help
        assert spec.state_function or spec.corpus_function or name == "loss"


def test_names_and_aliases_are_unique() -> None:
    names = [*METRICS, *(alias for spec in METRICS.values() for alias in spec.aliases)]
    assert len(set(names)) == len(names)


def test_rouge_is_a_group_of_three_metrics() -> None:
    assert evaluate(["rouge"], OUTPUTS, REFERENCES) == evaluate(["rouge-1", "rouge-2", "rouge-l"], OUTPUTS, REFERENCES)


@pytest.mark.parametrize(
    ("alias", "name", "unit"),
    [
        ("wer", "word-error", "unit:words"),
        ("per", "symbol-error", "unit:spaces"),
        ("cer", "symbol-error", "unit:characters"),
    ],
)
def test_aliases_fix_the_options_they_stand_for(alias: str, name: str, unit: str) -> None:
    (metric,) = evaluate([alias], ["a b c"], ["a x c"])
    assert unit in metric.signature
    spec = find_metric(alias)
    assert spec is not None
    assert spec.name == name
    assert not higher_is_better(alias)
    assert primary_metric([alias]) == alias


def test_metrics_come_in_the_order_of_their_names() -> None:
    metrics = evaluate(["line-error", "rouge", "exact"], OUTPUTS, REFERENCES)
    assert [metric.name for metric in metrics] == ["line error rate", "ROUGE-1", "ROUGE-2", "ROUGE-L", "exact match"]
    assert evaluate("exact", OUTPUTS, REFERENCES) == evaluate(["exact"], OUTPUTS, REFERENCES)


def test_values_are_formatted_with_their_unit_and_decimals() -> None:
    exact, bleu, cider = evaluate(["exact", "bleu", "cider"], OUTPUTS, REFERENCES)
    assert exact.format() == "50.00 %"
    assert bleu.format() == f"{bleu.value:.2f}"
    assert cider.format() == f"{cider.value:.3f}"
    assert exact.to_dict() == {
        "name": "exact match",
        "value": 50.0,
        "signature": exact.signature,
        "higher_is_better": True,
        "unit": "%",
    }


def test_all_unknown_names_are_listed_in_one_error() -> None:
    with pytest.raises(DataError) as caught:
        evaluate(["blue", "exact", "line-eror"], OUTPUTS, REFERENCES)
    first, second = str(caught.value).splitlines()
    assert first.startswith('"blue": no such metric; did you mean "bleu"? known: bleu, bleu-lc, chrf, ter')
    assert second.startswith('"line-eror": no such metric; did you mean "line-error"?')
    with pytest.raises(DataError, match="no metric given; known: bleu"):
        evaluate([], OUTPUTS, REFERENCES)


@pytest.mark.parametrize("name", ["loss", "perplexity", "hr@10", "ndcg@5:all"])
def test_metrics_of_other_inputs_than_text_are_no_text_metrics(name: str) -> None:
    assert find_metric(name) is not None
    with pytest.raises(DataError, match=f'"{name}": no such metric'):
        evaluate([name], OUTPUTS, REFERENCES)


def test_the_parameter_of_a_name_is_checked() -> None:
    with pytest.raises(DataError, match='"bleu-moses:dee": expected bleu-moses:LANGUAGE; did you mean "de"'):
        evaluate(["bleu-moses:dee"], OUTPUTS, REFERENCES)
    with pytest.raises(DataError, match='"bleu-moses": expected bleu-moses:LANGUAGE; known: ca, cs, de'):
        evaluate(["bleu-moses"], OUTPUTS, REFERENCES)


def test_a_metric_that_is_no_sum_over_items_cannot_be_resampled() -> None:
    with pytest.raises(DataError, match="meteor: is not a sum over items"):
        get_metric("meteor").state(OUTPUTS, REFERENCES)
    assert primary_metric(["meteor", "exact"]) == "exact"


@pytest.fixture
def registered() -> Iterator[None]:
    """Forget what the test registers."""
    saved = dict(registry._registered["metric"])
    yield
    registry._registered["metric"] = saved


def length_error_state(outputs: Sequence[str], references: Sequence[str]) -> MetricState:
    """Lines with another number of words than the reference."""
    pairs = zip(outputs, references, strict=True)
    rows = [[len(output.split()) != len(reference.split()), 1] for output, reference in pairs]
    return MetricState("length error", np.array(rows, dtype=np.float64), percent)


@pytest.mark.usefixtures("registered")
def test_users_can_register_a_metric() -> None:
    spec = MetricSpec("length-error", length_error_state, "wrong lengths", higher_is_better=False, unit="%")
    registry.register("metric", "length-error", spec)
    (metric,) = evaluate(["length-error"], ["a", "a b", "c"], ["x", "y", "z"])
    assert (metric.name, metric.format()) == ("length error", "33.33 %")
    assert not higher_is_better("length-error")
    comparison = paired_bootstrap(["a"] * 9, ["a b"] * 9, ["x"] * 9, metric="length-error", samples=20)
    assert (comparison.difference, comparison.wins) == (-100, 1)


@pytest.mark.usefixtures("registered")
def test_a_bare_state_function_can_be_registered() -> None:
    registry.register("metric", "same-length", length_error_state)
    assert get_metric("same-length").help == "Lines with another number of words than the reference."
    assert "same-length" in metric_names()
    assert higher_is_better("same-length")


@pytest.mark.parametrize("name", TEXT_METRICS)
@pytest.mark.parametrize(
    ("outputs", "references", "message"),
    [
        (["a", "b"], ["a"], "2 outputs but 1 references"),
        (["a", "b"], [["a", "b"]], "a list in its place"),  # sacrebleu's streams, transposed
        ([], [], "nothing to evaluate: 0 outputs and 0 references"),
        ([], ["a"], "0 outputs but 1 references"),
        ("ab", ["a", "b"], "outputs: expected a list of lines, got one string: 'ab'"),
        (["a", "b"], "ab", "references: expected a list of lines"),
        (["a", None], ["a", "b"], "output 2 is not text: None"),
        (["a", "b"], ["a", [None]], "reference 2 is not text: None"),
        (["a", "b"], ["a", []], "output 2 has no reference"),
    ],
)
def test_outputs_and_references_must_pair_up(name: str, outputs: Any, references: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate([name], outputs, references)
    if name != "rouge":
        with pytest.raises(DataError, match=message):
            get_metric(name)(outputs, references)


def test_importing_the_metrics_imports_no_heavy_package() -> None:
    banned = ["torch", "sacrebleu", "rouge_score", "nltk", "scipy"]
    code = f"import sys, heedful.metrics; print(sorted(set(sys.modules) & set({banned!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
