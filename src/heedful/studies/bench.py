"""How fast a model writes on this machine: every way of writing, whole numbers and bytes, in turns.

What disturbs a machine comes and goes; so each way has its turn in every round, and the spread is said.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DecodingConfig
from heedful.data.readers import must_be_file, read_lines
from heedful.decoding import Hypothesis
from heedful.errors import DataError
from heedful.tasks.evaluate import pairs_of
from heedful.tasks.folder import read_card, refuse_others
from heedful.tasks.use import Ready, fitting, open_models, outputs

Say = Callable[[str], None]
WARM = 8  # lines written before anything is measured
ALONE = 50  # lines for the ways that write one line at a time, at most


class Way(NamedTuple):
    """How lines are written."""

    name: str
    method: str  # greedy or beam
    alone: bool = False  # one line at a time
    traced: bool = False  # every weight kept


WAYS = (
    Way("greedy", "greedy"),
    Way("greedy, traced", "greedy", traced=True),
    Way("beam", "beam"),
    Way("one by one, greedy", "greedy", alone=True),
    Way("one by one, beam", "beam", alone=True),
)


class Measured(NamedTuple):
    """One way of writing, over the rounds."""

    way: str
    int8: bool
    lines: int
    rates: list[float]  # lines a second, in each round
    tokens: float  # that an output has, the end included
    same: int | None  # int8: outputs that are the float model's own

    @property
    def rate(self) -> float:
        return statistics.mean(self.rates)

    @property
    def spread(self) -> float:
        return statistics.stdev(self.rates) if len(self.rates) > 1 else 0.0

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "lines_per_second": self.rate, "spread": self.spread}


def sources(model: Path, file: Path | None, count: int) -> list[str]:
    """The lines to write: of a file, or of the data the model was trained by, its test split first."""
    if file is not None:
        must_be_file(file)
        found = [line for line in read_lines(file) if line.strip()]
    else:
        refuse_others(model.name, read_card(model)["task"], "translate")
        try:
            pairs = pairs_of(model, [], "test")
        except DataError:
            pairs = pairs_of(model, [], "valid")
        found = [pair.source for pair in pairs if pair.source.strip()]
    if not found:
        raise DataError(f"{file or model}: there are no lines to write")
    return found[:count]


def bench(
    models: Sequence[Path], lines: Sequence[str], rounds: int, threads: int, say: Say
) -> list[Measured]:
    """Measure every way in turns; a round is one turn of each."""
    both = [(int8, open_models(models, int8, threads)) for int8 in (False, True)]
    lines = fitting(both[0][1], lines)
    jobs = [(way, int8, ready) for way in WAYS for int8, ready in both]
    rates: dict[tuple[str, bool], list[float]] = {}
    written: dict[tuple[str, bool], list[Hypothesis]] = {}
    for way, _, ready in jobs:
        _write(ready, lines[:WARM], way)
    for number in range(1, rounds + 1):
        for way, int8, ready in jobs:
            mine = lines[:ALONE] if way.alone else lines
            start = time.perf_counter()
            found = _write(ready, mine, way)
            seconds = time.perf_counter() - start
            rates.setdefault((way.name, int8), []).append(len(mine) / seconds)
            written[way.name, int8] = found
        say(f"round {number} of {rounds}")
    return [_measured(way, int8, rates, written) for way, int8, _ in jobs]


def _write(ready: Ready, lines: Sequence[str], way: Way) -> list[Hypothesis]:
    """The best output of each line."""
    beam = ready.decoding.beam if ready.decoding.beam > 1 else 5
    how: DecodingConfig = ready.decoding.model_copy(
        update={"method": way.method, "beam": beam if way.method == "beam" else 1, "n_best": 1}
    )
    watch = Watch(Detail.WEIGHTS) if way.traced else PLAIN
    batches = [[line] for line in lines] if way.alone else [lines]
    return [best[0] for batch in batches for best in outputs(ready, batch, how, watch)]


def _measured(
    way: Way,
    int8: bool,
    rates: dict[tuple[str, bool], list[float]],
    written: dict[tuple[str, bool], list[Hypothesis]],
) -> Measured:
    found = written[way.name, int8]
    floats = written[way.name, False]
    same = sum(a.tokens == b.tokens for a, b in zip(found, floats, strict=True)) if int8 else None
    tokens = statistics.mean(len(h.tokens) for h in found)
    return Measured(way.name, int8, len(found), rates[way.name, int8], tokens, same)
