"""Ourselves, through what users get: `train` with its `tick`, and `open_models` with `texts` to write."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import places
import sizes
import torch
from protocol import Clock, Command, Worker
from sizes import R, T

from heedful.attention import Detail, Watch
from heedful.config import DecodingConfig, Recipe, load_recipe
from heedful.data.batch import Buckets, TextBatch
from heedful.data.corpus import Corpus
from heedful.data.tokenizer import Tokenizer
from heedful.models import Seq2Seq, build
from heedful.tasks.text import TextTask, Vocabularies, open_splits
from heedful.tasks.use import Ready, open_models, outputs, texts
from heedful.training import Loss, Report, Validation
from heedful.training.loop import train

NEVER = 10**9
MODELS: dict[str, dict[str, Any]] = {
    "R": {
        "preset": "bigru-gru",
        "embedding": R.embedding,
        "dropout": R.dropout,
        "encoder": {"kind": "gru", "hidden": R.encoder, "bidirectional": True},
        "decoder": {
            "kind": "gru",
            "hidden": R.decoder,
            "order": "update-look-generate",
            "start": "bridge",
            "feed": "attentional",
            "read_out": "tanh",
        },
        "attention": {"score": "additive", "hidden": R.attention},
    },
    "T": {
        "preset": "transformer",
        "embedding": T.width,
        "dropout": T.dropout,
        "tie": "none",
        "encoder": {
            "kind": "transformer",
            "layers": T.layers,
            "hidden": T.width,
            "heads": T.heads,
            "feedforward": T.feedforward,
        },
        "decoder": {
            "kind": "transformer",
            "layers": T.layers,
            "hidden": T.width,
            "heads": T.heads,
            "feedforward": T.feedforward,
        },
        "attention": {"score": "scaled-dot"},
    },
}


def recipe(model: str, threads: int) -> Recipe:
    """R and T as everybody trains them, or a recipe by its file."""
    data = {
        split: [str(places.text(name, language)) for language in (places.SOURCE, places.TARGET)]
        for split, name in (("train", "train"), ("valid", "val"))
    }
    if model not in MODELS:
        found = load_recipe(Path(model)).recipe
        changed = found.data.model_copy(update={name: tuple(files) for name, files in data.items()})
        training = found.training.model_copy(update={"threads": threads})
        return found.model_copy(update={"data": changed, "training": training})
    return Recipe.model_validate(
        {
            "data": data,
            "tokenizer": {"kind": "bpe", "size": sizes.PIECES, "shared": True},
            "model": MODELS[model],
            "training": {
                "epochs": NEVER,
                "rate": sizes.RATE,
                "schedule": "constant",
                "warmup": 0,
                "clip": sizes.CLIP,
                "validate_every": NEVER,
                "checkpoint_every": NEVER,
                "threads": threads,
            },
            "decoding": {"batch": sizes.BATCH, "max_length": sizes.LONGEST},
        }
    )


def budget(corpus: Corpus, sentences: int) -> int:
    """The positions of a batch that make so many sentences a batch on average: an epoch has as many steps."""
    wanted = -(-len(corpus) // sentences)
    low, high = 1, sentences * 100
    while low < high:
        middle = (low + high) // 2
        if len(Buckets(corpus, middle, seed=1).arrange(1)) > wanted:
            low = middle + 1
        else:
            high = middle
    return low


class Counted(TextTask):
    """The task with a clock beside it."""

    clock: Clock
    lock = threading.Lock()  # parts of a batch are computed side by side

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        found = super().loss(model, batch)
        if model.training:
            with self.lock:
                self.clock.saw(found.tokens)
        return found

    def validate(self, model: Seq2Seq) -> Validation:
        found: Validation = self.clock.outside(lambda: super(Counted, self).validate(model))
        return found


class Heedful(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.ready: dict[tuple[str, bool], Ready] = {}

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        asked = recipe(model, threads)
        tokenizer = Tokenizer.load(places.PIECES)
        words = Vocabularies(tokenizer, tokenizer)
        task = Counted(asked, open_splits(asked, places.ROOT), words)
        task.clock = clock
        if model in MODELS:
            positions = budget(task.corpus, sizes.SENTENCES)
            training = asked.training.model_copy(update={"batch_tokens": positions})
            task.recipe = asked = asked.model_copy(update={"training": training})
            task.buckets = Buckets(task.corpus, positions, training.seed)
            clock.more["batch_tokens"] = positions
        torch.manual_seed(asked.training.seed)
        made = build(asked.model, len(tokenizer), len(tokenizer))
        clock.more |= {"parameters": sum(p.numel() for p in made.parameters()), "curve": []}
        out = places.SCRATCH / f"heedful-{Path(model).stem}-{os.getpid()}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)

        def after(report: Report) -> None:
            clock.more["curve"].append([clock.total, report.figures["bleu"]])

        train(task, made, asked.training, out, tick=lambda _step, _loss: clock.between(), after=after)

    def do_decode(
        self,
        model: str,
        how: str,
        sentences: int,
        threads: int = 2,
        workers: int = 1,
        int8: bool = False,
        split: str = places.TEST,
        **more: Any,
    ) -> Command:
        """`workers` search batches side by side; `more` are settings of `[decoding]`."""
        torch.set_num_threads(threads)
        lines = places.lines(split, places.SOURCE, sentences)
        ready = self._opened(model, int8)._replace(threads=workers)
        if unknown := [key for key in more if key not in DecodingConfig.model_fields]:
            raise ValueError(f"[decoding] knows no {', '.join(unknown)}")
        asked: dict[str, Any] = {"method": "greedy", "batch": sizes.BATCH, "max_length": sizes.LONGEST}
        if how == "beam5":
            asked |= {"method": "beam", "beam": 5, "alpha": 1.0}
        search = ready.decoding.model_copy(update={**asked, **more})
        begun = time.perf_counter()
        if how == "single":
            found = [texts(ready, [line], search)[0][0] for line in lines]
        elif how == "traced":  # every look of every word is kept
            hypotheses = outputs(ready, lines, search, Watch(Detail.WEIGHTS))
            found = [ready.words.target.decode(best[0].tokens) for best in hypotheses]
        else:
            found = [best[0] for best in texts(ready, lines, search)]
        return {"seconds": time.perf_counter() - begun, "outputs": found}

    def _opened(self, model: str, int8: bool) -> Ready:
        if (model, int8) not in self.ready:
            self.ready[model, int8] = open_models([Path(places.converted(model))], int8)
        return self.ready[model, int8]

    def do_gemm(self, threads: int = 2, size: int = 2048, seconds: float = 2.0) -> Command:
        """The best that this machine's matrix product gives, in GFLOP a second."""
        torch.set_num_threads(threads)
        a, b = torch.rand(size, size), torch.rand(size, size)
        best, ends = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < ends:
            begun = time.perf_counter()
            a @ b
            best = min(best, time.perf_counter() - begun)
        return {"gflops": 2 * size**3 / best / 1e9}


if __name__ == "__main__":
    Heedful().serve()
