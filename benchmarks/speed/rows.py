"""The rows of RESULTS.md: what is measured, against which system, and the speed-up we aim for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NAMES = {
    "heedful": "heedful",
    "joey": "JoeyNMT",
    "onmt": "OpenNMT-py",
    "ct2": "CTranslate2 int8",
    "ct2f": "CTranslate2 float32",
    "int8": "heedful --int8",
    "plain": "not traced",
    "plain8": "not traced",
}
FLOAT32_PEERS = ("ct2f",)  # heedful is compared with them in float32 only
USES_INT8 = {"heedful": False, "plain": False, "int8": True, "plain8": True}  # the systems that are heedful


@dataclass(frozen=True)
class Row:
    """One measurement. `targets`: the speed-up we aim for over each peer; None if it is only reported."""

    name: str
    title: str
    kind: Literal["train", "decode", "traced", "startup", "memory", "bleu"]
    model: str
    targets: Mapping[str, float | None]
    method: str = ""  # greedy, beam5, single or traced
    sentences: int = 1000
    own_model: bool = False  # heedful decodes with its own model (own.toml) instead of the same weights
    explanation: str = ""  # what the profile shows, where a target is missed
    free_threads: bool = False  # JoeyNMT and OpenNMT-py, too, use their best number of threads

    @property
    def systems(self) -> tuple[str, ...]:
        """Return the systems in the order of a round; heedful is last."""
        if self.kind == "traced":
            return ("plain", "heedful", "plain8", "int8")
        variants = ("heedful", "int8") if self.kind in ("decode", "memory") else ("heedful",)
        return (*self.targets, *variants)

    @property
    def pairs(self) -> list[tuple[str, str, float | None]]:
        """Return which variant of heedful is compared with which peer, and the target."""
        if self.kind == "traced":
            return [("heedful", "plain", self.targets["plain"]), ("int8", "plain8", self.targets["plain"])]
        variants = [system for system in self.systems if system not in self.targets]
        counted = variants[-1]  # int8 where it exists; float32 is only reported
        return [
            (variant, peer, target if variant == counted or peer in FLOAT32_PEERS else None)
            for peer, target in self.targets.items()
            for variant in (("heedful",) if peer in FLOAT32_PEERS else variants)
        ]


ROWS = (
    Row("train-R", "training, model R", "train", "R", {"joey": 3.0, "onmt": 2.0}),
    Row("train-T", "training, model T", "train", "T", {"joey": 2.5, "onmt": 2.0}),
    Row("greedy-R", "greedy, batch 64, model R", "decode", "R", {"joey": 15.0, "onmt": 5.0}, "greedy"),
    Row("beam5-R", "beam 5, batch 64, model R", "decode", "R", {"joey": 8.0, "onmt": 4.0}, "beam5"),
    Row(
        "single-R",
        "one sentence at a time, R",
        "decode",
        "R",
        {"joey": 10.0, "onmt": 6.0},
        "single",
        200,
        explanation="A step reads 6.4 MB of int8 weights, and a core here reads about 20 GB/s: 15 steps take 3 ms"
        " whatever is computed. Tried: threads for small products, weights in reading order with prefetch, one call"
        " per sentence (4.7 ms, then 3.1 to 3.5). JoeyNMT takes 24 to 26 ms here, less than half of what we expected",
    ),
    Row(
        "single-R-best",
        "one sentence at a time, R, best number of threads per system",
        "decode",
        "R",
        {"joey": None, "onmt": None},
        "single",
        200,
        free_threads=True,
    ),
    Row("greedy-T", "greedy, batch 64, model T", "decode", "T", {"ct2": 1.4, "ct2f": 1.0, "onmt": None}, "greedy"),
    Row("beam5-T", "beam 5, batch 64, model T", "decode", "T", {"ct2": 2.0, "ct2f": 1.0, "onmt": None}, "beam5"),
    Row("single-T", "one sentence at a time, T", "decode", "T", {"ct2": 1.7, "ct2f": 1.0, "onmt": None}, "single", 200),
    Row("own-greedy", "greedy, batch 64, our own model", "decode", "T", {"ct2": 1.5}, "greedy", own_model=True),
    Row("own-beam5", "beam 5, batch 64, our own model", "decode", "T", {"ct2": 1.2}, "beam5", own_model=True),
    Row("own-single", "one sentence, our own model", "decode", "T", {"ct2": 1.0}, "single", 200, own_model=True),
    Row("traced-R", "greedy with all weights recorded, R", "traced", "R", {"plain": 0.9}, "traced"),
    Row(
        "traced-T",
        "greedy with all weights recorded, T",
        "traced",
        "T",
        {"plain": 0.9},
        "traced",
        explanation="With int8, 14 % of the time goes into sorting the weights of nine sites by sentence, under"
        " Python's lock while two threads search; in float32 nothing is lost. Tried: all sentences of a batch at once"
        " (0.6, then 0.7 to 0.9), every site's weights from the kernel, buffers that are not zeroed",
    ),
    Row(
        "memory-T",
        "peak memory, 10,000 lines, greedy, T (ratio: the peer's memory to ours)",
        "memory",
        "T",
        {"ct2": 1 / 1.5, "ct2f": 1 / 1.5},
        "greedy",
        10_000,
    ),
    Row(
        "startup",
        "from the command to its first output",
        "startup",
        "R",
        {"onmt": 5.0},
    ),
    Row("bleu30", "time to validation BLEU 30", "bleu", "any", {"onmt": 4.0}),
)
BY_NAME = {row.name: row for row in ROWS}
