"""Draws plans of clauses of any length: which constituents, how often, and with which words."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.french import elides
from heedful.data.worlds.phrases.function_words import COMPANION_PREPOSITIONS, MOTION_PREPOSITIONS, PLACE_PREPOSITIONS
from heedful.data.worlds.phrases.lexicon import ADPOSITIONS, Lexicon
from heedful.data.worlds.phrases.plans import (
    AND,
    OF,
    Choice,
    Clause,
    CopulaPlan,
    Nominal,
    NounPlan,
    Predicate,
    Relative,
    VerbPlan,
)

T = TypeVar("T")

# An adjective of size or age (a), another one (b), "very" (g), in the frequencies of this tuple.
ADJECTIVE_PATTERNS = ("",) * 9 + ("a", "b") * 4 + ("ab",) * 2 + ("ag", "bg")
PLURAL = 0.35  # probability
TENSES = (lex.PRESENT,) * 4 + (lex.PAST,) * 4 + (lex.FUTURE,) * 2
POLARITIES = (lex.POSITIVE,) * 14 + (lex.NOT,) * 4 + (lex.NEVER, lex.NO_LONGER)
THIRD_PERSONS, FIRST_AND_SECOND_PERSONS = (lex.HE, lex.SHE, lex.THEY), (lex.ME, lex.YOU, lex.WE)
UNNEGATED_DETERMINERS = (
    "UN",
    "quelques",
    "plusieurs",
)  # replaced by "de" after "ne ... pas" in French, so not used there
NOUN_KINDS = {"O": "T", "G": "T", "B": "L"}  # the kind of the nouns with this tag


class Planner:
    """Draws plans for one source language."""

    def __init__(self, lexicon: Lexicon, source: str, uniform: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.source = source
        self._uniform = uniform
        self.brief = False  # no adjectives, adjuncts or relative clauses
        self._choices: dict[object, list[Choice]] = {}

    def _choose(self, known: Sequence[T]) -> T:
        """Choose one element; unlike Random.choice, Random.random is guaranteed to stay the same in later Pythons."""
        return known[int(self._uniform() * len(known))]

    def _choose_interchangeable(
        self, name: object, candidates: Callable[[], list[int]], key: Callable[[int], object]
    ) -> Choice:
        """Choose one of the candidates, and return all that have the same key; computed once per `name`."""
        choices = self._choices.get(name)
        if choices is None:
            indices = candidates()
            groups: dict[object, list[int]] = {}
            for i in indices:
                groups.setdefault(key(i), []).append(i)
            shared = {k: tuple(group) for k, group in groups.items()}
            choices = self._choices[name] = [shared[key(i)] for i in indices]
        return self._choose(choices)

    def _invariants(self, name: str, table: Sequence[lex.Invariant], use: str = "") -> Choice:
        return self._choose_interchangeable(
            (name, use),
            lambda: [i for i, invariant in enumerate(table) if invariant.use == use],
            lambda i: len(table[i].forms[self.source][0]),
        )

    def _determiners(self, plural: bool, bound: bool, negated: bool) -> Choice:
        table = self.lexicon.determiners

        def suits(det: lex.Determiner) -> bool:
            free = bound or not det.own
            return det.plural == plural and free and not (negated and det.forms["fr"][0][0][0] in UNNEGATED_DETERMINERS)

        def known() -> list[int]:
            return [i for i, det in enumerate(table) if suits(det) for _ in range(det.weight)]

        def key(i: int) -> tuple[int, bool, bool]:
            (before, _), (after, _) = table[i].forms[self.source]
            return len(before) + len(after), table[i].own, before[:1] == ("LE",)  # which contracts

        return self._choose_interchangeable(("determiner", plural, bound, negated), known, key)

    def _adjectives(self, kind: str, before: bool, graded: bool) -> Choice:
        table = self.lexicon.adjectives

        def known() -> list[int]:
            suits = (kind in a.kinds and a.before == before and a.graded >= graded for a in table)
            return [i for i, suit in enumerate(suits) if suit]

        def length(i: int) -> int:
            lengths = {"en": 1, "fr": len(table[i].fr[0]), "vi": len(table[i].vi[kind])}
            return lengths[self.source]

        return self._choose_interchangeable(("adjective", kind, before, graded), known, length)

    def noun(
        self,
        tag: str,
        preposition: str = "none",
        bound: bool = False,
        head: bool = False,
        negated: bool = False,
    ) -> NounPlan:
        """Plan a noun with this tag.

        `bound`: it may belong to the subject ("his"); `head`: it follows "the king 's"; `negated`: it is the object of
        a negated verb.
        """
        nouns, dets = self.lexicon.nouns, self.lexicon.determiners
        contracts = self.source == "fr" and ADPOSITIONS[preposition].forms["fr"][0][-1:] in (("de",), ("à",))

        def key(i: int) -> tuple[object, ...]:
            noun = nouns[i]
            length = {"en": 1, "fr": len(noun.fr[0]), "vi": len(noun.vi)}[self.source]
            return noun.kind, length, contracts and (noun.feminine, elides(noun.fr[0][0]))

        choice = self._choose_interchangeable(
            ("noun", tag, contracts), lambda: [i for i, noun in enumerate(nouns) if tag in noun.tags], key
        )
        kind = nouns[choice[0]].kind
        plural = self._uniform() < PLURAL
        style = "" if self.brief or preposition == "of" else self._choose(ADJECTIVE_PATTERNS)
        very = "g" in style
        return NounPlan(
            preposition,
            (len(dets) - 2 + plural,) if head else self._determiners(plural, bound, negated),
            choice,
            plural,
            self._adjectives(kind, True, very) if "a" in style else (),
            self._adjectives(kind, False, very) if "b" in style else (),
            very,
        )

    def _verbs(self, name: object, suits: Callable[[lex.Verb], bool], vowel: bool = False) -> Choice:
        """Choose verbs of one length; with `vowel`, all or none of them begin with a vowel in French."""
        table = self.lexicon.verbs

        def key(i: int) -> tuple[int, bool]:
            verb = table[i]
            length = {"en": len(verb.particle), "fr": len(verb.tail), "vi": len(verb.vi)}[self.source]
            return length, vowel and elides(verb.fr[0])

        return self._choose_interchangeable(
            ("verb", name, vowel), lambda: [i for i, verb in enumerate(table) if suits(verb)], key
        )

    def _verb(self, verbs: Choice, tense: int, clitics: Choice = ()) -> VerbPlan:
        polarity = lex.POSITIVE if self.brief else self._choose(POLARITIES)
        often = polarity == lex.POSITIVE and self._uniform() < 0.12
        return VerbPlan(
            verbs, tense, polarity, self._invariants("often", lex.FREQUENCY_ADVERBS) if often else (), clitics
        )

    def _person_length(self, i: int) -> int:
        return len(lex.PRONOUNS[i][lex.LANGUAGES.index(self.source)].split())

    def subject(self, kind: str, relatives: bool = True) -> Nominal:
        """Plan a subject: a pronoun or a noun phrase."""
        if kind == "P" and self._uniform() < 0.35:
            third = self._uniform() < 0.5
            known = list(THIRD_PERSONS if third else FIRST_AND_SECOND_PERSONS)
            return Nominal(
                pronouns=self._choose_interchangeable(("subject", third), lambda: known, self._person_length)
            )
        return self.nominal(kind, bound=False, relatives=relatives)

    def nominal(
        self,
        tag: str,
        preposition: str = "none",
        bound: bool = True,
        relatives: bool = True,
        negated: bool = False,
    ) -> Nominal:
        """Plan a noun phrase; `relatives` allows a relative clause at its end."""
        uniform = self._uniform()
        if preposition == "none" and uniform < 0.08:
            owner, own = self.noun("P", "of", bound), "K" if tag == "P" else tag
            return Nominal((), owner, OF, self.noun(own, head=True))
        first = self.noun(tag, preposition, bound, negated=negated)
        if preposition == "none" and uniform < 0.18:
            return Nominal((), first, AND, self.noun(tag, bound=bound, negated=negated))
        if relatives and uniform < 0.32 and not self.brief:
            return Nominal((), first, relative=self._relative(tag + self.lexicon.nouns[first.nouns[0]].kind))
        return Nominal((), first)

    def _relative(self, tags: str) -> Relative:
        """Plan a relative clause of a noun with these tags."""
        tense = self._choose(TENSES)
        if tags[0] in "PA" and self._uniform() < 0.5:
            return Relative(None, self.predicate(tags[0], True, tense, relatives=False))
        kind = self._choose("PPPA")
        subject = self.subject(kind, relatives=False)
        verb = self._verb(self._direct(kind, tags), tense)
        bound = self._third(subject)
        return Relative(subject, Predicate(verb, (), self._places(0.2, bound, relatives=False)))

    @staticmethod
    def _third(subject: Nominal) -> bool:
        return not subject.pronouns or subject.pronouns[0] in THIRD_PERSONS

    def _transitive(self, kind: str, governed: bool) -> Choice:
        def known() -> list[int]:
            suits = (kind in v.subjects and v.objects and (v.governs != "none") == governed for v in self.lexicon.verbs)
            return [i for i, suit in enumerate(suits) if suit]

        return self._choose_interchangeable(("transitive", kind, governed), known, bool)

    def _direct(self, kind: str, tags: str, vowel: bool = False) -> Choice:
        return self._verbs(
            ("direct", kind, tags),
            lambda v: kind in v.subjects and any(t in v.objects for t in tags) and v.governs == "none",
            vowel,
        )

    def _places(self, often: float, bound: bool, relatives: bool) -> tuple[Nominal, ...]:
        """Plan adjuncts of place and of company; only the last may have a relative clause."""
        names = []
        if self._uniform() < often and not self.brief:
            names.append(self._choose(PLACE_PREPOSITIONS))
        if self._uniform() < often / 3 and not self.brief:
            names.append(self._choose(COMPANION_PREPOSITIONS))
        return tuple(self._adjunct(n, bound, relatives and n == names[-1]) for n in names)

    def _adjunct(self, preposition: str, bound: bool, relatives: bool) -> Nominal:
        tags = ADPOSITIONS[preposition].use.split()[1]
        return self.nominal(self._choose(tags), preposition, bound, relatives)

    def predicate(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        """Plan the predicate of an animate subject of this kind; `third`: the subject is a third person."""
        uniform = self._uniform()
        if uniform < 0.3:
            return self._intransitive(kind, third, tense, relatives)
        if uniform < 0.4:
            return self._motion(kind, third, tense, relatives)
        if uniform < 0.5:
            return self._with_pronoun_object(kind, third, tense, relatives)
        governed = uniform < 0.6
        sample = self.lexicon.verbs[self._choose(self._transitive(kind, governed))]
        tag = self._choose(sample.objects)
        if governed:
            verbs = self._verbs(
                (kind, tag, sample.governs),
                lambda v: kind in v.subjects and tag in v.objects and v.governs == sample.governs,
            )
        else:
            verbs = self._direct(kind, tag + NOUN_KINDS.get(tag, ""))
        verb = self._verb(verbs, tense)
        places = self._places(0.25, third, relatives)
        negated = not governed and verb.polarity != lex.POSITIVE
        what = self.nominal(tag, sample.governs, third, relatives and not places, negated)
        return Predicate(verb, (), (what, *places))

    def _intransitive(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        def suits(verb: lex.Verb) -> bool:
            return kind in verb.subjects and not verb.objects and "t" not in verb.moves

        stays = self._uniform() < 0.6
        verbs = self._verbs((kind, stays), lambda v: suits(v) and not (stays and "x" in v.moves))
        manners = self._invariants("way", lex.MANNER_ADVERBS) if self._uniform() < 0.2 else ()
        places = self._places(0.8, third, relatives) if stays else ()
        return Predicate(self._verb(verbs, tense), manners, places)

    def _motion(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        move = self._choose("mft")
        verbs = self._verbs((kind, move), lambda v: kind in v.subjects and move in v.moves)
        goal = self._adjunct(self._choose(MOTION_PREPOSITIONS[move]), third, relatives)
        return Predicate(self._verb(verbs, tense), (), (goal,))

    def _with_pronoun_object(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        """Plan a verb with a pronoun object; not "il l' aime", which is ambiguous (but "il l' a aimée" is not)."""
        verbs = self._direct(kind, "P", vowel=True)
        hidden = tense != lex.PAST and elides(self.lexicon.verbs[verbs[0]].fr[0])
        known = [*THIRD_PERSONS, *FIRST_AND_SECOND_PERSONS] if third else [*THIRD_PERSONS]
        known = [person for person in known if not (hidden and person in (lex.HE, lex.SHE))]
        clitics = self._choose_interchangeable(("object", third, hidden), lambda: known, self._person_length)
        return Predicate(self._verb(verbs, tense, clitics), (), self._places(0.3, third, relatives))

    def clause(self) -> Clause:
        """Plan a clause."""
        tense = self._choose(TENSES)
        times = self._invariants("time", lex.TIME_ADVERBS, str(tense)) if self._uniform() < 0.16 else ()
        front = bool(times) and self._uniform() < 0.4
        if self._uniform() < 0.1:
            return self._copula_clause(tense, times, front)
        kind = self._choose("PPPA")
        subject = self.subject(kind)
        third = self._third(subject)
        twice = self._uniform() < 0.1
        relatives = not twice and (front or not times)
        parts = [self.predicate(kind, third, tense, relatives) for _ in range(1 + twice)]
        return Clause(subject, tuple(parts), times, front, tense)

    def _copula_clause(self, tense: int, times: Choice, front: bool) -> Clause:
        kind = self._choose("PPPAFRTL")
        grades = self._invariants("grade", lex.DEGREE_ADVERBS) if self._uniform() < 0.7 else ()
        copula = CopulaPlan(self._adjectives(kind, self._uniform() < 0.3, True), kind, grades, tense)
        return Clause(self.subject(kind), (Predicate(copula),), times, front, tense)
