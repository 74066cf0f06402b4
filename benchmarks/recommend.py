"""Measure training of NAIS next to RecBole on MovieLens-1M, in interactions per second.

    python benchmarks/recommend.py                       # some minutes; the first time RecBole is installed
    python benchmarks/recommend.py --alone --seconds 5   # heedful only

Both train NAIS-prod with embeddings of 16, a hidden width of 16, beta 0.5, and 4 negative samples per positive item; an
interaction is one scored item, positive or negative. RecBole (1.2.1, in its own environment under HEEDFUL_RUNS/bench)
runs its own trainer, which pads every history to the longest. heedful runs the loop of `heedful train`. The systems are
measured in turn, and ratios are taken within one round: the machine's speed drifts.
"""

from __future__ import annotations

import argparse
import gzip
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "speed"))

import paths  # noqa: E402
from protocol import Clock, Worker  # noqa: E402

WIDTH, NEGATIVES, BATCH, TARGET = 16, 4, 2_000, 3.0
DATA = "movielens_1m_loo"
NEVER = 10**9
RESULTS = HERE / "recommend.md"
FOLDER = paths.FOLDER / "recbole"


class RecBole(Worker):
    """Worker for RecBole, by the classes behind its `quick_start`, which itself needs more packages."""

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        import torch
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import get_model, get_trainer, init_seed

        torch.set_num_threads(threads)
        os.chdir(FOLDER)  # it writes logs to the current folder
        settings: dict[str, Any] = {
            "data_path": str(FOLDER),
            "checkpoint_dir": str(FOLDER / "saved"),
            "USER_ID_FIELD": "user_id",
            "ITEM_ID_FIELD": "item_id",
            "load_col": {"inter": ["user_id", "item_id"]},
            "eval_args": {
                "split": {"LS": "valid_and_test"},
                "group_by": "user",
                "order": "RO",
                "mode": "full",
            },
            "train_neg_sample_args": {
                "distribution": "uniform",
                "sample_num": NEGATIVES,
                "alpha": 1.0,
                "dynamic": False,
                "candidate_num": 0,
            },
            "embedding_size": WIDTH,
            "weight_size": WIDTH,
            "algorithm": "prod",
            "alpha": 0.0,
            "beta": 0.5,
            "split_to": 0,
            "train_batch_size": BATCH,
            "learner": "adam",
            "learning_rate": 0.001,
            "gpu_id": "",
            "worker": 0,
            "show_progress": False,
            "state": "WARNING",
        }
        config = Config(model=model, dataset=DATA, config_dict=settings)
        init_seed(config["seed"], config["reproducibility"])
        data, _, _ = data_preparation(config, create_dataset(config))
        network = get_model(config["model"])(config, data._dataset).to(config["device"])
        trainer = get_trainer(config["MODEL_TYPE"], config["model"])(config, network)
        clock.extra["parameters"] = sum(weight.numel() for weight in network.parameters())
        for epoch in range(NEVER):
            trainer._train_epoch(CountedLoader(data, clock), epoch, show_progress=False)


class CountedLoader:
    """A data loader that counts its batches; training pauses after a batch when the window is over."""

    def __init__(self, data: Any, clock: Clock) -> None:
        self.data, self.clock = data, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data, name)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.data:
            self.clock.count_tokens(len(batch))
            yield batch
            self.clock.on_step_end()


