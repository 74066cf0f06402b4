"""What is measured, against whom, and what we want."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NAMES = {
    "heedful": "heedful",
    "joey": "JoeyNMT",
    "onmt": "OpenNMT-py",
    "ct2": "CTranslate2 int8",
    "int8": "heedful --int8",
    "plain": "not traced",
    "plain8": "not traced",
}
OURS = {"heedful": False, "plain": False, "int8": True, "plain8": True}  # are the matrices in bytes?


@dataclass(frozen=True)
class Row:
    """`peers` says how many times better we want to be than each; None: it only bears witness."""

    name: str
    title: str
    kind: Literal["train", "decode", "traced", "startup", "bleu"]
    model: str
    peers: Mapping[str, float | None]
    how: str = ""
    sentences: int = 1000
    own: bool = False  # do we write with a model of our own (own.toml) rather than with the same weights?
    why: str = ""  # what the profile says, where the row falls short
    best: bool = False  # may JoeyNMT and OpenNMT-py choose their threads? CTranslate2 and we always do

    @property
    def systems(self) -> tuple[str, ...]:
        """Everybody who takes part, in the order of a round: we come last."""
        if self.kind == "traced":
            return ("plain", "heedful", "plain8", "int8")
        return (*self.peers, "heedful", "int8") if self.kind == "decode" else (*self.peers, "heedful")

    @property
    def pairs(self) -> list[tuple[str, str, float | None]]:
        """Who of us is compared with whom, and what we want of it."""
        if self.kind == "traced":
            return [("heedful", "plain", self.peers["plain"]), ("int8", "plain8", self.peers["plain"])]
        ours = [system for system in self.systems if system not in self.peers]
        counts = ours[-1]  # in bytes where there is a choice: floats bear witness
        return [
            (own, peer, wanted if own == counts else None)
            for peer, wanted in self.peers.items()
            for own in ours
        ]


ROWS = (
    Row("train-R", "training, model R", "train", "R", {"joey": 3.0, "onmt": 1.6}),
    Row("train-T", "training, model T", "train", "T", {"joey": 2.5, "onmt": 1.3}),
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
        why="A step reads 6.4 MB of weights in bytes, and a core here reads about 20 GB/s: 15 steps take"
        " 3 ms whatever is computed. Tried: threads for small products, weights in reading order with"
        " prefetch, the whole sentence as one call (4.7 ms, then 3.1 to 3.5). JoeyNMT takes 24 to 26 ms"
        " here, less than half of what we knew of it",
    ),
    Row(
        "single-R-best",
        "one sentence at a time, R, threads of each one's choice",
        "decode",
        "R",
        {"joey": None, "onmt": None},
        "single",
        200,
        best=True,
    ),
    Row("greedy-T", "greedy, batch 64, model T", "decode", "T", {"ct2": 1.0, "onmt": None}, "greedy"),
    Row("beam5-T", "beam 5, batch 64, model T", "decode", "T", {"ct2": 1.0, "onmt": None}, "beam5"),
    Row("single-T", "one sentence at a time, T", "decode", "T", {"ct2": 0.7, "onmt": None}, "single", 200),
    Row("own-greedy", "greedy, batch 64, our own model", "decode", "T", {"ct2": 1.5}, "greedy", own=True),
    Row("own-beam5", "beam 5, batch 64, our own model", "decode", "T", {"ct2": 1.2}, "beam5", own=True),
    Row("own-single", "one sentence, our own model", "decode", "T", {"ct2": 1.0}, "single", 200, own=True),
    Row("traced-R", "greedy with every weight kept, R", "traced", "R", {"plain": 0.9}, "traced"),
    Row(
        "traced-T",
        "greedy with every weight kept, T",
        "traced",
        "T",
        {"plain": 0.9},
        "traced",
        why="In bytes, 14 % of the time goes into putting the weights of nine sites together by sentence,"
        " under Python's lock while two threads search; in floats nothing is lost. Tried: all sentences of a"
        " batch at once (0.6, then 0.7 to 0.9), every site's weights from the kernel, rooms not zeroed",
    ),
    Row(
        "startup",
        "from the command to its first output",
        "startup",
        "R",
        {"onmt": 2.0},
        why="Two thirds are `import torch`, which OpenNMT-py pays as well. Tried: rich imported late, a"
        " lazier garbage collector, everything heavy imported inside the verbs",
    ),
    Row("bleu30", "time to validation BLEU 30", "bleu", "any", {"onmt": 4.0}),
)
BY_NAME = {row.name: row for row in ROWS}
