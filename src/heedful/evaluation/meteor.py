"""METEOR through pycocoevalcap, which brings the authors' own program; it needs Java."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec

from heedful.errors import DataError
from heedful.evaluation.tally import Metric, References, per_output


def meteor_is_there() -> bool:
    return find_spec("pycocoevalcap") is not None and shutil.which("java") is not None


def meteor(outputs: Sequence[str], references: References) -> Metric:
    """METEOR 1.5 of captions against several references, 0 to 100."""
    listed = per_output(outputs, references)
    if not meteor_is_there():
        raise DataError("meteor: needs Java, and pip install pycocoevalcap")
    from pycocoevalcap.meteor.meteor import Meteor

    numbers = range(len(outputs))
    program = Meteor()
    try:
        value, _ = program.compute_score(
            {i: list(listed[i]) for i in numbers}, {i: [outputs[i]] for i in numbers}
        )
    finally:
        program.meteor_p.kill()
        program.meteor_p.communicate()  # closes its pipes
    return Metric("METEOR", 100 * float(value), "references:all|tokens:spaces|version:1.5|by:pycocoevalcap")
