"""Write the sentences of twenty-one English novels, one per line: training, validation and test data of `novels`.

    python benchmarks/figures/novel_sentences.py      # runs:figures/novels/{train,valid,test}.txt

Six of the novels have line breaks every 70 characters, which are removed; the others have one paragraph per line.
Quotation marks are straight. A sentence of more than 50 words is divided at a punctuation mark. The novels of the
three files differ: a whole book is held out for validation, and another for testing.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from run import MODELS

from heedful.data.paths import locate

SPLITS = {"train": "train", "valid": "dev", "test": "test"}
MAX_WORDS = 50
MAX_WRAPPED = 80  # characters per line of a book with line breaks inside paragraphs
QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "`": "'", "_": None})
BOUNDARY = re.compile(r"""(?<=[.!?])(["')]*)\s+(?=["'(]*[A-Z])""")
ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Esq|Messrs|Capt|Col|Gen|Rev|No|vol)|\b[A-Z])\.$")


def unwrap(lines: Sequence[str]) -> list[str]:
    """Return the paragraphs of a book; a book whose lines are all short becomes one.

    >>> unwrap(["It was a bright", "cold day."])
    ['It was a bright cold day.']
    """
    too_long = sum(len(line) > MAX_WRAPPED for line in lines)
    return [" ".join(lines)] if too_long < len(lines) / 100 else list(lines)


def split_sentences(paragraph: str) -> Iterator[str]:
    """Yield sentences; abbreviations such as "Mr." end none.

    >>> list(split_sentences('"Who is it?" said Mr. Bell. "Nobody." He sat down.'))
    ['"Who is it?" said Mr. Bell.', '"Nobody."', 'He sat down.']
    """
    text = re.sub(r"\s+", " ", paragraph.translate(QUOTES)).strip()
    start = 0
    for boundary in BOUNDARY.finditer(text):
        sentence = text[start : boundary.end(1)]
        if not ABBREVIATION.search(sentence):
            yield sentence
            start = boundary.end()
    if text[start:]:
        yield text[start:]


def divide(sentence: str) -> Iterator[str]:
    """Yield parts of at most `MAX_WORDS` words, the ends of which are punctuation marks where possible."""
    words = sentence.split()
    while len(words) > MAX_WORDS:
        ends = [n for n in range(MAX_WORDS // 2, MAX_WORDS + 1) if words[n - 1][-1] in ",;:-"]
        end = max(ends, key=lambda n: (words[n - 1][-1] in ";:", n), default=MAX_WORDS)
        yield " ".join(words[:end])
        words = words[end:]
    yield " ".join(words)


def read_sentences(split: str) -> Iterator[str]:
    path = locate(f"data:english_novels_pd/{SPLITS[split]}.tsv.gz", MODELS)
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    for _, book in groupby(rows, key=lambda row: row[0]):
        for paragraph in unwrap([text for _, text in book]):
            for sentence in split_sentences(paragraph):
                yield from divide(sentence)


def main() -> None:
    folder = MODELS / "novels"
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        sentences = [sentence for sentence in read_sentences(split) if any(map(str.isalpha, sentence))]
        (folder / f"{split}.txt").write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        print(f"{split}: {len(sentences):,} sentences, {sum(len(s.split()) for s in sentences):,} words")


if __name__ == "__main__":
    main()
