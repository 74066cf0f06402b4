"""Write the phrases that people chose as the reason of a tweet's sentiment: extra training texts for `sentiment`.

    python benchmarks/figures/tweet_phrases.py        # runs:figures/tweets/phrases.tsv

The columns are those of the tweets: id, sentiment, start, end, text. A phrase is extended to whole words. Phrases of
neutral tweets are nearly the whole tweet and are left out, as are phrases that are the whole tweet. Only training
tweets are read.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from run import MODELS

from heedful.data.paths import locate

SOURCE = "data:tweet_sentiment_rationales/train.tsv.gz"


def whole_words(text: str, start: int, end: int) -> str:
    """Return the words that a span of characters touches."""
    while start > 0 and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return " ".join(text[start:end].split())


def read_phrases() -> Iterator[tuple[str, str, str]]:
    """Yield id, sentiment and phrase."""
    with gzip.open(locate(SOURCE, MODELS), "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            name, sentiment, start, end, text = line.rstrip("\n").split("\t")
            phrase = whole_words(text, int(start), int(end)).strip()
            if sentiment != "neutral" and phrase and phrase != " ".join(text.split()):
                yield name, sentiment, phrase


def main() -> None:
    folder = MODELS / "tweets"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name}\t{sentiment}\t0\t{len(phrase)}\t{phrase}\n" for name, sentiment, phrase in read_phrases()]
    (folder / "phrases.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines):,} phrases")


if __name__ == "__main__":
    main()
