"""A fair comparison: the same data in the same order, an equal budget, several seeds, and the cost beside.

Every variant is trained by the very command a user would type, in a process of its own (so that memory can
be measured); a comparison that was stopped goes on where it was when the same command is given again.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from heedful.config import ModelConfig, load_recipe
from heedful.errors import ConfigError, DataError, Mistake, ModelError, TrainingError
from heedful.studies.writing_cost import step_seconds
from heedful.tasks.folder import read_card
from heedful.tasks.kind import Evaluated, Question, kind_of


class Variant(NamedTuple):
    """A name for the table and the overrides that make it."""

    name: str
    overrides: tuple[str, ...]


class Row(NamedTuple):
    """One line of the table; `figures` holds mean and spread over the seeds."""

    name: str
    parameters: int
    figures: dict[str, tuple[float, float | None]]  # one seed has no spread
    steps: float
    seconds_per_step: float
    megabytes: float
    p: float | None  # paired bootstrap of the first seed against the first variant's
    seconds_per_word: float | None = None  # a step that writes a word, of 32 outputs at once


class Budget(NamedTuple):
    """What every training may take: time, or updates where the machine is busy with other things too."""

    minutes: float = 0.0
    steps: int = 0

    @classmethod
    def of(cls, text: str) -> Budget:
        """
        >>> Budget.of("90s"), Budget.of("1.5h"), Budget.of("2000steps")
        (Budget(minutes=1.5, steps=0), Budget(minutes=90.0, steps=0), Budget(minutes=0.0, steps=2000))
        """
        number = text.removesuffix("steps")
        if number != text and number.isascii() and number.isdigit() and int(number) > 0:
            return cls(steps=int(number))
        units = {"s": 1 / 60, "m": 1.0, "h": 60.0}
        try:
            found = float(text[:-1]) * units[text[-1]]
        except (KeyError, ValueError, IndexError):
            found = 0.0
        if not 0.0 < found < math.inf:  # no time at all would mean no limit to the training
            wrong = f'"{text}": expected a time such as 90s, 10m or 1h, or updates such as 2000steps'
            raise ConfigError([Mistake("--budget", "", wrong)])
        return cls(minutes=found)

    @property
    def overrides(self) -> list[str]:
        """So that it ends every training, and nothing else does."""
        given = [f"training.max_minutes={self.minutes}", f"training.max_steps={self.steps}"]
        return [*given, "training.epochs=100000", "training.patience=0"]


def variants(
    vary: Sequence[str], model: ModelConfig, sets: Sequence[str] = (), baselines: bool = True
) -> list[Variant]:
    """Every combination of the values given, then the baselines without attention, if they are wanted.

    `sets` are settings that go together ("a.b=1 c.d=2"): each is varied like one value of a further key.
    """
    choices: list[list[tuple[str, ...]]] = []
    if sets:
        choices.append([_settings(text) for text in sets])
    seen = {setting.partition("=")[0] for one in choices for together in one for setting in together}
    for text in vary:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise ConfigError([Mistake("--vary", "", f'"{text}": expected section.key=value,value,...')])
        if key in seen:
            raise ConfigError([Mistake("--vary", "", f"{key}: given twice; its values go into one --vary")])
        seen.add(key)
        choices.append([(f"{key}={value}",) for value in values.split(",")])
    if not choices:
        raise ConfigError([Mistake("--vary", "", "nothing to compare: give --vary, --variant or both")])
    combined = [tuple(itertools.chain(*parts)) for parts in itertools.product(*choices)]
    chosen = [Variant(_name(overrides), overrides) for overrides in combined]
    return chosen + _baselines(model) if baselines else chosen


def _settings(text: str) -> tuple[str, ...]:
    """
    >>> _settings("model.dropout=0.1 model.attention.score=dot")
    ('model.dropout=0.1', 'model.attention.score=dot')
    """
    try:
        found = tuple(shlex.split(text))
    except ValueError:  # an open quotation mark
        found = ()
    if not found or any(not setting.partition("=")[2] for setting in found):
        wrong = (
            f'"{text}": expected settings with spaces between them, such as "model.dropout=0.1 model.tie=all"'
        )
        raise ConfigError([Mistake("--variant", "", wrong)])
    return found


def _baselines(model: ModelConfig) -> list[Variant]:
    """The same task without attention, or with weights that are all alike; where the recipe has any."""
    uniform = Variant("baseline: uniform weights", ("model.attention.placement=uniform",))
    if model.classifier is not None:
        last = ("model.classifier.pooling=last", "model.classifier.form=plain")
        looks = model.classifier.pooling == "attention"
        return [uniform, Variant("baseline: last states", last)] if looks else []
    if model.recommender is not None:
        alone = ("model.recommender.kind=equal", "model.encoder.kind=embedding", "model.dropout=0")
        alike = Variant("baseline: all items alike", alone)
        return [alike] if model.recommender.kind == "attention" else []
    if model.reader is not None:
        plain = Variant("baseline: a plain LSTM", ("model.reader.kind=lstm",))
        return [plain] if model.reader.kind != "lstm" else []
    if not model.decoder.recurrent or model.decoder.source != "attention":
        return []
    blind = ("source=init", "feed=none", "combine=false", "gate=false")
    return [uniform, Variant("baseline: no attention", tuple(f"model.decoder.{text}" for text in blind))]


def _name(overrides: Sequence[str]) -> str:
    parts = (text.partition("=") for text in overrides)
    return ", ".join(f"{key.rsplit('.', 1)[-1]}={value}" for key, _, value in parts)


def compare(  # noqa: PLR0913 - one argument per independent choice
    recipe: Path,
    vary: Sequence[str],
    seeds: int,
    budget: str,
    out: Path,
    say: Callable[[str], None],
    sets: Sequence[str] = (),
    abreast: int = 1,
    baselines: bool = True,
) -> list[Row]:
    """Train and measure every variant, `abreast` of them at once; writes `compare.json`, `.md` and `.png`."""
    limit = Budget.of(budget)
    if abreast > 1 and not limit.steps:
        wrong = f"{budget}: trainings side by side take time from one another; give updates, as in 2000steps"
        raise ConfigError([Mistake("--budget", "", wrong)])
    loaded = load_recipe(recipe)
    jobs = variants(vary, loaded.recipe.model, sets, baselines)
    for job in jobs:  # all mistakes before hours of work
        load_recipe(recipe, job.overrides)
    if not kind_of(loaded.recipe.task.kind).tested(loaded.recipe, loaded.base):
        raise DataError(
            f"{recipe} names no test data (data.test or data.split_test), which variants are compared on"
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise TrainingError(f"{out} is a file; --out names a folder") from None
    except OSError as error:
        raise TrainingError(f"{out}: cannot be made: {error.strerror}; give another --out") from None
    total = len(jobs) * seeds
    long = f": about {total * limit.minutes:.0f} minutes of training" if limit.minutes else ""
    say(f"{len(jobs)} variants x {seeds} seeds, {budget} each{long}")
    folders = [
        [out / f"{number:02d}-seed{seed}" for seed in range(1, seeds + 1)] for number in range(len(jobs))
    ]
    trainings = Trainings(recipe, limit, abreast)
    todo = [
        (job, seed, folder)
        for job, mine in zip(jobs, folders, strict=True)
        for seed, folder in enumerate(mine, start=1)
    ]
    for number, (job, seed, _) in enumerate(trainings.run(todo), start=1):
        say(f"{number}/{total} {job.name}, seed {seed}")
    rows = _measured(jobs, folders)
    _write(rows, out, recipe, budget, seeds, abreast)
    return rows


COMMAND = (sys.executable, "-m", "heedful", "train")
Todo = tuple[Variant, int, Path]  # what is trained, its seed, and where


class Trainings:
    """Processes that train, some side by side. When one fails the others are stopped, to go on later."""

    def __init__(self, recipe: Path, limit: Budget, abreast: int) -> None:
        self.recipe, self.limit, self.abreast = recipe, limit, abreast
        self.text = recipe.read_bytes()
        self.running: set[subprocess.Popen[str]] = set()
        self.starting, self.stopped = Lock(), False
        self.environment = dict(os.environ)
        if abreast > 1:  # else each would take all cores
            self.environment.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // abreast)))

    def run(self, todo: Sequence[Todo]) -> Iterator[Todo]:
        """Train all; each is given back when it is done."""
        with ThreadPoolExecutor(self.abreast) as pool:
            jobs = {pool.submit(self.train, *one): one for one in todo}
            try:
                for job in as_completed(jobs):
                    job.result()
                    yield jobs[job]
            except BaseException:
                self.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def stop(self) -> None:
        with self.starting:
            self.stopped = True
            for process in self.running:
                process.terminate()

    def train(self, variant: Variant, seed: int, folder: Path) -> None:
        if self.recipe.read_bytes() != self.text:
            raise TrainingError(
                f"{self.recipe} was changed meanwhile, so variants would not be alike; make it as it was,"
                " and the same command goes on"
            )
        self._process(variant, seed, folder)

    def _process(self, variant: Variant, seed: int, folder: Path) -> None:
        overrides = [*variant.overrides, f"training.seed={seed}", *self.limit.overrides]
        command = [*COMMAND, str(self.recipe), *overrides]
        command += ["training.keep_best=true", "--out", str(folder)]
        with self.starting:
            if self.stopped:  # taken up just before that
                return
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.environment
            )
            self.running.add(process)
        assert process.stderr is not None
        with process.stderr:
            said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)  # nobody else may wait for it now
        with self.starting:
            self.running.discard(process)
        if process.returncode:
            with suppress(OSError):  # the very first one: nothing is there yet
                folder.parent.rmdir()
            last = "\n".join(said.strip().splitlines()[-6:])
            raise TrainingError(f"{variant.name}, seed {seed} could not be trained:\n{last}")
        cost = folder / "cost.json"
        if not cost.is_file():
            cost.write_text(json.dumps({"megabytes": usage.ru_maxrss / 1024}) + "\n", encoding="utf-8")


def _measured(jobs: Sequence[Variant], folders: Sequence[Sequence[Path]]) -> list[Row]:
    rows: list[Row] = []
    writing = _writing([mine[0] for mine in folders])
    yardstick: Evaluated | None = None
    for job, mine, word in zip(jobs, folders, writing, strict=True):
        figures: dict[str, list[float]] = {}
        p = None
        for number, folder in enumerate(mine):
            found = kind_of(read_card(folder)["task"]).evaluate([folder], Question())
            for metric in found.metrics:
                figures.setdefault(metric.name, []).append(metric.value)
            if number == 0 and yardstick is None:
                yardstick = found
            elif number == 0 and yardstick is not None:
                with suppress(DataError):  # such as readers that cut the text differently
                    p = yardstick.against(found).p
        costs = [_cost(folder) for folder in mine]
        rows.append(
            Row(
                job.name,
                int(read_card(mine[0])["parameters"]),
                {name: _spread(values) for name, values in figures.items()},
                statistics.mean(c["steps"] for c in costs),
                statistics.mean(c["seconds"] / max(c["steps"], 1) for c in costs),
                statistics.mean(c["megabytes"] for c in costs),
                p,
                word,
            )
        )
    return rows


def _writing(folders: Sequence[Path]) -> list[float | None]:
    """What a step of writing costs each, measured once: all in turns, in one run."""
    known = [_kept(folder) for folder in folders]
    if not all("writing" in cost for cost in known):
        for folder, cost, seconds in zip(folders, known, step_seconds(folders), strict=True):
            cost["writing"] = seconds
            (folder / "cost.json").write_text(json.dumps(cost) + "\n", encoding="utf-8")
    return [cost["writing"] for cost in known]


def _cost(folder: Path) -> dict[str, float]:
    megabytes = float(_kept(folder)["megabytes"])
    try:
        if read_card(folder)["parameters"] == 0:  # what only counts is not trained
            return {"steps": 0, "seconds": 0.0, "megabytes": megabytes}
        last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        return {"steps": last["step"], "seconds": last["seconds"], "megabytes": megabytes}
    except (OSError, ValueError, LookupError, TypeError):
        raise _damaged(folder) from None


def _kept(folder: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder / "cost.json").read_text(encoding="utf-8"))
        float(found["megabytes"])
    except (OSError, ValueError, LookupError, TypeError):
        raise _damaged(folder) from None
    return found


def _damaged(folder: Path) -> ModelError:
    return ModelError(
        f"{folder}: metrics.jsonl or cost.json is missing or damaged; remove that folder, and the same"
        " command trains it again"
    )


def _spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation, which one value has not."""
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else None


