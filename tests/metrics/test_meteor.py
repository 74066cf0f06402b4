"""METEOR through the authors' program; without it, the error says what is missing."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from heedful.errors import DataError
from heedful.metrics.meteor import meteor, meteor_available


@pytest.mark.slow
@pytest.mark.skipif(not meteor_available(), reason="needs Java and pycocoevalcap")
def test_correct_captions_get_a_higher_value() -> None:
    references = [["a brown dog runs", "the dog is running"]] * 2
    correct = meteor(["a brown dog runs"] * 2, references)
    assert correct.value > 90 > meteor(["two cats sleep"] * 2, references).value


def test_missing_java_is_an_error_that_says_so() -> None:
    with patch("heedful.metrics.meteor.shutil.which", return_value=None), pytest.raises(DataError) as caught:
        meteor(["a"], ["a"])
    assert "needs Java" in str(caught.value)
