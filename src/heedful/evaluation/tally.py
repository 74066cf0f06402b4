"""What every measure here is made of: one row of counts an item, and a function of their sum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError

References: TypeAlias = Sequence[str] | Sequence[Sequence[str]]
"""For each output its reference, or a list of its references (as many as it has)."""

Counts: TypeAlias = NDArray[np.float64]


class Metric(NamedTuple):
    """A measured value in its usual unit (BLEU 0 to 100, error rates in percent) and how it was measured.

    Two values may be compared only when their signatures agree.
    """

    name: str
    value: float
    signature: str = ""
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Tally:
    """A corpus metric before its sum is taken.

    BLEU of a corpus is no mean of sentences, but it is a function of summed counts. So is every other
    measure here: kept as rows they serve the whole corpus, a bucket of it and a resample alike, and the
    text is tokenised once.
    """

    name: str
    rows: Counts  # item x count
    score: Callable[[Counts], float]  # of the rows' sum
    signature: str = ""
    higher_is_better: bool = True

    def metric(self, items: Sequence[int] | None = None) -> Metric:
        """The value over these items; over all without."""
        rows = self.rows if items is None else self.rows[np.asarray(items, dtype=np.intp)]
        return Metric(self.name, self.score(rows.sum(axis=0)), self.signature, self.higher_is_better)


Maker: TypeAlias = Callable[[Sequence[str], References], Tally]
"""Makes a tally of outputs and references: one of `TALLIES`, or `partial(bleu_tally, tokenize="none")`."""


def percent(total: Counts) -> float:
    """100 times the first count over the second.

    Where there was nothing to get right (no symbol in any reference), anything written is all wrong: 100.

    >>> percent(np.array([1.0, 4.0])), percent(np.array([2.0, 0.0])), percent(np.array([0.0, 0.0]))
    (25.0, 100.0, 0.0)
    """
    part, whole = float(total[0]), float(total[1])
    if whole > 0:
        return 100 * part / whole
    return 100.0 if part > 0 else 0.0


def per_output(outputs: Sequence[str], references: References) -> list[tuple[str, ...]]:
    """The references of each output, after checking that the two sides pair up.

    >>> per_output(["a", "b"], ["A", ["B", "bee"]])
    [('A',), ('B', 'bee')]
    """
    for side, given in (("outputs", outputs), ("references", references)):
        if isinstance(given, str):
            raise DataError(f"{side}: expected a list of lines, found one string: {given[:60]!r}")
    if len(outputs) != len(references):
        raise DataError(
            f"{len(outputs)} outputs but {len(references)} references: they must pair up, one by one"
            " (several references of one output are a list in its place)"
        )
    if not outputs:
        raise DataError("nothing to evaluate: 0 outputs and 0 references")
    listed = [(item,) if isinstance(item, str) else tuple(item) for item in references]
    for number, (output, answers) in enumerate(zip(outputs, listed, strict=True), 1):
        if not isinstance(output, str):
            raise DataError(f"output {number} is not text: {output!r}")
        if not answers:
            raise DataError(f"output {number} has no reference: every output needs at least one")
        for answer in answers:
            if not isinstance(answer, str):
                raise DataError(f"reference {number} is not text: {answer!r}")
    return listed


def one_each(what: str, outputs: Sequence[str], references: References) -> list[str]:
    """The single reference of each output, for measures that several would leave undefined."""
    listed = per_output(outputs, references)
    for number, answers in enumerate(listed, 1):
        if len(answers) != 1:
            raise DataError(f"{what} takes one reference an output; output {number} has {len(answers)}")
    return [answers[0] for answers in listed]
