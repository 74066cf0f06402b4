"""The phrases world: a synchronous phrase grammar over English, French and Vietnamese, with gold word alignments.

Any two of the languages, in either direction. Everything is lower case; words are separated by spaces.
Elided French words are words of their own ("l' homme", "qu' il"), so are "-là" and the English "'s"; a
Vietnamese word is a syllable.

The target is a function of the source, and so is the alignment, because every sentence of every language is
unambiguous. Each language expresses everything the others need: Vietnamese marks the plural (những), the past (đã)
and the future (sẽ) with words; French distinguishes "this" from "that" (ce chat, ce chat -là); "l'" is him or her
only where the participle tells which ("il l' a vue"). His, her, its and their always refer to the subject ("của
mình"), so the subject tells which. Structures are unambiguous too: clauses are separated by conjunctions of their
own, "and" inside a clause joins noun phrases only, and a relative clause precedes the main verb or ends its clause,
and contains no other.

Alignments contain sure links only. A content word is linked to every word of the same meaning: "saw" to "a" and
"vu", "attendre" to "wait" and "for", a noun to its Vietnamese classifier too. "does" and "not" are both
linked to both "ne" and "pas". A function word without a counterpart has no link: the singular "the" and
"is" in Vietnamese, the "de" of "avoir besoin de", the article of "le cheval du roi" (the king 's horse).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from itertools import islice, permutations
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from heedful.atomic_write import atomic_write
from heedful.data.worlds.disk import check_folder, check_int, split_sizes, write_readme
from heedful.data.worlds.phrases.lexicon import LANGUAGES
from heedful.data.worlds.phrases.sentences import sentences
from heedful.errors import WorldError, nearest

__all__ = ["DIRECTIONS", "LANGUAGES", "Pair", "draw_phrases", "draw_splits", "write"]

DIRECTIONS = tuple(f"{source}-{target}" for source, target in permutations(LANGUAGES, 2))
MIN_WORDS, MAX_WORDS = 3, 60
MAX_REPEATS = 10_000  # after this many repeated sentences in a row, all possible ones are taken to be drawn

ABOUT = """
Sentence pairs of a synchronous phrase grammar, {languages}; the target is a function of the source, so a
perfect translator gets all of them exactly right.

- `train`, `valid`, `test` ({sizes} pairs) `.{source}` and `.{target}`: line by line the same sentence, its
  words separated by spaces (elided French words are words of their own, Vietnamese words are syllables)
- `train.align`, `valid.align`, `test.align`: line by line the gold word alignment, `0-0 1-2` (source-target,
  counted from 0), sure links only
- a source sentence of `valid` or `test` occurs once, and in no other split
"""


class Pair(NamedTuple):
    """A sentence, its translation and the gold word alignment: (source, target) from 0, sorted."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: tuple[tuple[int, int], ...]


def draw_phrases(
    n: int, seed: int = 1, languages: str = "en-fr", min_words: int = 3, max_words: int = 14
) -> Iterator[Pair]:
    """Draw `n` pairs, one by one; with the same seed, a larger `n` only adds pairs at the end.

    All source lengths from `min_words` to `max_words` are equally likely. Short sentences may occur more than
    once.

    >>> for pair in draw_phrases(2, seed=3, max_words=8):
    ...     print(*pair.source, "|", *pair.target)
    ...     print(*(f"{i}-{j}" for i, j in pair.links))
    he returned from our offices | il est revenu de nos bureaux
    0-0 1-1 1-2 2-3 3-4 4-5
    the duck saw the brother 's books | le canard a vu les livres du frère
    0-0 1-1 2-2 2-3 3-6 4-7 5-4 5-6 6-5
    """
    check_int("n", n, 1)
    return islice(_stream(seed, languages, min_words, max_words), n)


