"""`heedful bench`: generation speed of a model in every decoding mode, in float32 and in int8.

Other load on a machine comes and goes, so every round runs each configuration once, and the spread over rounds is
reported.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from heedful.analysis.bench_lines import built_in_lines
from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.lines import read_lines, require_file
from heedful.decoding import Hypothesis
from heedful.errors import DataError
from heedful.tasks.model_card import read_card
from heedful.tasks.model_folder import check_task
from heedful.tasks.seq2seq.evaluate import evaluation_pairs
from heedful.tasks.seq2seq.outputs import limit_length
from heedful.tasks.seq2seq.predict import Predictor, load_predictor

N_WARM_UP = 8  # lines generated before the first measurement
MAX_SINGLE_LINES = 50  # for modes that generate one line at a time
DEFAULT_BEAM = 5


class DecodingMode(NamedTuple):
    """One way to generate outputs."""

    name: str
    method: str  # greedy or beam
    one_by_one: bool = False  # batches of one line
    traced: bool = False  # with all attention weights recorded


DECODING_MODES = (
    DecodingMode("greedy", "greedy"),
    DecodingMode("greedy, traced", "greedy", traced=True),
    DecodingMode("beam", "beam"),
    DecodingMode("one by one, greedy", "greedy", one_by_one=True),
    DecodingMode("one by one, beam", "beam", one_by_one=True),
)


class BenchResult(NamedTuple):
    """The speed of one mode over all rounds."""

    mode: str
    int8: bool
    lines: int
    rates: list[float]  # lines per second in each round
    tokens_per_line: float  # of the outputs, end token included
    same_outputs: int | None  # int8: outputs equal to those in float32

    @property
    def lines_per_second(self) -> float:
        """The mean over rounds."""
        return statistics.mean(self.rates)

    @property
    def sd(self) -> float:
        """The standard deviation over rounds."""
        return statistics.stdev(self.rates) if len(self.rates) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON output contains."""
        return {**self._asdict(), "lines_per_second": self.lines_per_second, "sd": self.sd}


def load_lines(model: Path, file: Path | None, count: int, log: Callable[[str], None]) -> list[str]:
    """Return the inputs: the lines of a file, the model's test or validation data, or built-in ones."""
    if file is not None:
        require_file(file)
        lines = list(islice((line for line in read_lines(file) if line.strip()), count))
        if not lines:
            raise DataError(f"{file}: has no lines to generate from")
        return lines
    task = read_card(model)["task"]
    check_task(model.name, task, "translate")
    for split in ("test", "valid"):
        try:
            pairs = evaluation_pairs(model, [], split)
        except DataError:  # the recipe has no such split, or its files are not on this machine
            continue
        if lines := [pair.source for pair in pairs if pair.source.strip()]:
            return lines[:count]
    log(f"the data of {model.name} is not on this machine: using built-in lines")
    return built_in_lines(task, count)


def bench(
    models: Sequence[Path], lines: Sequence[str], rounds: int, threads: int, log: Callable[[str], None]
) -> list[BenchResult]:
    """Measure every mode in float32 and int8; each round runs each of them once."""
    predictors = {int8: load_predictor(models, int8, threads) for int8 in (False, True)}
    lines = limit_length(predictors[False], lines)
    configurations = [(mode, int8) for mode in DECODING_MODES for int8 in (False, True)]
    rates: dict[tuple[DecodingMode, bool], list[float]] = {configuration: [] for configuration in configurations}
    outputs: dict[tuple[DecodingMode, bool], list[Hypothesis]] = {}
    for mode, int8 in configurations:
        _generate(predictors[int8], lines[:N_WARM_UP], mode)
    for number in range(1, rounds + 1):
        for mode, int8 in configurations:
            mode_lines = lines[:MAX_SINGLE_LINES] if mode.one_by_one else lines
            start = time.perf_counter()
            outputs[mode, int8] = _generate(predictors[int8], mode_lines, mode)
            rates[mode, int8].append(len(mode_lines) / (time.perf_counter() - start))
        log(f"round {number} of {rounds}")
    return [
        BenchResult(
            mode.name,
            int8,
            len(outputs[mode, int8]),
            rates[mode, int8],
            statistics.mean(len(output.tokens) for output in outputs[mode, int8]),
            _count_equal(outputs[mode, False], outputs[mode, True]) if int8 else None,
        )
        for mode, int8 in configurations
    ]


def _generate(predictor: Predictor, lines: Sequence[str], mode: DecodingMode) -> list[Hypothesis]:
    """Return the best output of each line."""
    beam = predictor.decoding.beam if predictor.decoding.beam > 1 else DEFAULT_BEAM
    options: DecodingOptions = predictor.decoding.model_copy(
        update={"method": mode.method, "beam": beam if mode.method == "beam" else 1, "n_best": 1}
    )
    hooks = Hooks(Detail.WEIGHTS) if mode.traced else NO_HOOKS
    batches = [[line] for line in lines] if mode.one_by_one else [lines]
    return [best[0] for batch in batches for best in predictor.search(batch, options, hooks)]


def _count_equal(first: Sequence[Hypothesis], second: Sequence[Hypothesis]) -> int:
    return sum(a.tokens == b.tokens for a, b in zip(first, second, strict=True))