def _figure(mean: float, spread: float | None) -> str:
    return f"{mean:.2f}" if spread is None else f"{mean:.2f} ± {spread:.2f}"


def markdown(rows: Sequence[Row]) -> str:
    """The table, as it stands in `compare.md`."""
    names = list(rows[0].figures)
    writes = any(row.seconds_per_word is not None for row in rows)
    head = ["variant", "parameters", *names, "p", "steps", "ms/step"]
    head += ["ms/step of writing", "MB"] if writes else ["MB"]
    lines = [" | ".join(["", *head, ""]).strip(), "|" + "---|" * len(head)]
    for row in rows:
        found = [row.figures.get(name) for name in names]
        cells = ["" if pair is None else _figure(*pair) for pair in found]
        p = "" if row.p is None else f"{row.p:.3f}"
        cost = [f"{row.steps:.0f}", f"{1000 * row.seconds_per_step:.0f}"]
        if writes:
            cost.append("" if row.seconds_per_word is None else f"{1000 * row.seconds_per_word:.2f}")
        cost.append(f"{row.megabytes:.0f}")
        lines.append(" | ".join(["", row.name, f"{row.parameters:,}", *cells, p, *cost, ""]).strip())
    return "\n".join(lines) + "\n"


def _write(rows: Sequence[Row], out: Path, recipe: Path, budget: str, seeds: int, abreast: int) -> None:
    beside = f", {abreast} side by side" if abreast > 1 else ""
    about = (
        f"`{recipe.name}`, {seeds} seed(s), {budget} of training each{beside}; mean ± standard deviation over"
        " seeds; p: paired bootstrap of the first seed against the first row; a step of writing makes a word"
        " of 32 outputs, greedily, the models measured in turns.\n\n"
    )
    (out / "compare.md").write_text(about + markdown(rows), encoding="utf-8")
    plain: list[dict[str, Any]] = [row._asdict() for row in rows]
    (out / "compare.json").write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    from heedful.view.bars import draw_bars

    main = next(iter(rows[0].figures))
    draw_bars([(row.name, *row.figures[main]) for row in rows], main, out / "compare.png")
