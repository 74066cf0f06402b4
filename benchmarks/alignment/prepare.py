"""Write training text for alignment models: English-French Tatoeba and Multi30k, tokenized like the Hansards gold.

    python benchmarks/alignment/prepare.py        # writes runs:alignment/{train,valid}.tsv

The gold's sentences are twice as long as Tatoeba's, so half of the pairs are joined, two or three per line: a model
that has only seen ten words loses its place after them. The gold spells out every French article and elided word ("de
le ministre", "ce ne est pas"), and separates words, hyphens and punctuation; so does this text. No sentence of the gold
itself is used.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

from heedful.data.paths import data_folder, runs_folder

ROOT = Path(__file__).parents[2]
DATA = data_folder()
OUT = runs_folder() / "alignment"
ELIDED = {"l": "le", "d": "de", "qu": "que", "n": "ne", "s": "se", "c": "ce", "j": "je", "m": "me", "t": "te"}
CONTRACTED = {"du": "de le", "au": "à le", "des": "de les", "aux": "à les"}
HELD_OUT = 150  # one pair in this many is for validation


def tokenize(text: str) -> str:
    """Separate words, numbers and punctuation, and lower-case them.

    >>> tokenize("Let's go, Mr. Smith!")
    "let 's go , mr. smith !"
    """
    text = text.lower().replace("’", "'").replace("\u202f", " ").replace("\u00a0", " ")
    text = re.sub(r"\b(mr|mrs|dr|ms|st)\.", r"\1•", text)
    text = re.sub(r"([^\w\s'•])", r" \1 ", text)
    return " ".join(text.replace("•", ".").replace("'s ", " 's ").split())


def tokenize_english(text: str) -> str:
    text = re.sub(r"\bcan't\b|\bcannot\b", "can not", text.lower().replace("’", "'"))
    text = re.sub(r"\bwon't\b", "will not", text)
    text = re.sub(r"(\w+)n't\b", r"\1 not", text)
    text = re.sub(r"'(re|ve|ll|d|m)\b", r" '\1", text)
    return tokenize(text)


def tokenize_french(text: str) -> str:
    """
    >>> tokenize_french("C'est l'ami du ministre, n'est-ce pas ?")
    'ce est le ami de le ministre , ne est - ce pas ?'
    """
    text = text.lower().replace("’", "'")
    text = re.sub(r"\b(qu|[ldnscjmt])'", lambda match: ELIDED[match.group(1)] + " ", text)
    text = re.sub(r"\b(du|au|des|aux)\b", lambda match: CONTRACTED[match.group(1)], text)
    return tokenize(text)


def read_pairs() -> Iterator[tuple[str, str]]:
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


def join_pairs(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Shuffle; a third of the lines hold two or three pairs, which is about half of the pairs."""
    rng = Random(1)
    rng.shuffle(pairs)
    first = 0
    while first < len(pairs):
        count = rng.choice((1, 1, 1, 1, 2, 3))
        sources, targets = zip(*pairs[first : first + count], strict=True)
        yield " ".join(sources), " ".join(targets)
        first += count


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    pairs = [(tokenize_english(source), tokenize_french(target)) for source, target in read_pairs()]
    valid, train = pairs[::HELD_OUT], [pair for n, pair in enumerate(pairs) if n % HELD_OUT]
    for split, examples in {"valid": valid, "train": join_pairs(train)}.items():
        lines = "".join(f"{source}\t{target}\n" for source, target in examples)
        (OUT / f"{split}.tsv").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
