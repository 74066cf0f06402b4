"""What a training shows on the terminal."""

from __future__ import annotations

import pytest

from heedful.cli.progress import _summary, training_progress
from heedful.training.types import Report, Sample


def test_a_metric_of_practically_nothing_is_zero() -> None:
    report = Report(1, 16, 42.0, 6.5, {"loss": 5.612, "caption-bleu-4": 2.3e-12, "p": 0.0004}, improved=True)
    assert _summary(report).endswith("valid: loss 5.612 caption-bleu-4 0 p 0.0004 *")


def test_the_same_sample_is_shown_in_full_only_once(capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress() as callbacks:
        for epoch, output in enumerate(("x", "le chat"), 1):
            sample = Sample("the cat", "le chat", output)
            callbacks.on_validation(Report(epoch, epoch, 1.0, 2.0, {"loss": 1.0}, samples=[sample]))
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [line[0] for line in lines if line] == ["epoch", "source", "reference", "output", "epoch", "output"]
