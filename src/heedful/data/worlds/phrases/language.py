"""What each of the three languages can do: put the words of one chunk in order and into form."""

from typing import NamedTuple, Protocol

from heedful.data.worlds.phrases.lexicon import Adjective, Determiner, Fixed, Marked, Noun, Verb


class Shape(NamedTuple):
    """What the words around a noun with its adjectives need to know of it."""

    feminine: bool
    vowel: bool  # the French begins with one
    an: bool  # the English does
    s: bool  # the English is a plural with an s


class Language(Protocol):
    """One method for each kind of chunk. -1 for an adverb, a pronoun or `agree` is none."""

    def group(
        self, noun: Noun, plural: bool, pre: Adjective | None, post: Adjective | None, very: bool
    ) -> Marked:
        """A noun with its adjectives; `pre` is the one that goes before a French noun."""

    def around(self, det: Determiner, preposition: str, shape: Shape, owner: str) -> tuple[Marked, Marked]:
        """What stands before such a group and after it; `owner` is whose it is, if it is the subject's."""

    def verb(
        self, verb: Verb, tense: int, polarity: int, adverb: int, who: int, clitic: int, agree: int
    ) -> Marked:
        """A verb with its helpers and perhaps a pronoun for an object, `clitic`.

        `agree` is the object that a relative clause has put before it ("les femmes que le roi a vues").
        """

    def copula(self, adjective: Adjective, kind: str, grade: Fixed | None, tense: int, who: int) -> Marked:
        """is very happy; without a grade it is negated: is not happy. `kind` is that of the subject."""
