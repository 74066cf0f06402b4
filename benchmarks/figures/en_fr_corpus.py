"""Write the training text of the English-French translator: everyday sentences first, then manuals and laws.

    python benchmarks/figures/en_fr_corpus.py        # runs:figures/en-fr/{train,everyday,valid,test,tico}.tsv

Sentences whose English side belongs to the validation or test data of `tatoeba-en-fr.toml` (by its hash) are in no part
of the training text, nor are the lines of `everyday.txt`, compared by their letters and digits. Our own phrasebook
(`phrasebook.py`) is there several times. Everyday sentences are there a second time as people type them: without
capitals, full stop or apostrophes, in capitals, with typing errors, two on a line. Words and their translations come
from a lexicon (IBM model 1 in both directions) of the same sentences.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random

from phrasebook import read_phrasebook, read_phrases
from run import MODELS

from heedful.data.lines import assign_split

Pair = tuple[str, str]
CODE = re.compile(r"[_{}<>=`\\/|#@$*+^~\[\]]|\(\)|::|https?:|\w\.\w|--")
WORD = re.compile(r"[^\W\d_]+(?:['’](?=\s|$))?|[^\W\d_]+['’]")
MAX_WORDS = {"gnome": 40, "python": 40, "django": 40, "godot": 40}
MANUALS, LAWS, MAX_LAW_WORDS = 30_000, 9_000, 35
PHRASES, PHRASEBOOK = 3, 1  # copies of each phrase, of each phrase, word and filled pattern
MIN_COUNT, MIN_PROBABILITY = 12, 0.45
EVERYDAY_LINES = ("everyday", "everyday_2")
ROUNDS = 5  # of expectation maximization


def read_rows(name: str) -> Iterator[list[str]]:
    with gzip.open(Path(os.environ["HEEDFUL_DATA"], name), "rt", encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


def split_of(english: str) -> str:
    return assign_split(english, 0.05, 0.05, 0)


def read_everyday() -> list[Pair]:
    return [(english, french) for english, french, *_ in read_rows("tatoeba_fra_eng_2019/eng-fra.tsv.gz")]


def read_manuals(rng: Random) -> list[Pair]:
    pairs = []
    for source, english, french in read_rows("docs_po_parallel/en-fr.tsv.gz"):
        words = len(english.split())
        if words <= MAX_WORDS[source] and not CODE.search(english) and not CODE.search(french):
            pairs.append((english, french))
    return rng.sample(pairs, min(MANUALS, len(pairs)))


def read_laws(rng: Random) -> list[Pair]:
    rows = [(row[1], row[2]) for row in read_rows("canada_laws_enfr/sentences.tsv.gz")]
    rows = [pair for pair in rows if len(pair[0].split()) <= MAX_LAW_WORDS]
    return rng.sample(rows, min(LAWS, len(rows)))


def words_of(text: str) -> list[str]:
    return [word.replace("’", "'") for word in WORD.findall(text.lower())]


def translation_table(pairs: Sequence[tuple[list[str], list[str]]]) -> dict[str, dict[str, float]]:
    """Return p(target word | source word) by IBM model 1 (Brown 1993)."""
    table: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(ROUNDS):
        counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            for word in target:
                weights = [table[other][word] for other in source]
                total = sum(weights)
                for other, weight in zip(source, weights, strict=True):
                    counts[other][word] += weight / total
        table = {
            word: defaultdict(float, {other: n / sum(row.values()) for other, n in row.items()})
            for word, row in counts.items()
        }
    return table


def make_lexicon(pairs: Sequence[Pair]) -> list[Pair]:
    """Return frequent words with their one clear translation."""
    words = [(words_of(english), words_of(french)) for english, french in pairs]
    words = [(source, target) for source, target in words if source and target and len(source) <= 12]
    frequency = Counter(word for source, _ in words for word in source)
    forward = translation_table(words)
    backward = translation_table([(target, source) for source, target in words])
    lexicon = []
    for word, count in frequency.items():
        if count < MIN_COUNT or len(word) < 3 or "'" in word:
            continue
        best = max(forward[word], key=forward[word].__getitem__)
        clear = forward[word][best] >= MIN_PROBABILITY and backward[best][word] >= MIN_PROBABILITY
        if clear and "'" not in best and len(best) > 2:
            lexicon += [(word, best), (word.capitalize(), best.capitalize())]
    return lexicon


def with_typo(text: str, rng: Random) -> str:
    """Return the text with two letters exchanged, or one left out or doubled, in one of its longer words."""
    words = text.split(" ")
    long = [i for i, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if not long:
        return text
    i = rng.choice(long)
    word, at = words[i], rng.randrange(1, len(words[i]) - 1)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    words[i] = rng.choice((swapped, swapped, word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:]))
    return " ".join(words)


def typed_variants(pairs: Sequence[Pair], rng: Random) -> Iterator[Pair]:
    """Yield sentences as people type them."""
    short = [pair for pair in pairs if len(pair[0].split()) <= 8 and pair[0].endswith((".", "!", "?"))]
    for english, french in pairs:
        draw = rng.random()
        both_stop = english.endswith(".") and french.endswith(".")
        if draw < 0.08:
            yield english.lower().rstrip(".!?").replace("'", "").strip(), french
        elif draw < 0.14:
            yield english.lower(), french
        elif draw < 0.18 and both_stop:
            yield english[:-1].lower(), french[:-1]
        elif draw < 0.22:
            yield with_typo(english, rng), french
        elif draw < 0.25:
            yield with_typo(with_typo(english, rng), rng), french
        elif draw < 0.30 and both_stop:
            yield english[:-1], french[:-1]
        elif draw < 0.36:
            other = rng.choice(short)
            if len(english.split()) <= 10 and english.endswith((".", "!", "?")):
                yield f"{english} {other[0]}", f"{french} {other[1]}"


def letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def read_first() -> list[Pair]:
    """Return the pairs of `tatoeba-en-fr.toml`."""
    return [(row[0], row[1]) for row in read_rows("tatoeba_fra_eng/eng-fra.tsv.gz")]


def keep_unseen(parts: Iterable[list[Pair]], held_out: set[str], unseen: set[str]) -> list[Pair]:
    """Return the pairs of all parts without held-out English sides and without the lines in `unseen`, as letters."""
    return [
        (english, french)
        for part in parts
        for english, french in part
        if english not in held_out and "\t" not in english and letters(english) not in unseen
    ]


def mix_everyday(train: list[Pair], rng: Random) -> list[list[Pair]]:
    """Return the parts of the text for the end of the training: mostly everyday sentences and the phrasebook."""
    phrases, phrasebook = read_phrases() * 4, read_phrasebook(rng)
    typed = list(typed_variants(train, rng))
    return [
        rng.sample(train, 110_000),
        [*phrases, *phrasebook, *phrasebook],
        list(typed_variants([*phrases, *phrasebook], rng)),
        rng.sample(typed, 25_000),
        read_manuals(rng)[:5_000],
        read_laws(rng)[:2_500],
    ]


def write_test_data(folder: Path) -> None:
    """Write the test data of `tatoeba-en-fr.toml`, and every tenth line of TICO-19."""
    write(folder / "test.tsv", [pair for pair in read_first() if split_of(pair[0]) == "test"])
    write(folder / "tico.tsv", [(row[1], row[2]) for row in list(read_rows("tico19/en-fr.tsv.gz"))[::10]])


def write(path: Path, pairs: Sequence[Pair]) -> None:
    path.write_text("".join(f"{english}\t{french}\n" for english, french in pairs), encoding="utf-8")
    print(f"{path.name}: {len(pairs):,} pairs, {sum(len(french.split()) for _, french in pairs):,} French words")


def main() -> None:
    rng = Random(1)
    folder = MODELS / "en-fr"
    folder.mkdir(parents=True, exist_ok=True)
    write_test_data(folder)
    everyday = read_everyday()
    train = [pair for pair in everyday if split_of(pair[0]) == "train"]
    lexicon = make_lexicon(train)
    phrases, phrasebook = read_phrases() * PHRASES, read_phrasebook(rng) * PHRASEBOOK
    parts = {
        "everyday": train,
        "phrasebook": [*phrases, *phrasebook],
        "phrasebook as typed": list(typed_variants([*phrases, *phrasebook], rng)),
        "as typed": list(typed_variants(train, rng)),
        "lexicon": lexicon,
        "manuals": read_manuals(rng),
        "laws": read_laws(rng),
    }
    lines = {name: (Path(__file__).parent / f"{name}.txt").read_text().splitlines() for name in EVERYDAY_LINES}
    unseen = {name: {letters(line) for line in part} for name, part in lines.items()}
    held_out = {english for english, _ in [*everyday, *read_first()] if split_of(english) != "train"}
    pairs = keep_unseen(parts.values(), held_out, unseen["everyday"] | unseen["everyday_2"])
    print({name: len(part) for name, part in parts.items()})
    rng.shuffle(pairs)
    write(folder / "train.tsv", pairs)
    rng = Random(7)
    last = keep_unseen(mix_everyday(train, rng), held_out, unseen["everyday"] | unseen["everyday_2"])
    rng.shuffle(last)
    write(folder / "everyday.tsv", last)
    write(folder / "valid.tsv", [pair for pair in everyday if split_of(pair[0]) == "valid"])


if __name__ == "__main__":
    main()
