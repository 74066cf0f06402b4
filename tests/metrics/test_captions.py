"""Caption metrics agree with the COCO evaluation code on generated text."""

from __future__ import annotations

import random

import pytest

from heedful.metrics import evaluate

WORDS = "a dog runs the brown on in grass water two men with ball red child plays".split()


def random_captions(seed: int, count: int = 60) -> tuple[list[str], list[list[str]]]:
    rng = random.Random(seed)

    def line() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(3, 14)))

    outputs = [line() for _ in range(count)]
    references = [[line() for _ in range(5)] for _ in range(count)]
    for output, alternatives in zip(outputs, references, strict=True):  # half of them nearly correct
        if rng.random() < 0.5:
            alternatives[0] = " ".join(output.split()[:-1] + ["ball"])
    return outputs, references


@pytest.mark.parametrize("seed", [1, 2])
def test_values_equal_those_of_the_coco_code(seed: int) -> None:
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    outputs, references = random_captions(seed)
    gold = dict(enumerate(references))
    candidates = {i: [output] for i, output in enumerate(outputs)}
    names = [
        "caption-bleu-1",
        "caption-bleu-2",
        "caption-bleu-3",
        "caption-bleu-4",
        "caption-rouge-l",
        "cider",
    ]
    actual = [metric.value for metric in evaluate(names, outputs, references)]
    bleus, _ = Bleu(4).compute_score(gold, candidates, verbose=0)
    rouge, _ = Rouge().compute_score(gold, candidates)
    cider, _ = Cider().compute_score(gold, candidates)
    expected = [*(100 * value for value in bleus), 100 * rouge, cider]
    assert actual == pytest.approx(expected, abs=1e-6)


def test_short_captions_gain_without_the_brevity_penalty() -> None:
    outputs, references = ["a dog"], [["a dog runs on the grass"]]
    with_penalty, without, ratio = evaluate(
        ["caption-bleu-1", "caption-bleu-1-raw", "length-ratio"], outputs, references
    )
    assert without.value == pytest.approx(100)
    assert with_penalty.value < 20
    assert ratio.value == pytest.approx(2 / 6)
