"""CTranslate2 with OpenNMT-py's weights of model T; it lives in OpenNMT-py's environment."""

from __future__ import annotations

import argparse
import time

import ctranslate2
import places
import sizes
import torch
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
            folder = places.for_ctranslate2(model, precision)
            made, given = folder / "model.bin", places.checkpoint(model)
            if not made.is_file() or made.stat().st_mtime < given.stat().st_mtime:
                # the options beside the weights
                torch.serialization.add_safe_globals([argparse.Namespace, set])
                converter = ctranslate2.converters.OpenNMTPyConverter(str(given))
                kind = None if precision == "float32" else precision
                converter.convert(str(folder), quantization=kind, force=True)
            self.opened[key] = ctranslate2.Translator(
                str(folder),
                device="cpu",
                compute_type=precision,
                inter_threads=workers,
                intra_threads=threads,
            )
        return self.opened[key]


if __name__ == "__main__":
    CTranslate2().serve()
