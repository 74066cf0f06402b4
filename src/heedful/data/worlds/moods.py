"""The moods world: sentences whose sentiment depends only on their sentiment words.

The rule: every sentiment word counts as one vote for its own sentiment, inverted when a negator ("not", "never")
directly precedes it; the majority is the label. With two classes there is never a tie; with three a tie,
and only a tie, is neutral. The gold positions are the sentiment words and their negators.

Everything else is drawn before the label: the length of the sentence, the number of votes, which of them are negated,
and the filler words. So none of it carries information about the label.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from heedful.data.worlds.disk import check_folder, check_int, split_sizes, write_lines, write_readme
from heedful.errors import WorldError

POSITIVE = tuple(
    "good great lovely wonderful charming delightful excellent superb pleasant brilliant splendid fantastic "
    "marvellous admirable fine impressive enjoyable perfect terrific beautiful magnificent graceful "
    "likeable amazing".split()
)
NEGATIVE = tuple(
    "bad poor awful terrible dull boring dreadful horrible nasty clumsy ugly tedious dismal disappointing "
    "lousy annoying tiresome shabby pathetic miserable ghastly unpleasant mediocre appalling".split()
)
NEGATORS = ("not", "never")
LABELS = {
    2: ("negative", "positive"),
    3: ("negative", "neutral", "positive"),
}  # on disk a label is its index here

SUBJECTS = tuple(
    "food film room music story service hotel concert coffee song garden play dinner museum lesson novel "
    "bread market boat bridge painting speech soup train window chair ending stage album kitchen".split()
)
ARTICLES = tuple("the this that our your".split())
VERBS = tuple("was is seemed looked felt proved".split())
LINKS = tuple("and while so then but".split())
SPANS = (  # filler by length, appended to a clause
    tuple("today again there yesterday inside outside upstairs overnight abroad indoors".split()),
    tuple(f"{a} {b}" for a in ("on", "this", "last") for b in "monday tuesday friday sunday saturday".split())
    + ("after lunch", "before noon", "during winter", "at home", "in spring", "by train"),
    tuple(
        f"{a} the {b}"
        for a in ("near", "behind", "in", "opposite", "beside")
        for b in "station harbour library corner village square office park tower school".split()
    ),
    tuple(
        f"{a} the {b} {c}"
        for a in ("near", "behind", "beside")
        for b in "wooden narrow northern round tall yellow".split()
        for c in "gate house street wall church".split()
    ),
)
EVENTS = tuple(  # filler clauses of five words
    f"{a} {b} {c}"
    for a in "we they people someone everybody".split()
    for b in "walked drove moved turned went".split()
    for c in "along the river|past two shops|to another table|through the door|towards the hill".split("|")
)
MAX_REPEATS = 1000  # after this many repeated sentences in a row, all possible ones are taken to be drawn
MIN_WORDS = 5  # "soup was good and dull": two votes, which three classes need


class Mood(NamedTuple):
    """A sentence, its label and the positions of the words that decide it."""

    words: tuple[str, ...]
    label: str
    gold: tuple[int, ...]


class _SentimentSlot(NamedTuple):
    """The position of a sentiment word, and of its negator if it has one."""

    negated: bool


_Frame = list[str | _SentimentSlot]  # a sentence or clause without its sentiment words


def draw_moods(n: int, seed: int = 1, classes: int = 2, min_words: int = 5, max_words: int = 30) -> Iterator[Mood]:
    """Draw `n` distinct sentences; with the same seed, a larger `n` only adds sentences at the end.

    >>> for mood in draw_moods(2):
    ...     print(mood.label, mood.gold, " ".join(mood.words))
    positive (3, 8) that museum proved fantastic while that play felt graceful opposite the station
    positive (14, 15, 17) they moved towards the hill ... that soup is never poor and perfect upstairs
    """
    check_int("n", n, 1)
    check_int("seed", seed, 0)
    if classes not in LABELS:
        raise WorldError(f"classes is {classes!r}: it must be 2 (negative, positive) or 3 (neutral as well)")
    check_int("min_words", min_words, MIN_WORDS)
    check_int("max_words", max_words, min_words)
    return islice(_distinct_sentences(Random(f"moods {seed}"), classes, min_words, max_words), n)


def _distinct_sentences(rng: Random, classes: int, min_words: int, max_words: int) -> Iterator[Mood]:
    """Yield distinct sentences without end, so that no two splits share a sentence."""
    seen: set[tuple[str, ...]] = set()
    repeats = 0
    while repeats < MAX_REPEATS:
        frame = _draw_frame(rng, classes, rng.randint(min_words, max_words))
        mood = _fill_slots(rng, frame, rng.choice(LABELS[classes]))
        if mood.words in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(mood.words)
        yield mood
    raise WorldError(
        f"n is too large: there are only about {len(seen)} different sentences of {min_words} to {max_words} words; "
        "raise max_words"
    )


def _draw_frame(rng: Random, classes: int, length: int) -> _Frame:
    """Draw everything but the sentiment words and the label, in exactly `length` words."""
    clauses = _draw_clauses(rng, classes, length)
    spare = length - sum(map(_length, clauses)) - (len(clauses) - 1)
    while spare:
        if spare > 5 and rng.random() < 0.6:
            clauses.append([*rng.choice(EVENTS).split()])
            spare -= 6  # five words and the conjunction before them
        else:
            span = rng.choice(rng.choice(SPANS[min(1, spare - 1) : spare])).split()
            rng.choice(clauses).extend(span)
            spare -= len(span)
    rng.shuffle(clauses)
    frame = clauses[0]
    for clause in clauses[1:]:
        frame = [*frame, rng.choice(LINKS), *clause]
    return frame


def _draw_clauses(rng: Random, classes: int, length: int) -> list[_Frame]:
    """Draw the clauses with sentiment words: "our soup was not good", "the film seemed dull and clumsy".

    Three classes need an even number of votes, or there could be no tie. Votes come first, then negators and
    articles as far as `length` allows.
    """
    votes = 2 * rng.randint(1, max(1, length // 10)) if classes == 3 else rng.randint(1, max(1, length // 6))
    groups = []  # one or two votes per clause
    while votes:
        groups.append(2 if votes > 1 and (length < 7 or rng.random() < 0.3) else 1)
        votes -= groups[-1]
    spare = length - sum(2 * group + 1 for group in groups) - (len(groups) - 1)
    clauses: list[_Frame] = []
    for group in groups:
        clause: _Frame = [rng.choice(SUBJECTS), rng.choice(VERBS)]
        for i in range(group):
            negated = spare > 0 and rng.random() < 0.3
            spare -= negated
            clause += ["and", _SentimentSlot(negated)] if i else [_SentimentSlot(negated)]
        clauses.append(clause)
    return [[rng.choice(ARTICLES), *c] if i < spare else c for i, c in enumerate(clauses)]


def _length(clause: _Frame) -> int:
    return len(clause) + sum(part.negated for part in clause if isinstance(part, _SentimentSlot))


def _fill_slots(rng: Random, frame: _Frame, label: str) -> Mood:
    """Fill the slots with words that give the label by the rule above."""
    n_slots = sum(isinstance(part, _SentimentSlot) for part in frame)
    n_majority = n_slots // 2 if label == "neutral" else rng.randint(n_slots // 2 + 1, n_slots)
    votes = [label != "negative"] * n_majority + [label == "negative"] * (n_slots - n_majority)  # True: positive
    rng.shuffle(votes)
    words: list[str] = []
    gold: list[int] = []
    for part in frame:
        added = [part] if isinstance(part, str) else _sentiment_words(rng, votes.pop(), part.negated)
        if isinstance(part, _SentimentSlot):
            gold += range(len(words), len(words) + len(added))
        words += added
    return Mood(tuple(words), label, tuple(gold))


def _sentiment_words(rng: Random, positive: bool, negated: bool) -> list[str]:
    word = rng.choice(POSITIVE if positive != negated else NEGATIVE)
    return [rng.choice(NEGATORS), word] if negated else [word]


ABOUT = """
Sentences with planted sentiment words. Every sentiment word votes for its own sentiment, inverted when "not" or
"never" directly precedes it; the majority is the label{tie}. All other words are filler and carry no information
about the label.

