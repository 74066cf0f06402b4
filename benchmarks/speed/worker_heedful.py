"""Worker for heedful, through the functions that the command line calls."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import paths
import sizes
import torch
from protocol import Clock, Message, Worker, peak_rss_mb
from sizes import R, T

from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions, Recipe, load_recipe
from heedful.data.batch import BucketBatches, TextBatch
from heedful.data.corpus import Corpus
from heedful.data.tokenizer import Tokenizer
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.predict import Predictor, generate_texts, load_predictor
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.tasks.splits import open_splits
from heedful.training import Callbacks, Loss, Report, Validation
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
            "step_order": "update-attend-generate",
            "state_init": "bridge",
            "input_feeding": "attentional",
            "read_out": "tanh",
        },
        "attention": {"score": "additive", "hidden": R.attention},
    },
    "T": {
        "preset": "transformer",
        "embedding": T.width,
        "dropout": T.dropout,
        "tie_embeddings": "none",
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


def make_recipe(model: str, threads: int) -> Recipe:
    """Return the recipe of model R or T, or a recipe file with the benchmark's data."""
    data = {
        split: [str(paths.text_file(name, language)) for language in (paths.SOURCE, paths.TARGET)]
        for split, name in (("train", "train"), ("valid", "val"))
    }
    if model not in MODELS:
        recipe = load_recipe(Path(model)).recipe
        changed = recipe.data.model_copy(update={name: tuple(files) for name, files in data.items()})
        training = recipe.training.model_copy(update={"threads": threads})
        return recipe.model_copy(update={"data": changed, "training": training})
    return Recipe.model_validate(
        {
            "data": data,
            "tokenizer": {"kind": "bpe", "vocab_size": sizes.VOCABULARY_SIZE, "shared": True},
            "model": MODELS[model],
            "training": {
                "epochs": NEVER,
                "learning_rate": sizes.LEARNING_RATE,
                "schedule": "constant",
                "warmup_steps": 0,
                "grad_clip": sizes.GRAD_CLIP,
                "validate_every": NEVER,
                "checkpoint_every": NEVER,
                "threads": threads,
            },
            "decoding": {"batch_size": sizes.DECODING_BATCH, "max_length": sizes.MAX_LENGTH},
        }
    )


def find_batch_tokens(corpus: Corpus, sentences: int) -> int:
    """Return the `batch_tokens` that give this many sentences per batch on average, so that epochs have equal steps."""
    n_steps = -(-len(corpus) // sentences)
    low, high = 1, sentences * 100
    while low < high:
        middle = (low + high) // 2
        if len(BucketBatches(corpus, middle, seed=1).epoch_plan(1)) > n_steps:
            low = middle + 1
        else:
            high = middle
    return low


class CountedTraining(Seq2SeqTraining):
    """Training that counts its tokens."""

    clock: Clock
    lock = threading.Lock()  # parts of a batch are computed in parallel

    def loss(self, model: Seq2Seq, batch: TextBatch) -> Loss:
        loss = super().loss(model, batch)
        if model.training:
            with self.lock:
                self.clock.count_tokens(loss.tokens)
        return loss

    def validate(self, model: Seq2Seq) -> Validation:
        validation: Validation = self.clock.exclude(lambda: super(CountedTraining, self).validate(model))
        return validation


class Heedful(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.predictors: dict[tuple[str, bool], Predictor] = {}

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        recipe = make_recipe(model, threads)
        tokenizer = Tokenizer.load(paths.TOKENIZER)
        assets = Seq2SeqAssets(tokenizer, tokenizer)
        task = CountedTraining(recipe, open_splits(recipe, paths.ROOT), assets)
        task.clock = clock
        if model in MODELS:
            batch_tokens = find_batch_tokens(task.corpus, sizes.BATCH_SENTENCES)
            training = recipe.training.model_copy(update={"batch_tokens": batch_tokens})
            task.recipe = recipe = recipe.model_copy(update={"training": training})
            task.buckets = BucketBatches(task.corpus, batch_tokens, training.seed)
            clock.extra["batch_tokens"] = batch_tokens
        torch.manual_seed(recipe.training.seed)
        network = build_seq2seq(recipe.model, len(tokenizer), len(tokenizer))
        clock.extra |= {"parameters": sum(p.numel() for p in network.parameters()), "curve": []}
        out = paths.SCRATCH / f"heedful-{Path(model).stem}-{os.getpid()}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)

        def record_bleu(report: Report) -> None:
            clock.extra["curve"].append([clock.total, report.metrics["bleu"]])

        callbacks = Callbacks(on_step=lambda *_: clock.on_step_end(), on_validation=record_bleu)
        train(task, network, recipe.training, out, callbacks)

    def do_decode(
        self,
        model: str,
        method: str,
        sentences: int,
        threads: int = 2,
        workers: int = 1,
        int8: bool = False,
        split: str = paths.TEST,
        **decoding: Any,
    ) -> Message:
        """Decode with `workers` that search batches in parallel; `decoding` are settings of `[decoding]`."""
        torch.set_num_threads(threads)
        lines = paths.read_lines(split, paths.SOURCE, sentences)
        predictor = self._predictor(model, int8)._replace(threads=workers)
        if unknown := [key for key in decoding if key not in DecodingOptions.model_fields]:
            raise ValueError(f"[decoding] has no setting {', '.join(unknown)}")
        options: dict[str, Any] = {
            "method": "greedy",
            "batch_size": sizes.DECODING_BATCH,
            "max_length": sizes.MAX_LENGTH,
        }
        if method == "beam5":
            options |= {"method": "beam", "beam": 5, "length_penalty": 1.0}
        search = predictor.decoding.model_copy(update={**options, **decoding})
        started = time.perf_counter()
        if method == "single":
            outputs = [generate_texts(predictor, [line], search)[0][0] for line in lines]
        elif method == "traced":  # all attention weights are recorded
            hypotheses = predictor.search(lines, search, Hooks(Detail.WEIGHTS))
            outputs = [predictor.assets.target.decode(best[0].tokens) for best in hypotheses]
        else:
            outputs = [best[0] for best in generate_texts(predictor, lines, search)]
        return {"seconds": time.perf_counter() - started, "outputs": outputs, "peak_rss_mb": peak_rss_mb()}

    def _predictor(self, model: str, int8: bool) -> Predictor:
        if (model, int8) not in self.predictors:
            self.predictors[model, int8] = load_predictor([Path(paths.model_folder(model))], int8)
        return self.predictors[model, int8]

    def do_gemm(self, threads: int = 2, size: int = 2048, seconds: float = 2.0) -> Message:
        """Measure the peak of a matrix product in GFLOP/s."""
        torch.set_num_threads(threads)
        a, b = torch.rand(size, size), torch.rand(size, size)
        best, ends = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < ends:
            started = time.perf_counter()
            a @ b
            best = min(best, time.perf_counter() - started)
        return {"gflops": 2 * size**3 / best / 1e9}


if __name__ == "__main__":
    Heedful().serve()
