"""Plans: the structure of a clause, with a choice of interchangeable words at every position.

Words are interchangeable if each of them gives a clause of the same length in the source language, so a plan has
one length.
"""

from typing import NamedTuple

from heedful.data.worlds.phrases import lexicon as lex

Choice = tuple[int, ...]  # indices into a table of the lexicon; empty: no such word

ALONE, AND, OF = range(3)  # how a second noun phrase is joined


class NounPlan(NamedTuple):
    """in | the | small | black | cats"""

    preposition: str
    dets: Choice
    nouns: Choice
    plural: bool = False
    pres: Choice = ()
    posts: Choice = ()
    very: bool = False


class VerbPlan(NamedTuple):
    """often | sees; does | not | see | her"""

    verbs: Choice
    tense: int = lex.PRESENT
    polarity: int = lex.POSITIVE
    adverbs: Choice = ()
    clitics: Choice = ()


class CopulaPlan(NamedTuple):
    """is | very | happy; is | not | happy"""

    adjectives: Choice
    kind: str
    grades: Choice
    tense: int = lex.PRESENT


class Nominal(NamedTuple):
    """A pronoun; a noun phrase, perhaps with a relative clause; a cat and | a dog; the king 's | horse."""

    pronouns: Choice = ()
    first: NounPlan | None = None
    join: int = ALONE
    second: NounPlan | None = None
    relative: "Relative | None" = None


class Predicate(NamedTuple):
    """A verb with its adverbs of manner, objects and adjuncts."""

    verb: VerbPlan | CopulaPlan
    manners: Choice = ()
    nominals: tuple[Nominal, ...] = ()


class Relative(NamedTuple):
    """that the dog sees; without a subject: that sleeps"""

    subject: Nominal | None
    predicate: Predicate


class Clause(NamedTuple):
    """A subject with one or two predicates and an adverb of time, in front if `front`."""

    subject: Nominal
    predicates: tuple[Predicate, ...]
    times: Choice = ()
    front: bool = False
    tense: int = lex.PRESENT
