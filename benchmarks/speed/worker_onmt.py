"""Worker for OpenNMT-py 3.5.1 in its own environment, with its own training loop and inference engine."""

from __future__ import annotations

import os

os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints contain its options
os.environ.setdefault("PYTHONWARNINGS", "ignore")

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onmt.bin.train
import onmt.bin.translate
import onmt.train_single
import onmt_options
import paths
import sizes
import torch
from onmt.constants import CorpusTask, DefaultTokens
from onmt.inference_engine import InferenceEnginePY
from onmt.utils.parse import ArgumentParser
from protocol import Clock, Message, Worker
from subwords import SubwordTokenizer

DECODING = {
    "greedy": ["-beam_size", "1", "-batch_size", str(sizes.DECODING_BATCH)],
    "beam5": ["-beam_size", "5", "-batch_size", str(sizes.DECODING_BATCH)],
    "single": ["-beam_size", "1", "-batch_size", "1"],
}


class CountedBatches:
    """OpenNMT-py's batches; when the next one is requested, the step before has ended."""

    def __init__(self, inner: Any, clock: Clock) -> None:
        self.inner, self.clock = inner, clock

    def __iter__(self) -> Iterator[Any]:
        pad = self.inner.vocabs["tgt"][DefaultTokens.PAD]
        for number, (batch, bucket) in enumerate(self.inner):
            if number:
                self.clock.on_step_end()
            self.clock.count_tokens(int(batch["tgt"][:, 1:, 0].ne(pad).sum()))
            yield batch, bucket


class OpenNMT(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = SubwordTokenizer()
        self.engines: dict[tuple[str, str], InferenceEnginePY] = {}
        self.trainer: Any = None

    def run_training(self, model: str, threads: int, clock: Clock) -> None:
        torch.set_num_threads(threads)
        single = onmt.train_single
        build_data, build_trainer = single.build_dynamic_dataset_iter, single.build_trainer

        def build_counted(*args: Any, **options: Any) -> Any:
            batches = build_data(*args, **options)
            return CountedBatches(batches, clock) if options.get("task") == CorpusTask.TRAIN else batches

        def build_and_keep(*args: Any, **options: Any) -> Any:
            self.trainer = build_trainer(*args, **options)
            clock.extra["parameters"] = sum(p.numel() for p in self.trainer.model.parameters())
            return self.trainer

        single.build_dynamic_dataset_iter, single.build_trainer = build_counted, build_and_keep
        config = onmt_options.write_options(model, paths.SCRATCH / f"onmt-{model}-{os.getpid()}")
        parser = onmt.bin.train._get_parser()
        onmt.bin.train.train(parser.parse_args(["-config", str(config)]))

    def do_decode(
        self,
        model: str,
        method: str,
        sentences: int,
        threads: int = 2,
        split: str = paths.TEST,
        live: bool = False,
    ) -> Message:
        """Decode; `live` uses the current weights of the running training."""
        torch.set_num_threads(threads)
        lines = paths.read_lines(split, paths.SOURCE, sentences)
        engine = self._live_engine(method) if live else self._engine(model, method)
        started = time.perf_counter()
        rows = [" ".join(row) for row in self.tokenizer.split(lines)]
        _, results = engine.infer_list(rows)
        outputs = [self.tokenizer.join(best[0].split()) for best in results]
        return {"seconds": time.perf_counter() - started, "outputs": outputs}

    def _engine(self, model: str, method: str) -> InferenceEnginePY:
        if (model, method) not in self.engines:
            self.engines[model, method] = make_engine(paths.checkpoint(model), method)
        return self.engines[model, method]

    def _live_engine(self, method: str) -> InferenceEnginePY:
        path = self._save()
        try:
            return make_engine(path, method)
        finally:
            path.unlink()

    def _save(self) -> Path:
        path, _ = self.trainer.model_saver._save(self.trainer.optim.training_step, self.trainer.model)
        return Path(path)

    def do_keep(self, model: str) -> Message:
        """Save the current weights as those with which every system decodes."""
        final = paths.checkpoint(model)
        final.parent.mkdir(parents=True, exist_ok=True)
        self._save().replace(final)
        return {"kept": str(final)}


def make_engine(checkpoint: Path, method: str) -> InferenceEnginePY:
    """Return the engine that `onmt_translate` creates before it reads its first line."""
    opt = onmt.bin.translate._get_parser().parse_args(
        ["-model", str(checkpoint), "-src", "-", "-output", os.devnull, "-gpu", "-1", "-batch_type", "sents"]
        + ["-max_length", str(sizes.MAX_LENGTH), "-max_length_ratio", "0"]
        + ["-length_penalty", "wu", "-alpha", "1", *DECODING[method]]
    )
    ArgumentParser.validate_translate_opts(opt)
    ArgumentParser._get_all_transform_translate(opt)
    ArgumentParser._validate_transforms_opts(opt)
    ArgumentParser.validate_translate_opts_dynamic(opt)
    return InferenceEnginePY(opt)


if __name__ == "__main__":
    OpenNMT().serve()
