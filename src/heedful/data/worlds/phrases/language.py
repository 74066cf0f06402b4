"""The interface of a language: order and inflect the words of one chunk."""

from typing import NamedTuple, Protocol

from heedful.data.worlds.phrases.lexicon import Adjective, Determiner, Invariant, MarkedWords, Noun, Verb


class Shape(NamedTuple):
    """The properties of a noun with its adjectives that the words around it depend on."""

    feminine: bool
    vowel: bool  # the French begins with a vowel
    an: bool  # the English takes "an"
    s: bool  # the English is a plural that ends in s


class Language(Protocol):
    """One method per kind of chunk. An adverb, a pronoun or `agree` of -1 is absent."""

    def group(self, noun: Noun, plural: bool, pre: Adjective | None, post: Adjective | None, very: bool) -> MarkedWords:
        """Return a noun with its adjectives; `pre` is the one that precedes a French noun."""

    def around(self, det: Determiner, preposition: str, shape: Shape, owner: str) -> tuple[MarkedWords, MarkedWords]:
        """Return the words before and after such a group; `owner` is the subject, where the noun is its own."""

    def verb(
        self, verb: Verb, tense: int, polarity: int, adverb: int, person: int, clitic: int, agree: int
    ) -> MarkedWords:
        """Return a verb with its auxiliaries and, as `clitic`, an optional pronoun object.

        `agree` is the object that a relative clause puts before it ("les femmes que le roi a vues").
        """

    def copula(self, adjective: Adjective, kind: str, grade: Invariant | None, tense: int, person: int) -> MarkedWords:
        """Return "is very happy", or without a grade the negation "is not happy"; `kind` is that of the subject."""
