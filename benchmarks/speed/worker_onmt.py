"""OpenNMT-py 3.5.1 in its own environment, driven through its own training loop and inference engine."""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints hold its options
os.environ.setdefault("PYTHONWARNINGS", "ignore")

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onmt.bin.train
import onmt.bin.translate
import onmt.train_single
import onmt_options
import places
import sizes
import torch
from onmt.constants import CorpusTask, DefaultTokens
from onmt.inference_engine import InferenceEnginePY
from onmt.utils.parse import ArgumentParser
from pieces import Pieces
from protocol import Clock, Command, Worker

SEARCH = {
    "greedy": ["-beam_size", "1", "-batch_size", str(sizes.BATCH)],
    "beam5": ["-beam_size", "5", "-batch_size", str(sizes.BATCH)],
    "single": ["-beam_size", "1", "-batch_size", "1"],
}


class Batches:
    """Its own batches, with the clock looked at between them: then the step before is done."""

    def __init__(self, inner: Any, clock: Clock) -> None:
        self.inner, self.clock = inner, clock

    def __iter__(self) -> Iterator[Any]:
        pad = self.inner.vocabs["tgt"][DefaultTokens.PAD]
        for number, (batch, bucket) in enumerate(self.inner):
            if number:
                self.clock.between()
            self.clock.saw(int(batch["tgt"][:, 1:, 0].ne(pad).sum()))
            yield batch, bucket


class OpenNMT(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.pieces = Pieces()
        self.engines: dict[tuple[str, str], InferenceEnginePY] = {}
        self.trainer: Any = None

    def learn(self, model: str, threads: int, clock: Clock) -> None:
        torch.set_num_threads(threads)
        single = onmt.train_single
        data, trainer = single.build_dynamic_dataset_iter, single.build_trainer

        def watched(*args: Any, **more: Any) -> Any:
            found = data(*args, **more)
            return Batches(found, clock) if more.get("task") == CorpusTask.TRAIN else found

        def kept(*args: Any, **more: Any) -> Any:
            self.trainer = trainer(*args, **more)
            clock.more["parameters"] = sum(p.numel() for p in self.trainer.model.parameters())
            return self.trainer

        single.build_dynamic_dataset_iter, single.build_trainer = watched, kept
        options = onmt_options.options(model, places.SCRATCH / f"onmt-{model}-{os.getpid()}")
        parser = onmt.bin.train._get_parser()
        onmt.bin.train.train(parser.parse_args(["-config", str(options)]))

    def do_decode(
        self,
        model: str,
        how: str,
        sentences: int,
        threads: int = 2,
        split: str = places.TEST,
        live: bool = False,
    ) -> Command:
        """`live`: with the weights as they are in the training that is going on."""
        torch.set_num_threads(threads)
        lines = places.lines(split, places.SOURCE, sentences)
        engine = self._of_training(how) if live else self._engine(model, how)
        begun = time.perf_counter()
        rows = [" ".join(row) for row in self.pieces.cut(lines)]
        _, found = engine.infer_list(rows)
        outputs = [self.pieces.join(best[0].split()) for best in found]
        return {"seconds": time.perf_counter() - begun, "outputs": outputs}

    def _engine(self, model: str, how: str) -> InferenceEnginePY:
        if (model, how) not in self.engines:
            self.engines[model, how] = engine(places.checkpoint(model), how)
        return self.engines[model, how]

    def _of_training(self, how: str) -> InferenceEnginePY:
        path = self._saved()
        try:
            return engine(path, how)
        finally:
            path.unlink()

    def _saved(self) -> Path:
        path, _ = self.trainer.model_saver._save(self.trainer.optim.training_step, self.trainer.model)
        return Path(path)

    def do_keep(self, model: str) -> Command:
        """Lay the weights that are being trained down as the ones everybody decodes with."""
        final = places.checkpoint(model)
        final.parent.mkdir(parents=True, exist_ok=True)
        self._saved().replace(final)
        return {"kept": str(final)}


def engine(checkpoint: Path, how: str) -> InferenceEnginePY:
    """What `onmt_translate` makes before it reads its first line."""
    opt = onmt.bin.translate._get_parser().parse_args(
        ["-model", str(checkpoint), "-src", "-", "-output", os.devnull, "-gpu", "-1", "-batch_type", "sents"]
        + ["-max_length", str(sizes.LONGEST), "-max_length_ratio", "0"]
        + ["-length_penalty", "wu", "-alpha", "1", *SEARCH[how]]
    )
    ArgumentParser.validate_translate_opts(opt)
    ArgumentParser._get_all_transform_translate(opt)
    ArgumentParser._validate_transforms_opts(opt)
    ArgumentParser.validate_translate_opts_dynamic(opt)
    return InferenceEnginePY(opt)


if __name__ == "__main__":
    OpenNMT().serve()
