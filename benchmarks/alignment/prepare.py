"""Text to learn alignment from: Tatoeba and Multi30k, English-French, written as the Hansards gold is.

    python benchmarks/alignment/prepare.py        # writes build/alignment/{train,valid}.tsv

The gold's sentences are twice as long as Tatoeba's, so half of the pairs are joined, two or three to a line:
a model that has only seen ten words loses its place after them. In the gold every French article and elided
word is spelt out ("de le ministre", "ce ne est pas"), and words, hyphens and marks stand apart: so they do
here. Nothing of the gold's own sentences is used.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("HEEDFUL_DATA", ROOT.parent / "shared" / "data"))
OUT = ROOT / "build" / "alignment"
ELIDED = {"l": "le", "d": "de", "qu": "que", "n": "ne", "s": "se", "c": "ce", "j": "je", "m": "me", "t": "te"}
JOINED = {"du": "de le", "au": "à le", "des": "de les", "aux": "à les"}
HELD_OUT = 150  # every so many-th pair


def tokens(text: str) -> str:
    """Words, numbers and marks apart, in small letters.

    >>> tokens("Let's go, Mr. Smith!")
    "let 's go , mr. smith !"
    """
    text = text.lower().replace("’", "'").replace("\u202f", " ").replace("\u00a0", " ")
    text = re.sub(r"\b(mr|mrs|dr|ms|st)\.", r"\1•", text)
    text = re.sub(r"([^\w\s'•])", r" \1 ", text)
    return " ".join(text.replace("•", ".").replace("'s ", " 's ").split())


def english(text: str) -> str:
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text.lower().replace("’", "'"))
    text = re.sub(r"\bwon't\b", "will not", text)
    text = re.sub(r"(\w+)n't\b", r"\1 not", text)
    text = re.sub(r"'(re|ve|ll|d|m)\b", r" '\1", text)
    return tokens(text)


def french(text: str) -> str:
    """
    >>> french("C'est l'ami du ministre, n'est-ce pas ?")
    'ce est le ami de le ministre , ne est - ce pas ?'
    """
    text = text.lower().replace("’", "'")
    text = re.sub(r"\b(qu|[ldnscjmt])'", lambda found: ELIDED[found.group(1)] + " ", text)
    text = re.sub(r"\b(du|au|des|aux)\b", lambda found: JOINED[found.group(1)], text)
    return tokens(text)


def pairs() -> Iterator[tuple[str, str]]:
    with gzip.open(DATA / "tatoeba_fra_eng" / "eng-fra.tsv.gz", "rt", encoding="utf-8") as file:
        for line in file:
            source, target = line.rstrip("\n").split("\t")[:2]
            yield source, target
    folder = DATA / "multi30k"
    with (
        gzip.open(folder / "train.en.gz", "rt", encoding="utf-8") as left,
        gzip.open(folder / "train.fr.gz", "rt", encoding="utf-8") as right,
    ):
        for source, target in zip(left, right, strict=True):
            yield source.strip(), target.strip()


def joined(every: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """In any order; a third of the lines are two or three pairs, which is about half of the pairs."""
    rng = Random(1)
    rng.shuffle(every)
    at = 0
    while at < len(every):
        count = rng.choice((1, 1, 1, 1, 2, 3))
        sources, targets = zip(*every[at : at + count], strict=True)
        yield " ".join(sources), " ".join(targets)
        at += count


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    every = [(english(source), french(target)) for source, target in pairs()]
    kept = {"valid": every[::HELD_OUT], "train": [p for n, p in enumerate(every) if n % HELD_OUT]}
    for split, some in {"valid": kept["valid"], "train": joined(kept["train"])}.items():
        lines = "".join(f"{source}\t{target}\n" for source, target in some)
        (OUT / f"{split}.tsv").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
