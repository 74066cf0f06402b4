"""Draws plans for clauses, of any length: what may stand where, how often, and with which words."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.french import elides
from heedful.data.worlds.phrases.glue import MOVED, PLACED, SOCIAL
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

# An adjective of size or age (a), another one (b), "very" (g); as often as they are here.
STYLES = ("",) * 9 + ("a", "b") * 4 + ("ab",) * 2 + ("ag", "bg")
PLURAL = 0.35
TENSES = (lex.PRESENT,) * 4 + (lex.PAST,) * 4 + (lex.FUTURE,) * 2
POLARITIES = (lex.POSITIVE,) * 14 + (lex.NOT,) * 4 + (lex.NEVER, lex.NO_LONGER)
THIRD, ME_AND_YOU = (lex.HE, lex.SHE, lex.THEY), (lex.ME, lex.YOU, lex.WE)
UNDENIED = ("UN", "quelques", "plusieurs")  # after "ne ... pas" French would say "de"
KIND = {"O": "T", "G": "T", "B": "L"}  # of the nouns that have this tag


class Planner:
    """Draws plans for one source language."""

    def __init__(self, lexicon: Lexicon, source: str, dice: Callable[[], float]) -> None:
        self.lexicon = lexicon
        self.source = source
        self._dice = dice
        self.brief = False  # no adjectives, adjuncts or relative clauses
        self._choices: dict[object, list[Choice]] = {}

    def _choose(self, known: Sequence[T]) -> T:
        """Not Random.choice: only Random.random is promised to stay the same in later Pythons."""
        return known[int(self._dice() * len(known))]

    def _alike(self, name: object, known: Callable[[], list[int]], key: Callable[[int], object]) -> Choice:
        """An index of `known` and all that have its key. The same name always means the same question."""
        choices = self._choices.get(name)
        if choices is None:
            indices = known()
            groups: dict[object, list[int]] = {}
            for i in indices:
                groups.setdefault(key(i), []).append(i)
            shared = {k: tuple(group) for k, group in groups.items()}
            choices = self._choices[name] = [shared[key(i)] for i in indices]
        return self._choose(choices)

    def _fixed(self, name: str, table: Sequence[lex.Fixed], use: str = "") -> Choice:
        return self._alike(
            (name, use),
            lambda: [i for i, fixed in enumerate(table) if fixed.use == use],
            lambda i: len(table[i].forms[self.source][0]),
        )

    def _determiners(self, plural: bool, bound: bool, denied: bool) -> Choice:
        table = self.lexicon.determiners

        def suits(det: lex.Determiner) -> bool:
            free = bound or not det.own
            return det.plural == plural and free and not (denied and det.forms["fr"][0][0][0] in UNDENIED)

        def known() -> list[int]:
            return [i for i, det in enumerate(table) if suits(det) for _ in range(det.weight)]

        def key(i: int) -> tuple[int, bool, bool]:
            (before, _), (after, _) = table[i].forms[self.source]
            return len(before) + len(after), table[i].own, before[:1] == ("LE",)  # which contracts

        return self._alike(("determiner", plural, bound, denied), known, key)

    def _adjectives(self, kind: str, before: bool, graded: bool) -> Choice:
        table = self.lexicon.adjectives

        def known() -> list[int]:
            suits = (kind in a.kinds and a.before == before and a.graded >= graded for a in table)
            return [i for i, suit in enumerate(suits) if suit]

        def length(i: int) -> int:
            lengths = {"en": 1, "fr": len(table[i].fr[0]), "vi": len(table[i].vi[kind])}
            return lengths[self.source]

        return self._alike(("adjective", kind, before, graded), known, length)

    def noun(
        self,
        tag: str,
        preposition: str = "none",
        bound: bool = False,
        head: bool = False,
        denied: bool = False,
    ) -> NounPlan:
        """A noun with this tag.

        `bound`: it may be his or hers, the subject's; `head`: it is the king 's; `denied`: it is not seen.
        """
        nouns, dets = self.lexicon.nouns, self.lexicon.determiners
        contracts = self.source == "fr" and ADPOSITIONS[preposition].forms["fr"][0][-1:] in (("de",), ("à",))

        def key(i: int) -> tuple[object, ...]:
            noun = nouns[i]
            length = {"en": 1, "fr": len(noun.fr[0]), "vi": len(noun.vi)}[self.source]
            return noun.kind, length, contracts and (noun.feminine, elides(noun.fr[0][0]))

        choice = self._alike(
            ("noun", tag, contracts), lambda: [i for i, noun in enumerate(nouns) if tag in noun.tags], key
        )
        kind = nouns[choice[0]].kind
        plural = self._dice() < PLURAL
        style = "" if self.brief or preposition == "of" else self._choose(STYLES)
        very = "g" in style
        return NounPlan(
            preposition,
            (len(dets) - 2 + plural,) if head else self._determiners(plural, bound, denied),
            choice,
            plural,
            self._adjectives(kind, True, very) if "a" in style else (),
            self._adjectives(kind, False, very) if "b" in style else (),
            very,
        )

    def _verbs(self, name: object, suits: Callable[[lex.Verb], bool], vowel: bool = False) -> Choice:
        """Verbs of one length; with `vowel`, also all or none with a vowel first in French."""
        table = self.lexicon.verbs

        def key(i: int) -> tuple[int, bool]:
            verb = table[i]
            length = {"en": len(verb.particle), "fr": len(verb.tail), "vi": len(verb.vi)}[self.source]
            return length, vowel and elides(verb.fr[0])

        return self._alike(
            ("verb", name, vowel), lambda: [i for i, verb in enumerate(table) if suits(verb)], key
        )

    def _verb(self, verbs: Choice, tense: int, clitics: Choice = ()) -> VerbPlan:
        polarity = lex.POSITIVE if self.brief else self._choose(POLARITIES)
        often = polarity == lex.POSITIVE and self._dice() < 0.12
        return VerbPlan(verbs, tense, polarity, self._fixed("often", lex.OFTENS) if often else (), clitics)

    def _person_length(self, i: int) -> int:
        return len(lex.PERSONS[i][lex.LANGUAGES.index(self.source)].split())

    def subject(self, kind: str, relatives: bool = True) -> Nominal:
        if kind == "P" and self._dice() < 0.35:
            third = self._dice() < 0.5
            known = list(THIRD if third else ME_AND_YOU)
            return Nominal(pronouns=self._alike(("subject", third), lambda: known, self._person_length))
        return self.nominal(kind, bound=False, relatives=relatives)

    def nominal(
        self,
        tag: str,
        preposition: str = "none",
        bound: bool = True,
        relatives: bool = True,
        denied: bool = False,
    ) -> Nominal:
        """A noun phrase; a relative clause only where `relatives` says that one may end the clause."""
        dice = self._dice()
        if preposition == "none" and dice < 0.08:
            owner, own = self.noun("P", "of", bound), "K" if tag == "P" else tag
            return Nominal((), owner, OF, self.noun(own, head=True))
        first = self.noun(tag, preposition, bound, denied=denied)
        if preposition == "none" and dice < 0.18:
            return Nominal((), first, AND, self.noun(tag, bound=bound, denied=denied))
        if relatives and dice < 0.32 and not self.brief:
            return Nominal((), first, relative=self._relative(tag + self.lexicon.nouns[first.nouns[0]].kind))
        return Nominal((), first)

    def _relative(self, tags: str) -> Relative:
        """A relative clause for a noun with these tags."""
        tense = self._choose(TENSES)
        if tags[0] in "PA" and self._dice() < 0.5:
            return Relative(None, self.predicate(tags[0], True, tense, relatives=False))
        kind = self._choose("PPPA")
        subject = self.subject(kind, relatives=False)
        verb = self._verb(self._direct(kind, tags), tense)
        bound = self._third(subject)
        return Relative(subject, Predicate(verb, (), self._places(0.2, bound, relatives=False)))

    @staticmethod
    def _third(subject: Nominal) -> bool:
        return not subject.pronouns or subject.pronouns[0] in THIRD

    def _transitive(self, kind: str, governed: bool) -> Choice:
        def known() -> list[int]:
            suits = (
                kind in v.subjects and v.objects and (v.governs != "none") == governed
                for v in self.lexicon.verbs
            )
            return [i for i, suit in enumerate(suits) if suit]

        return self._alike(("transitive", kind, governed), known, bool)

    def _direct(self, kind: str, tags: str, vowel: bool = False) -> Choice:
        return self._verbs(
            ("direct", kind, tags),
            lambda v: kind in v.subjects and any(t in v.objects for t in tags) and v.governs == "none",
            vowel,
        )

    def _places(self, often: float, bound: bool, relatives: bool) -> tuple[Nominal, ...]:
        """Where, then perhaps with whom; only the last may have a relative clause."""
        names = []
        if self._dice() < often and not self.brief:
            names.append(self._choose(PLACED))
        if self._dice() < often / 3 and not self.brief:
            names.append(self._choose(SOCIAL))
        return tuple(self._adjunct(n, bound, relatives and n == names[-1]) for n in names)

    def _adjunct(self, preposition: str, bound: bool, relatives: bool) -> Nominal:
        tags = ADPOSITIONS[preposition].use.split()[1]
        return self.nominal(self._choose(tags), preposition, bound, relatives)

    def predicate(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        """Anything an animate subject of this kind does; `third`: it is neither i, you nor we."""
        dice = self._dice()
        if dice < 0.3:
            return self._resting(kind, third, tense, relatives)
        if dice < 0.4:
            return self._moving(kind, third, tense, relatives)
        if dice < 0.5:
            return self._to_somebody(kind, third, tense, relatives)
        governed = dice < 0.6
        sample = self.lexicon.verbs[self._choose(self._transitive(kind, governed))]
        tag = self._choose(sample.objects)
        if governed:
            verbs = self._verbs(
                (kind, tag, sample.governs),
                lambda v: kind in v.subjects and tag in v.objects and v.governs == sample.governs,
            )
        else:
            verbs = self._direct(kind, tag + KIND.get(tag, ""))
        verb = self._verb(verbs, tense)
        places = self._places(0.25, third, relatives)
        denied = not governed and verb.polarity != lex.POSITIVE
        what = self.nominal(tag, sample.governs, third, relatives and not places, denied)
        return Predicate(verb, (), (what, *places))

    def _resting(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        def suits(verb: lex.Verb) -> bool:
            return kind in verb.subjects and not verb.objects and "t" not in verb.moves

        stays = self._dice() < 0.6
        verbs = self._verbs((kind, stays), lambda v: suits(v) and not (stays and "x" in v.moves))
        manners = self._fixed("way", lex.WAYS) if self._dice() < 0.2 else ()
        places = self._places(0.8, third, relatives) if stays else ()
        return Predicate(self._verb(verbs, tense), manners, places)

    def _moving(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        move = self._choose("mft")
        verbs = self._verbs((kind, move), lambda v: kind in v.subjects and move in v.moves)
        goal = self._adjunct(self._choose(MOVED[move]), third, relatives)
        return Predicate(self._verb(verbs, tense), (), (goal,))

    def _to_somebody(self, kind: str, third: bool, tense: int, relatives: bool) -> Predicate:
        """With a pronoun for an object. "il l' aime" would hide him or her (but not "il l' a aimée")."""
        verbs = self._direct(kind, "P", vowel=True)
        hidden = tense != lex.PAST and elides(self.lexicon.verbs[verbs[0]].fr[0])
        known = [*THIRD, *ME_AND_YOU] if third else [*THIRD]
        known = [who for who in known if not (hidden and who in (lex.HE, lex.SHE))]
        clitics = self._alike(("object", third, hidden), lambda: known, self._person_length)
        return Predicate(self._verb(verbs, tense, clitics), (), self._places(0.3, third, relatives))

    def clause(self) -> Clause:
        tense = self._choose(TENSES)
        times = self._fixed("time", lex.MOMENTS, str(tense)) if self._dice() < 0.16 else ()
        front = bool(times) and self._dice() < 0.4
        if self._dice() < 0.1:
            return self._being(tense, times, front)
        kind = self._choose("PPPA")
        subject = self.subject(kind)
        third = self._third(subject)
        twice = self._dice() < 0.1
        relatives = not twice and (front or not times)
        parts = [self.predicate(kind, third, tense, relatives) for _ in range(1 + twice)]
        return Clause(subject, tuple(parts), times, front, tense)

    def _being(self, tense: int, times: Choice, front: bool) -> Clause:
        kind = self._choose("PPPAFRTL")
        grades = self._fixed("grade", lex.GRADES) if self._dice() < 0.7 else ()
        copula = CopulaPlan(self._adjectives(kind, self._dice() < 0.3, True), kind, grades, tense)
        return Clause(self.subject(kind), (Predicate(copula),), times, front, tense)
