"""Worker for CTranslate2 with OpenNMT-py's weights of model T; runs in OpenNMT-py's environment.

Only the process that converts the weights imports torch, so that no other threads spin next to CTranslate2's.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import ctranslate2
import paths
import sizes
from protocol import Message, Worker, peak_rss_mb
from subwords import SubwordTokenizer


class CTranslate2(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = SubwordTokenizer()
        self.loaded: dict[tuple[str, str, int, int], ctranslate2.Translator] = {}

    def do_decode(
        self,
        model: str,
        method: str,
        sentences: int,
        threads: int = 1,
        workers: int = 1,
        precision: str = "int8",
        split: str = paths.TEST,
    ) -> Message:
        """Decode with `workers` that share the batches, each with `threads`."""
        translator = self._translator(model, precision, threads, workers)
        lines = paths.read_lines(split, paths.SOURCE, sentences)
        options = {"beam_size": 5 if method == "beam5" else 1, "max_decoding_length": sizes.MAX_LENGTH}
        started = time.perf_counter()
        if method == "single":
            results = [translator.translate_batch(self.tokenizer.split([line]), **options)[0] for line in lines]
        else:
            rows = self.tokenizer.split(lines)
            results = translator.translate_batch(rows, max_batch_size=sizes.DECODING_BATCH, **options)
        outputs = [self.tokenizer.join(best.hypotheses[0]) for best in results]
        return {"seconds": time.perf_counter() - started, "outputs": outputs, "peak_rss_mb": peak_rss_mb()}

    def _translator(self, model: str, precision: str, threads: int, workers: int) -> ctranslate2.Translator:
        key = (model, precision, threads, workers)
        if key not in self.loaded:
            self.loaded.clear()  # threads of another translator would spin next to it
            folder = paths.ctranslate2_folder(model, precision)
            model_file, checkpoint = folder / "model.bin", paths.checkpoint(model)
            if not model_file.is_file() or model_file.stat().st_mtime < checkpoint.stat().st_mtime:
                command = [sys.executable, __file__, str(checkpoint), str(folder), precision]
                subprocess.run(command, check=True, stdout=sys.stderr)
            self.loaded[key] = ctranslate2.Translator(
                str(folder),
                device="cpu",
                compute_type=precision,
                inter_threads=workers,
                intra_threads=threads,
            )
        return self.loaded[key]


def convert(checkpoint: Path, folder: Path, precision: str) -> None:
    import argparse

    import torch

    torch.serialization.add_safe_globals([argparse.Namespace, set])  # the file contains options too
    quantization = None if precision == "float32" else precision
    converter = ctranslate2.converters.OpenNMTPyConverter(str(checkpoint))
    converter.convert(str(folder), quantization=quantization, force=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    else:
        CTranslate2().serve()