class Heedful(Worker):
    """Worker for heedful, by the loop that `heedful train` runs."""

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        import tempfile

        from heedful.config import load_recipe
        from heedful.data.histories import HistoryBatch
        from heedful.data.ratings import open_ratings
        from heedful.models import Recommender
        from heedful.tasks.recommend.task import TASK
        from heedful.tasks.recommend.training import RecommendationTraining
        from heedful.training import Callbacks, Loss
        from heedful.training.loop import train

        class CountedTraining(RecommendationTraining):
            def loss(self, model: Recommender, batch: HistoryBatch) -> Loss:
                clock.count_tokens(len(batch.targets))
                return super().loss(model, batch)

        overrides = [
            "model.preset=nais-prod",
            f"model.embedding={WIDTH}",
            f"training.batch_tokens={BATCH}",
            f"training.negatives={NEGATIVES}",
            f"training.threads={threads}",
            f"training.epochs={NEVER}",
            f"training.validate_every={NEVER}",
            f"training.checkpoint_every={NEVER}",
            "training.learning_rate=0.001",
            "training.schedule=constant",
        ]
        recipe = load_recipe(paths.ROOT / "recipes" / "movielens-fism.toml", overrides).recipe
        ratings = open_ratings(recipe.data, Path())
        network = TASK.build(recipe, ratings.catalog)
        assert isinstance(network, Recommender)
        clock.extra["parameters"] = sum(weight.numel() for weight in network.parameters())
        with tempfile.TemporaryDirectory() as out:
            task = CountedTraining(recipe, ratings)
            callbacks = Callbacks(on_step=lambda *_: clock.on_step_end())
            train(task, network, recipe.training, Path(out), callbacks)


def prepare() -> None:
    """Create RecBole's environment and write the interactions in its format."""
    import environments

    from heedful.data.paths import locate

    environments.create("recbole")
    target = FOLDER / DATA / f"{DATA}.inter"
    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(locate(f"data:{DATA}/train.tsv.gz", Path()), "rt", encoding="utf-8") as file:
        target.write_text("user_id:token\titem_id:token\n" + file.read(), encoding="utf-8")


def commands(alone: bool) -> dict[str, list[str]]:
    heedful = {"heedful": [sys.executable, str(HERE / "recommend.py"), "--worker", "heedful"]}
    if alone:
        return heedful
    return {
        **heedful,
        "recbole": [str(paths.interpreter("recbole")), str(HERE / "recommend.py"), "--worker", "recbole"],
    }


def measure(options: argparse.Namespace) -> list[dict[str, float]]:
    """Return interactions per second of each system, per round."""
    from client import WorkerClient

    rounds = []
    with ExitStack() as stack:
        clients = {}
        for name, command in commands(options.alone).items():
            clients[name] = WorkerClient(f"nais-{name}", command, options.threads)
            stack.callback(clients[name].close)
        for number in range(options.rounds):
            rates = {}
            for name, client in clients.items():
                reply = client.request("train", model="NAIS", seconds=options.seconds, threads=options.threads)
                rates[name] = reply["tokens"] / reply["seconds"]
            rounds.append(rates)
            text = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in rates.items())
            print(f"round {number + 1}: {text}", file=sys.stderr, flush=True)
    return rounds


def make_document(rounds: list[dict[str, float]], options: argparse.Namespace) -> str:
    ratios = sorted(row["heedful"] / row["recbole"] for row in rounds)
    middle = statistics.median(ratios)
    rates = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    return "\n".join(
        [
            "# Training NAIS next to RecBole 1.2.1",
            "",
            f"MovieLens-1M, NAIS-prod of width {WIDTH}, {NEGATIVES} negative samples, batches of {BATCH:,},"
            f" {options.threads} thread(s), {len(rounds)} rounds of {options.seconds:g} s each"
            " (`python benchmarks/recommend.py`).",
            "",
            "| | interactions/s (median) |",
            "| --- | --- |",
            *(f"| {name} | {rate:,.0f} |" for name, rate in rates.items()),
            "",
            f"Ratio: **{middle:.1f}x** ({ratios[0]:.1f}-{ratios[-1]:.1f}); target {TARGET:g}x,"
            f" {'reached' if middle >= TARGET else 'missed'}.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure training of NAIS next to RecBole.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="of training per round and system")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="heedful only; writes nothing")
    parser.add_argument("--worker", choices=("heedful", "recbole"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        {"heedful": Heedful, "recbole": RecBole}[options.worker]().serve()
        return
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if not options.alone:
        prepare()
    rounds = measure(options)
    if not options.alone:
        text = make_document(rounds, options)
        RESULTS.write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
