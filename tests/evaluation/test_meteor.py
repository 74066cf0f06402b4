"""METEOR is the authors' own program; without it the message says what is missing."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from heedful.errors import DataError
from heedful.evaluation.meteor import meteor, meteor_is_there


@pytest.mark.slow
@pytest.mark.skipif(not meteor_is_there(), reason="needs Java and pycocoevalcap")
def test_meteor_of_what_is_right_is_higher() -> None:
    references = [["a brown dog runs", "the dog is running"]] * 2
    right = meteor(["a brown dog runs"] * 2, references)
    assert right.value > 90 > meteor(["two cats sleep"] * 2, references).value


def test_without_java_it_says_so() -> None:
    with patch("heedful.evaluation.meteor.shutil.which", return_value=None), pytest.raises(DataError) as said:
        meteor(["a"], ["a"])
    assert "needs Java" in str(said.value)
