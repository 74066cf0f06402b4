"""NAIS in training beside RecBole's, on MovieLens-1M: interactions a second, everybody in turn.

    python benchmarks/recommend.py                       # some minutes; the first time RecBole is installed
    python benchmarks/recommend.py --alone --seconds 5   # ourselves only

Both train NAIS-prod with vectors of 16, an inner width of 16, beta 0.5, and 4 drawn items beside each that
was taken; an interaction is an item asked about, taken or drawn. RecBole (1.2.1, an environment of its own
under build/bench) runs its own trainer's epochs; it reads every history padded to the longest. We run `train`
as users do. A ratio belongs to one round: the machine's speed drifts.
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

import places  # noqa: E402
from protocol import Clock, Worker  # noqa: E402

WIDTH, NEGATIVES, ROWS, WANTED = 16, 4, 2_000, 3.0
DATA = "movielens_1m_loo"
NEVER = 10**9
RESULTS = HERE / "recommend.md"
FOLDER = places.CACHE / "recbole"


class RecBole(Worker):
    """In its own environment: the classes under its `quick_start`, which would want more packages."""

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        import torch
        from recbole.config import Config
        from recbole.data import create_dataset, data_preparation
        from recbole.utils import get_model, get_trainer, init_seed

        torch.set_num_threads(threads)
        os.chdir(FOLDER)  # it writes logs where it stands
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
            "train_batch_size": ROWS,
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
        made = get_model(config["model"])(config, data._dataset).to(config["device"])
        trainer = get_trainer(config["MODEL_TYPE"], config["model"])(config, made)
        clock.more["parameters"] = sum(weight.numel() for weight in made.parameters())
        for epoch in range(NEVER):
            trainer._train_epoch(Timed(data, clock), epoch, show_progress=False)


class Timed:
    """A data loader whose batches are counted; after each the training stands still if it is told to."""

    def __init__(self, data: Any, clock: Clock) -> None:
        self.data, self.clock = data, clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.data, name)

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.data:
            self.clock.saw(len(batch))
            yield batch
            self.clock.between()


class Heedful(Worker):
    """Ourselves, through the loop that `heedful train` runs."""

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        import tempfile

        from heedful.config import load_recipe
        from heedful.data.histories import HistoryBatch
        from heedful.data.ratings import open_ratings
        from heedful.models import Recommender
        from heedful.tasks.recommend import KIND, RecommendTask
        from heedful.training import Loss
        from heedful.training.loop import train

        class Counted(RecommendTask):
            def loss(self, model: Recommender, batch: HistoryBatch) -> Loss:
                clock.saw(len(batch.targets))
                return super().loss(model, batch)

        overrides = [
            "model.preset=nais-prod",
            f"model.embedding={WIDTH}",
            f"training.batch_tokens={ROWS}",
            f"training.negatives={NEGATIVES}",
            f"training.threads={threads}",
            f"training.epochs={NEVER}",
            f"training.validate_every={NEVER}",
            f"training.checkpoint_every={NEVER}",
            "training.rate=0.001",
            "training.schedule=constant",
        ]
        recipe = load_recipe(places.ROOT / "recipes" / "movielens-fism.toml", overrides).recipe
        ratings = open_ratings(recipe.data, Path())
        made = KIND.build(recipe, ratings.catalogue)
        assert isinstance(made, Recommender)
        clock.more["parameters"] = sum(weight.numel() for weight in made.parameters())
        with tempfile.TemporaryDirectory() as out:
            task = Counted(recipe, ratings)
            train(task, made, recipe.training, Path(out), tick=lambda *_: clock.between())


def prepare() -> None:
    """The same interactions as RecBole reads them, and its environment."""
    import environments

    from heedful.data.paths import locate

    environments.make("recbole")
    target = FOLDER / DATA / f"{DATA}.inter"
    if target.is_file():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(locate(f"data:{DATA}/train.tsv.gz", Path()), "rt", encoding="utf-8") as file:
        target.write_text("user_id:token\titem_id:token\n" + file.read(), encoding="utf-8")


def commands(alone: bool) -> dict[str, list[str]]:
    ours = {"heedful": [sys.executable, str(HERE / "recommend.py"), "--worker", "heedful"]}
    if alone:
        return ours
    return {
        **ours,
        "recbole": [str(places.python("recbole")), str(HERE / "recommend.py"), "--worker", "recbole"],
    }


def measured(asked: argparse.Namespace) -> list[dict[str, float]]:
    """For every round what each did, in interactions a second."""
    from talk import Talk

    rounds = []
    with ExitStack() as stack:
        talks = {}
        for name, command in commands(asked.alone).items():
            talks[name] = Talk(f"nais-{name}", command, asked.threads)
            stack.callback(talks[name].close)
        for number in range(asked.rounds):
            found = {}
            for name, talk in talks.items():
                answer = talk.ask("train", model="NAIS", seconds=asked.seconds, threads=asked.threads)
                found[name] = answer["tokens"] / answer["seconds"]
            rounds.append(found)
            told = ", ".join(f"{name} {rate:,.0f}/s" for name, rate in found.items())
            print(f"round {number + 1}: {told}", file=sys.stderr, flush=True)
    return rounds


def document(rounds: list[dict[str, float]], asked: argparse.Namespace) -> str:
    ratios = sorted(row["heedful"] / row["recbole"] for row in rounds)
    middle = statistics.median(ratios)
    rates = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    return "\n".join(
        [
            "# Training NAIS beside RecBole 1.2.1",
            "",
            f"MovieLens-1M, NAIS-prod of width {WIDTH}, {NEGATIVES} drawn items, {ROWS:,} a batch,"
            f" {asked.threads} thread(s), {len(rounds)} rounds of {asked.seconds:g} s in turn"
            " (`python benchmarks/recommend.py`).",
            "",
            "| | interactions/s (median) |",
            "| --- | --- |",
            *(f"| {name} | {rate:,.0f} |" for name, rate in rates.items()),
            "",
            f"Ratio: **{middle:.1f}x** ({ratios[0]:.1f}-{ratios[-1]:.1f}); wanted {WANTED:g}x,"
            f" {'met' if middle >= WANTED else 'not met'}.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="NAIS in training beside RecBole's.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="of training, a round and system")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone", action="store_true", help="ourselves only; nothing is written")
    parser.add_argument("--worker", choices=("heedful", "recbole"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        {"heedful": Heedful, "recbole": RecBole}[asked.worker]().serve()
        return
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if not asked.alone:
        prepare()
    rounds = measured(asked)
    if not asked.alone:
        text = document(rounds, asked)
        RESULTS.write_text(text, encoding="utf-8")
        print(text)


if __name__ == "__main__":
    main()
