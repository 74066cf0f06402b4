"""The lexicon: the tables of words, parsed into records."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from heedful.data.worlds.phrases import function_words
from heedful.data.worlds.phrases.content_words import ADJECTIVES, NOUNS, VERBS

LANGUAGES = ("en", "fr", "vi")
Tokens = tuple[str, ...]
MarkedWords = tuple[Tokens, str]  # words, and one mark per word

# Marks of words with two parts of a meaning: du, saw, did, was, the article of "l'année dernière".
PARTS = {"R": "rd", "T": "tv", "D": "nt", "K": "tk", "L": "ab"}

PRESENT, PAST, FUTURE = range(3)
POSITIVE, NOT, NEVER, NO_LONGER = range(4)
# Subjects and objects: i, you, he, she, we, they, they of nouns that are all feminine in French.
ME, YOU, HE, SHE, WE, THEY, THEY_F = range(7)


class Noun(NamedTuple):
    kind: str
    tags: str
    owner: str
    feminine: bool
    en: tuple[str, str]
    fr: tuple[Tokens, Tokens]
    vi: Tokens


class Adjective(NamedTuple):
    before: bool
    graded: bool
    kinds: str
    en: str
    fr: tuple[Tokens, ...]  # masculine, feminine, their plurals, masculine before a vowel
    vi: dict[str, Tokens]  # by the kind of noun


class Verb(NamedTuple):
    subjects: str
    objects: str
    moves: str
    governs: str
    en: tuple[str, str, str]  # base, third person, past
    particle: Tokens
    etre: bool
    fr: tuple[str, ...]  # five persons, the stem of the future, the participle
    tail: Tokens
    vi: Tokens


class Determiner(NamedTuple):
    weight: int
    plural: bool
    own: bool
    forms: dict[str, tuple[MarkedWords, MarkedWords]]  # by language: before the noun, after it


class Invariant(NamedTuple):
    """A word or phrase that does not inflect, by language; `use` says where it is allowed."""

    name: str  # unique
    use: str
    forms: dict[str, MarkedWords]


class Lexicon(NamedTuple):
    nouns: tuple[Noun, ...]
    adjectives: tuple[Adjective, ...]
    verbs: tuple[Verb, ...]
    determiners: tuple[Determiner, ...]  # the last two are function_words.HEADS


def _rows(table: str, end: str = "\n") -> Iterator[list[str]]:
    for row in table.strip().split(end):
        yield [cell.strip() for cell in row.split("|")]


def _marked(text: str) -> MarkedWords:
    """Parse words with their marks; words without one are all of one part, except the comma."""
    pairs = [word.rsplit("/", 1) if "/" in word else (word, "," if word == "," else "x") for word in text.split()]
    return tuple(word for word, _ in pairs), "".join(mark for _, mark in pairs)


def _invariants(table: str, end: str = "\n") -> tuple[Invariant, ...]:
    rows = [row if len(row) == 4 else ["", *row] for row in _rows(table, end)]
    return tuple(
        Invariant(" | ".join(cells), use, {a: _marked(b) for a, b in zip(LANGUAGES, cells, strict=True)})
        for use, *cells in rows
    )


def _with_s(word: str) -> str:
    """Return the plural of an English noun, or the third person of an English verb."""
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh", "o")) else "s")


def _past(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeou":
        return word[:-1] + "ied"
    return word + ("d" if word.endswith("e") else "ed")


def _french_plural(word: str) -> str:
    return word + ("" if word[-1] in "sx" else "x" if word.endswith("eau") else "s")


def _noun(row: list[str]) -> Noun:
    (tags, owner), (article, *french) = row[0].split(), row[2].split()
    one, _, many = row[1].partition("/")
    un, _, plusieurs = " ".join(french).partition("/")
    fr = tuple(un.split()), tuple((plusieurs or _french_plural(un)).split())
    return Noun(tags[0], tags, owner, article == "une", (one, many or _with_s(one)), fr, tuple(row[3].split()))


def _adjective(row: list[str]) -> Adjective:
    *flags, kinds = row[0].split()
    first, *rest = row[2].split("/")
    if first.startswith("!"):
        forms = [first[1:]] * 5
    else:
        feminine = rest[0] if rest else first + ("" if first.endswith("e") else "e")
        forms = [
            first,
            feminine,
            _french_plural(first),
            _french_plural(feminine),
            rest[-1] if len(rest) == 2 else first,
        ]
    choices = row[3].split() if ":" in row[3] else [f"{kinds}:{row[3]}"]
    vi = {kind: tuple(word.split()) for many, word in (c.split(":") for c in choices) for kind in many}
    marks = "".join(flags)
    return Adjective("<" in marks, "-" not in marks, kinds, row[1], tuple(tuple(f.split()) for f in forms), vi)


def _verb(row: list[str]) -> Verb:
    subjects, _, rest = row[0].partition(">")
    letters, _, governs = rest.partition("@")
    english, _, past = row[1].partition("/")
    base, *particle = english.split()
    infinitive, _, irregular = row[2].removeprefix("+").strip().partition(":")
    forms = irregular.split() if irregular else _first_group(infinitive)
    return Verb(
        subjects.strip(),
        "".join(c for c in letters if c.isupper()),
        "".join(c for c in letters if c.islower()),
        f"@{governs}" if governs else "none",
        (base, _with_s(base), past or _past(base)),
        tuple(particle),
        row[2].startswith("+"),
        tuple(forms[:7]),
        tuple(forms[7:]),
        tuple(row[3].split()),
    )


def _first_group(infinitive: str) -> list[str]:
    """Return the forms of a verb like aimer, including manger and lancer."""
    stem = infinitive[:-2]
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    return [*(stem + e for e in ("e", "es", "e")), soft + "ons", stem + "ent", infinitive, stem + "é"]


def _determiner(row: list[str], number: list[str] | None = None) -> Determiner:
    weight, plural = row[0].split()
    forms = {}
    for i, (language, cell) in enumerate(zip(LANGUAGES, row[1:], strict=True)):
        if number:
            cell = cell.replace("#/m", " ".join(f"{part}/m" for part in number[i].split("_")))
        before, _, after = cell.partition("_")
        forms[language] = _marked(before), _marked(after)
    return Determiner(int(weight), plural == "p", "OWN" in row[1], forms)


def _determiners() -> Iterator[Determiner]:
    yield from map(_determiner, _rows(function_words.DETERMINERS))
    numbers = [number.split() for number in function_words.NUMBERS.split(";")]
    plain, *counted = _rows(function_words.NUMBERED_DETERMINERS)
    yield from (_determiner(plain, number) for number in numbers)
    yield from (_determiner(row, number) for row in counted for number in numbers[:5])
    yield from map(_determiner, _rows(function_words.POSSESSED_DETERMINERS))


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """Return the lexicon, parsed once."""
    return Lexicon(
        tuple(map(_noun, _rows(NOUNS))),
        tuple(map(_adjective, _rows(ADJECTIVES))),
        tuple(map(_verb, _rows(VERBS))),
        tuple(_determiners()),
    )


ADPOSITIONS = {invariant.use.split()[0]: invariant for invariant in _invariants(function_words.PREPOSITIONS)}
FREQUENCY_ADVERBS, DEGREE_ADVERBS, MANNER_ADVERBS = (
    _invariants(table, ";") for table in (function_words.FREQUENCY, function_words.DEGREES, function_words.MANNERS)
)
TIME_ADVERBS, CONJUNCTIONS = _invariants(function_words.TIMES), _invariants(function_words.CONJUNCTIONS)
COMMA, AND_WORD, SUBJECT_RELATIVE, OBJECT_RELATIVE = _invariants(function_words.OTHER_WORDS)
PRONOUNS = tuple(_rows(function_words.PRONOUNS))
