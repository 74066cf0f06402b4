"""One training of the studio, in a process of its own: lines of JSON on its standard output.

`python -m heedful.serve.training_worker JOB.json`. An interrupt saves a checkpoint, and the same command goes on.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from heedful.config import LoadedRecipe, Recipe
from heedful.config.load import resolve_recipe
from heedful.data.worlds.phrases import draw_phrases
from heedful.errors import HeedfulError, TrainingStopped
from heedful.tasks.auto import make_recipe
from heedful.tasks.base import LoadedModel, TraceRequest
from heedful.tasks.registry import get_task
from heedful.tasks.train import train_recipe
from heedful.trace.schema import Gold, Trace
from heedful.training.types import Callbacks, Report

WORLD_SEED = 424_242  # of the sentences that are filmed, which no split has drawn
N_SENTENCES = 3
STEP_SECONDS = 0.5  # between two messages about steps
ORIGIN = "the recipe of this training"


class Sentence(NamedTuple):
    """A sentence whose attention is filmed: forced to this target, with gold links if they are known."""

    source: str
    target: str
    gold: Gold | None


def send(event: str, **fields: Any) -> None:
    """Write one message."""
    print(json.dumps({"event": event, **fields}, ensure_ascii=False), flush=True)


def world_settings(languages: str = "en-fr") -> dict[str, Any]:
    """Return the recipe of the demo world: small, and with a validation every few seconds."""
    return {
        "task": {"kind": "translate"},
        "data": {"world": {"name": "phrases", "languages": languages, "train": 24_000, "valid": 200, "max_words": 9}},
        "tokenizer": {"kind": "word"},
        "model": {
            "preset": "bigru-gru",
            "embedding": 96,
            "dropout": 0.0,
            "encoder": {"hidden": 96},
            "decoder": {"hidden": 160},
            "attention": {"score": "additive", "hidden": 96},
        },
        "training": {
            "epochs": 3,
            "batch_tokens": 500,
            "learning_rate": 0.005,
            "threads": 1,
            "validate_every": 40,
            "validate_pairs": 100,
        },
    }


def load_job(job: Mapping[str, Any]) -> tuple[LoadedRecipe, list[Sentence]]:
    """Return the recipe of a job and the sentences to film."""
    if "data" in job:
        path = Path(job["data"])
        loaded, note = make_recipe("translate", [str(path)], list(job.get("settings", ())))
        send("log", text=note)
        return loaded, _first_rows(path)
    languages = job.get("languages", "en-fr")
    loaded = resolve_recipe(world_settings(languages), ORIGIN, Path(), list(job.get("settings", ())), ORIGIN)
    pairs = draw_phrases(N_SENTENCES, WORLD_SEED, languages, min_words=6, max_words=8)
    return loaded, [Sentence(" ".join(a), " ".join(b), Gold(sure=list(links))) for a, b, links in pairs]


def _first_rows(path: Path) -> list[Sentence]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[:200] if "\t" in line]
    short = [row for row in rows if 2 <= len(row[0].split()) <= 12 and row[1].strip()]
    return [Sentence(row[0], row[1], None) for row in (short or rows)[:N_SENTENCES]]


class Film:
    """Traces the sentences with the model as it is now."""

    def __init__(self, sentences: Sequence[Sentence]) -> None:
        self.sentences = sentences
        self.loaded: LoadedModel[Any, Any] | None = None

    def set_model(self, recipe: Recipe, assets: Any, model: Any, out: Path) -> None:
        """Remember the model that is trained."""
        card = {"files": {"model.safetensors": "0" * 64}}
        self.loaded = LoadedModel(out.name, recipe, assets, model, card, out)

    def frame(self) -> list[Trace]:
        """Return the traces of all sentences; the training goes on unchanged."""
        assert self.loaded is not None
        model, task = self.loaded.model, get_task(self.loaded.recipe.task.kind)
        state = torch.get_rng_state()
        model.eval()
        try:
            with torch.no_grad():
                return [
                    task.trace(
                        self.loaded,
                        TraceRequest(one.source, "weights", one.target, gold=one.gold),
                        self.loaded.recipe.decoding,
                    )
                    for one in self.sentences
                ]
        finally:
            model.train()
            torch.set_rng_state(state)


def mean_entropy(traces: Sequence[Trace]) -> float:
    """Return the mean entropy of the rows of weights, in bits."""
    rows = [row for trace in traces for row in trace.matrix()]
    return float(sum(-sum(w * math.log2(w) for w in row if w > 0) for row in rows) / max(1, len(rows)))


def alignment_error(traces: Sequence[Trace]) -> float | None:
    """Return the alignment error rate of the largest weight of each word, or nothing without gold links."""
    links = gold = right = 0
    for trace in traces:
        if trace.gold is None:
            return None
        table = trace.table(specials=False)
        found = {(int(row.argmax()), i) for i, row in enumerate(table.weights)}
        sure = set(trace.gold.sure)
        links, gold, right = links + len(found), gold + len(sure), right + len(found & sure)
    return 1 - 2 * right / max(1, links + gold)


def run(job: Mapping[str, Any]) -> None:
    """Train, and send a message for everything that a page can show."""
    out = Path(job["out"])
    loaded, sentences = load_job(job)
    film, last = Film(sentences), [0.0]

    def on_step(step: int, loss: float) -> None:
        if time.monotonic() - last[0] >= STEP_SECONDS:
            last[0] = time.monotonic()
            send("step", step=step, loss=loss)

    def on_validation(report: Report) -> None:
        traces = film.frame()
        send(
            "validation",
            step=report.step,
            seconds=report.seconds,
            train_loss=report.train_loss,
            metrics=dict(report.metrics),
            entropy=mean_entropy(traces),
            aer=alignment_error(traces),
            traces=[trace.model_dump(mode="json", by_alias=True, exclude_none=True) for trace in traces],
        )

    callbacks = Callbacks(
        on_start=lambda total, done: send("start", total=total, done=done),
        on_step=on_step,
        on_validation=on_validation,
        log=lambda line: send("log", text=line),
        on_built=lambda recipe, assets, model: film.set_model(recipe, assets, model, out),
    )
    train_recipe(loaded, out, callbacks)
    send("done", folder=str(out))


def main(path: str) -> int:
    """Run the job of a file; an interrupt is no error."""
    try:
        run(json.loads(Path(path).read_text(encoding="utf-8")))
    except (KeyboardInterrupt, TrainingStopped):
        send("stopped")
    except HeedfulError as error:
        send("failed", detail=str(error))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