def _stream(seed: int, languages: str, min_words: int, max_words: int) -> Iterator[Pair]:
    """Return pairs without end; arguments are checked at the call, not when the first pair is drawn."""
    check_int("seed", seed, 0)
    check_int("min_words", min_words, MIN_WORDS, MAX_WORDS)
    check_int("max_words", max_words, min_words, MAX_WORDS)
    if languages not in DIRECTIONS:
        raise WorldError(f'no such languages: "{languages}"; {nearest(str(languages), DIRECTIONS)}')
    source, target = languages.split("-")
    uniform = Random(f"phrases {languages} {min_words} {max_words} {seed}").random
    lengths = max_words - min_words + 1

    def pairs() -> Iterator[Pair]:
        draw = sentences(source, target).sentence
        while True:
            yield Pair._make(draw(min_words + int(uniform() * lengths), uniform))

    return pairs()


def draw_splits(
    sizes: Mapping[str, int],
    seed: int = 1,
    *,
    languages: str = "en-fr",
    min_words: int = 3,
    max_words: int = 14,
) -> dict[str, list[Pair]]:
    """Return the pairs of each split; no source sentence is in two splits, and only "train" repeats any."""
    stream = _stream(seed, languages, min_words, max_words)
    by_name = {name: list(pairs) for name, pairs in _divide(sizes, stream)}
    return {name: by_name[name] for name in sizes}


def _divide(sizes: Mapping[str, int], stream: Iterator[Pair]) -> Iterator[tuple[str, Iterator[Pair]]]:
    """Yield each split's pairs, to be consumed before the next; "train" is last, so that it avoids the others."""
    held_out: set[tuple[str, ...]] = set()

    def take(name: str) -> Iterator[Pair]:
        remaining, repeats = sizes[name], 0
        while remaining:
            pair = next(stream)
            if pair.source in held_out:
                repeats += 1
                if repeats == MAX_REPEATS:
                    raise WorldError(
                        f"too few sentences of these lengths for {name}={sizes[name]}: there are about "
                        f"{len(held_out)} different ones; raise max_words to allow longer ones, or hold out fewer"
                    )
                continue
            remaining, repeats = remaining - 1, 0
            if name != "train":
                held_out.add(pair.source)
            yield pair

    for name in sorted(sizes, key=lambda name: (name == "train", name)):
        check_int(name, sizes[name], 0)
        yield name, take(name)


def write(
    out: Path,
    n: int,
    seed: int = 1,
    *,
    languages: str = "en-fr",
    min_words: int = 3,
    max_words: int = 14,
    valid: int | None = None,
    test: int | None = None,
) -> dict[str, int]:
    """Write `n` pairs in total, by default a tenth of them (at most 1000) for `valid` and for `test` each.

    Writes parallel files and alignments in Pharaoh format; the README.md comes last.
    """
    sizes = split_sizes(n, valid, test)
    stream = _stream(seed, languages, min_words, max_words)
    check_folder(out, "phrases")
    source, target = languages.split("-")
    for name, pairs in _divide(sizes, stream):
        _write_split(out, name, (source, target), pairs)
    options: dict[str, Any] = {"n": n, "seed": seed, "languages": languages}
    options |= {"min_words": min_words, "max_words": max_words, "valid": valid, "test": test}
    counts = " / ".join(map(str, sizes.values()))
    about = ABOUT.format(languages=languages, sizes=counts, source=source, target=target)
    write_readme(out, "phrases", options, about)
    return sizes


def _write_split(out: Path, name: str, languages: tuple[str, str], pairs: Iterable[Pair]) -> None:
    """Write the three files of a split pair by pair, in constant memory."""
    with ExitStack() as stack:
        files = [
            stack.enter_context(
                stack.enter_context(atomic_write(out / f"{name}.{ending}", WorldError, parents=True)).open(
                    "w", encoding="utf-8", newline="\n"
                )
            )
            for ending in (*languages, "align")
        ]
        for pair in pairs:
            files[0].write(" ".join(pair.source) + "\n")
            files[1].write(" ".join(pair.target) + "\n")
            files[2].write(" ".join(f"{i}-{j}" for i, j in pair.links) + "\n")
