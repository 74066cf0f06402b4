"""METEOR through pycocoevalcap, which runs the authors' own Java program."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.util import find_spec

from heedful.errors import DataError
from heedful.metrics.state import Metric, MetricSpec, References, list_references


def meteor_available() -> bool:
    """Return True if pycocoevalcap and Java are installed."""
    return find_spec("pycocoevalcap") is not None and shutil.which("java") is not None


def meteor(outputs: Sequence[str], references: References) -> Metric:
    """Return METEOR 1.5 of captions against several references, 0 to 100."""
    listed = list_references(outputs, references)
    if not meteor_available():
        raise DataError("meteor: needs Java and pycocoevalcap; install Java, and run pip install pycocoevalcap")
    from pycocoevalcap.meteor.meteor import Meteor

    items = range(len(outputs))
    program = Meteor()
    try:
        value, _ = program.compute_score({i: list(listed[i]) for i in items}, {i: [outputs[i]] for i in items})
    finally:
        program.meteor_p.kill()
        program.meteor_p.communicate()  # closes its pipes
    return Metric("METEOR", 100 * float(value), "references:all|tokens:spaces|version:1.5|by:pycocoevalcap")


METEOR = MetricSpec("meteor", None, "METEOR 1.5; needs Java and pycocoevalcap", corpus_function=meteor)
