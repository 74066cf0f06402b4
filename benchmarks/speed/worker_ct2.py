"""CTranslate2 with OpenNMT-py's weights of model T; it lives in OpenNMT-py's environment.

Only the process that converts the weights imports torch: nobody else's threads shall wait beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import ctranslate2
import places
import sizes
from pieces import Pieces
from protocol import Command, Worker


class CTranslate2(Worker):
    def __init__(self) -> None:
        super().__init__()
        self.pieces = Pieces()
        self.opened: dict[tuple[str, str, int, int], ctranslate2.Translator] = {}

    def do_decode(
        self,
        model: str,
        how: str,
        sentences: int,
        threads: int = 1,
        workers: int = 1,
        precision: str = "int8",
        split: str = places.TEST,
    ) -> Command:
        """`threads` for each of `workers` that share the batches."""
        translator = self._translator(model, precision, threads, workers)
        lines = places.lines(split, places.SOURCE, sentences)
        more = {"beam_size": 5 if how == "beam5" else 1, "max_decoding_length": sizes.LONGEST}
        begun = time.perf_counter()
        if how == "single":
            found = [translator.translate_batch(self.pieces.cut([line]), **more)[0] for line in lines]
        else:
            rows = self.pieces.cut(lines)
            found = translator.translate_batch(rows, max_batch_size=sizes.BATCH, **more)
        outputs = [self.pieces.join(best.hypotheses[0]) for best in found]
        return {"seconds": time.perf_counter() - begun, "outputs": outputs}

    def _translator(self, model: str, precision: str, threads: int, workers: int) -> ctranslate2.Translator:
        key = (model, precision, threads, workers)
        if key not in self.opened:
            self.opened.clear()  # threads of another one would spin beside it
            folder = places.for_ctranslate2(model, precision)
            made, given = folder / "model.bin", places.checkpoint(model)
            if not made.is_file() or made.stat().st_mtime < given.stat().st_mtime:
                call = [sys.executable, __file__, str(given), str(folder), precision]
                subprocess.run(call, check=True, stdout=sys.stderr)
            self.opened[key] = ctranslate2.Translator(
                str(folder),
                device="cpu",
                compute_type=precision,
                inter_threads=workers,
                intra_threads=threads,
            )
        return self.opened[key]


def convert(given: Path, folder: Path, precision: str) -> None:
    import argparse

    import torch

    torch.serialization.add_safe_globals([argparse.Namespace, set])  # the options beside the weights
    kind = None if precision == "float32" else precision
    converter = ctranslate2.converters.OpenNMTPyConverter(str(given))
    converter.convert(str(folder), quantization=kind, force=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        convert(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    else:
        CTranslate2().serve()