- `train.tsv`, `valid.tsv`, `test.tsv` ({sizes}): `label<TAB>text`; {labels}; no sentence
  occurs twice. A recipe reads them with `data.columns = [2, 1]`
- `train.gold`, `valid.gold`, `test.gold`: line by line the 0-based positions of the deciding words
"""


def write(
    out: Path,
    n: int,
    seed: int = 1,
    *,
    classes: int = 2,
    min_words: int = 5,
    max_words: int = 30,
    valid: int | None = None,
    test: int | None = None,
) -> dict[str, int]:
    """Write `n` sentences in total, divided among the splits, with a file of gold positions beside each."""
    sizes = split_sizes(n, valid, test)
    stream = draw_moods(n, seed, classes, min_words, max_words)
    check_folder(out, "moods")
    numbers = {label: number for number, label in enumerate(LABELS[classes])}
    for split, size in sizes.items():
        part = list(islice(stream, size))
        write_lines(out / f"{split}.tsv", (f"{numbers[mood.label]}\t{' '.join(mood.words)}" for mood in part))
        write_lines(out / f"{split}.gold", (" ".join(map(str, mood.gold)) for mood in part))
    options = {"n": n, "seed": seed, "classes": classes, "min_words": min_words, "max_words": max_words}
    about = ABOUT.format(
        tie=", a tie is neutral" if classes == 3 else " (there are no ties)",
        sizes=" / ".join(map(str, sizes.values())),
        labels=", ".join(f"{number} = {label}" for label, number in numbers.items()),
    )
    write_readme(out, "moods", {**options, "valid": sizes["valid"], "test": sizes["test"]}, about)
    return sizes
