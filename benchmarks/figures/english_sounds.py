"""Write the training words of `english-sounds`: SIGMORPHON 2021's English training words and more from WikiPron.

    python benchmarks/figures/english_sounds.py        # runs:figures/sounds/train.tsv: word, phones

Words of SIGMORPHON's validation and test data are left out in any letter case. WikiPron is newer and writes phones
differently: length marks are removed, and pronunciations that are British (by their phones, or because they have no
r sound where the spelling has an r) are left out. Of several pronunciations the first is taken.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator

from run import MODELS

from heedful.data.paths import locate

LANGUAGE = "eng_us"
BRITISH = re.compile(r"ɒ|ɜː|ɛː|ə ʊ|ɛ ə|[^aeɔ] ɪ ə ɹ|^ɪ ə ɹ|ʊ ə ɹ")
R_SOUNDS = set("ɹɚɝ")
MIN_PHONE_COUNT = 20  # in SIGMORPHON's training data


def read_rows(name: str) -> Iterator[list[str]]:
    with gzip.open(locate(f"data:{name}.tsv.gz", MODELS), "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


def read_sigmorphon(split: str) -> dict[str, str]:
    rows = read_rows(f"sigmorphon2021_g2p/high.{split}")
    return {word: phones for language, word, phones in rows if language == LANGUAGE}


def normalize(word: str, phones: str) -> str:
    """Return the phones as SIGMORPHON writes them; nothing for a British pronunciation."""
    if BRITISH.search(phones) or ("r" in word and not R_SOUNDS & set(phones)):
        return ""
    return phones.replace("ː", "").replace("\u032f", "")  # the second marks the weak part of a diphthong


def read_extra(train: dict[str, str], taken: set[str]) -> dict[str, str]:
    """Return WikiPron's words that SIGMORPHON does not have, of the letters and phones of its training data."""
    letters = {letter for word in train for letter in word}
    counts = Counter(phone for phones in train.values() for phone in phones.split())
    extra: dict[str, str] = {}
    for cased, original in read_rows("wikipron/eng_latn_us_broad_filtered"):
        word = cased.lower()
        phones = normalize(word, original)
        known = letters.issuperset(word) and all(counts[phone] >= MIN_PHONE_COUNT for phone in phones.split())
        if phones and known and word not in taken:
            extra.setdefault(word, phones)
    return extra


def main() -> None:
    train, valid, test = (read_sigmorphon(split) for split in ("train", "dev", "test"))
    held_out = {word.lower() for word in (*valid, *test)}
    train = {word: phones for word, phones in train.items() if word.lower() not in held_out}
    extra = read_extra(train, held_out | {word.lower() for word in train})
    folder = MODELS / "sounds"
    folder.mkdir(parents=True, exist_ok=True)
    for name, words in (("train", train | extra), ("extra", extra)):
        lines = [f"{LANGUAGE}\t{word}\t{phones}\n" for word, phones in words.items()]
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"{len(train):,} words of SIGMORPHON, {len(extra):,} more of WikiPron")


if __name__ == "__main__":
    main()
