"""Turns plans into sentence pairs of one direction of translation.

A chunk is a sequence of words on both sides with its own links. The three languages order their chunks alike with
two exceptions (the king 's | horse; what happened | yesterday), so a sentence is a concatenation of chunks, and
most chunks are cached.
"""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.english import English, takes_an
from heedful.data.worlds.phrases.french import French, elide, elides
from heedful.data.worlds.phrases.language import Language, Shape
from heedful.data.worlds.phrases.lexicon import Invariant, Lexicon, MarkedWords, Tokens
from heedful.data.worlds.phrases.plans import (
    AND,
    OF,
    Clause,
    CopulaPlan,
    Nominal,
    NounPlan,
    Predicate,
    Relative,
    VerbPlan,
)
from heedful.data.worlds.phrases.vietnamese import Vietnamese

Links = tuple[tuple[int, int], ...]
Chunk = tuple[Tokens, Tokens, Links]
Uniform = Callable[[], float]  # from 0 to just below 1

GRAMMARS: dict[str, Language] = {"en": English(), "fr": French(), "vi": Vietnamese()}
SHAPES = tuple(Shape(*bits) for bits in product((False, True), repeat=4))
SHAPE_INDEX = {shape: i for i, shape in enumerate(SHAPES)}
OWNER = {lex.HE: "m", lex.SHE: "f", lex.THEY: "p"}  # of his, her, their; i, you and we have none
NO_WORD = -1


@cache
def link_marks(source: str, target: str) -> Links:
    """Return all pairs of words whose marks share a part of the meaning."""
    left, right = ([set(lex.PARTS.get(mark, mark)) for mark in marks] for marks in (source, target))
    return tuple((i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a & b)


def concatenate(chunks: Iterable[Chunk]) -> Chunk:
    """Concatenate chunks in the same order on both sides."""
    source: list[str] = []
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for left, right, local in chunks:
        s, t = len(source), len(target)
        source += left
        target += right
        links += [(s + i, t + j) for i, j in local]
    return tuple(source), tuple(target), tuple(links)


def swap_targets(first: Chunk, second: Chunk) -> Chunk:
    """Concatenate two chunks in this order in the source and in reverse order in the target."""
    s, t = len(first[0]), len(second[1])
    links = [(i, t + j) for i, j in first[2]] + [(s + i, j) for i, j in second[2]]
    return first[0] + second[0], second[1] + first[1], tuple(links)


class World:
    """Realizes plans in two languages, with the words of a lexicon."""

    def __init__(self, source: str, target: str, lexicon: Lexicon | None = None) -> None:
        self.lexicon = lexicon or lex.lexicon()
        self.source, self.target = source, target
        self._grammars = GRAMMARS[source], GRAMMARS[target]
        self._english, self._french = (
            (source, target).index(a) if a in (source, target) else NO_WORD for a in ("en", "fr")
        )
        self._own = frozenset(i for i, det in enumerate(self.lexicon.determiners) if det.own)
        self._chunks: dict[object, Chunk] = {}
        self._verb_positions: dict[
            Chunk, tuple[list[int], ...]
        ] = {}  # positions of the verb in verb chunks, in both languages
        self._groups: dict[object, tuple[Tokens, Tokens, str, str, int]] = {}
        self._frames: dict[object, tuple[MarkedWords, MarkedWords, MarkedWords, MarkedWords]] = {}

    def _realize(self, key: object, forms: Callable[[str], MarkedWords]) -> Chunk:
        """Realize a chunk in both languages, and cache it by its key."""
        source, target = forms(self.source), forms(self.target)
        chunk = self._chunks[key] = source[0], target[0], link_marks(source[1], target[1])
        return chunk

    def _first(self, chunk: Chunk) -> str:
        """Return the first French word of a chunk."""
        return (chunk[1] if self._french else chunk[0])[0]

    def invariant(self, invariant: Invariant, following: Chunk | None = None) -> Chunk:
        """Realize a word that does not inflect; "que" and "si" are elided before the following chunk."""
        last = ""
        if following and self._french >= 0:
            last = elide(invariant.forms["fr"][0][-1], self._first(following))
        key = invariant.name, last
        chunk = self._chunks.get(key)
        if chunk is None:
            forms = dict(invariant.forms)
            if last:
                forms["fr"] = (*forms["fr"][0][:-1], last), forms["fr"][1]
            chunk = self._realize(key, forms.__getitem__)
        return chunk

    def _pronoun(self, person: int, verb: Chunk) -> Chunk:
        first = self._first(verb) if self._french >= 0 and person == lex.ME else " "
        key = person, elides(first)
        chunk = self._chunks.get(key)
        if chunk is None:
            en, fr, vi = (tuple(word.split()) for word in lex.PRONOUNS[person][:3])
            forms = {"en": en, "fr": (elide(fr[0], first),), "vi": vi}
            chunk = self._realize(key, lambda language: (forms[language], "x" * len(forms[language])))
        return chunk

    def _group(self, key: tuple[int, bool, int, int, bool]) -> tuple[Tokens, Tokens, str, str, int]:
        """Realize a noun with its adjectives, and return the index of its shape."""
        noun, plural, pre, post, very = key
        words, adjectives = self.lexicon.nouns[noun], self.lexicon.adjectives
        before, after = adjectives[pre] if pre >= 0 else None, adjectives[post] if post >= 0 else None
        forms = [grammar.group(words, plural, before, after, very) for grammar in self._grammars]
        en, fr = (forms[side][0] if side >= 0 else (" ",) for side in (self._english, self._french))
        shape = Shape(words.feminine, elides(fr[0]), takes_an(en[0]), plural and en[-1].endswith("s"))
        (source, left), (target, right) = forms
        group = self._groups[key] = source, target, left, right, SHAPE_INDEX[shape]
        return group

    def _phrase(self, plan: NounPlan, owner: str, uniform: Uniform) -> tuple[Chunk, int]:
        """Realize a noun phrase, and return the index of its noun."""
        preposition, dets, nouns, plural, pres, posts, very = plan
        det = dets[int(uniform() * len(dets))]
        noun = nouns[int(uniform() * len(nouns))]
        pre = pres[int(uniform() * len(pres))] if pres else NO_WORD
        post = posts[int(uniform() * len(posts))] if posts else NO_WORD
        key = noun, plural, pre, post, very
        source, target, left, right, shape = self._groups.get(key) or self._group(key)
        place = det, preposition, shape, owner if det in self._own else ""
        frame = self._frames.get(place)
        if frame is None:
            arguments = self.lexicon.determiners[det], preposition, SHAPES[shape], place[3]
            frame = (*self._grammars[0].around(*arguments), *self._grammars[1].around(*arguments))
            self._frames[place] = frame
        (a, ma), (b, mb), (c, mc), (d, md) = frame
        links = link_marks(ma + left + mb, mc + right + md)
        return (a + source + b, c + target + d, links), noun

    def _nominal(self, plan: Nominal, owner: str, uniform: Uniform) -> tuple[list[Chunk], int, str]:
        """Realize a noun phrase; return its chunks, its person, and the form of its possessive."""
        _, first, join, second, relative = plan
        assert first is not None
        chunk, noun = self._phrase(first, owner, uniform)
        feminine, plural = self.lexicon.nouns[noun].feminine, first.plural
        chunks = [chunk]
        if join and second is not None:
            other, noun = self._phrase(second, owner, uniform)
            if join == AND:
                chunks += self.invariant(lex.AND_WORD), other
                feminine, plural = feminine and self.lexicon.nouns[noun].feminine, True
            else:
                chunks = [self._possession(chunk, other)]
                feminine, plural = self.lexicon.nouns[noun].feminine, second.plural
        person = (lex.THEY if plural else lex.HE) + feminine
        owner = "p" if plural else self.lexicon.nouns[noun].owner
        if relative is not None:
            chunks += self._relative(relative, person, owner, uniform)
        return chunks, person, owner

    def _possession(self, owner: Chunk, head: Chunk) -> Chunk:
        """the king 's | horse; le cheval | du roi; con ngựa | của vị vua

        The article that the head has in other languages is linked to "'s", which makes it definite.
        """
        if self.source == "en":
            words, others, links = swap_targets(owner, head)
            free, article = all(j for _, j in links), (len(owner[0]) - 1, 0)
        elif self.target == "en":
            words, others, links = swap_targets(head, owner)
            free, article = all(i for i, _ in links), (0, len(owner[1]) - 1)
        else:
            return concatenate((head, owner))
        return words, others, tuple(sorted((*links, article))) if free else links

    def _relative(self, plan: Relative, person: int, owner: str, uniform: Uniform) -> list[Chunk]:
        subject, predicate = plan
        if subject is None:
            return [self.invariant(lex.SUBJECT_RELATIVE), *self._predicate(predicate, person, owner, NO_WORD, uniform)]
        chunks = self._clause_core(subject, (predicate,), person, uniform)
        return [self.invariant(lex.OBJECT_RELATIVE, chunks[0]), *chunks]

    def _clause_core(self, plan: Nominal, predicates: Iterable[Predicate], agree: int, uniform: Uniform) -> list[Chunk]:
        """Realize a subject and its predicates; `agree` is the object that a relative clause puts first."""
        chunks: list[Chunk] = []
        if plan.pronouns:
            person = plan.pronouns[int(uniform() * len(plan.pronouns))]
            owner = OWNER.get(person, "")
        else:
            chunks, person, owner = self._nominal(plan, "", uniform)
        for i, predicate in enumerate(predicates):
            realized = self._predicate(predicate, person, owner, agree, uniform)
            if i:
                chunks.append(self.invariant(lex.AND_WORD))
            elif plan.pronouns:
                chunks.append(self._pronoun(person, realized[0]))
            chunks += realized
        return chunks

    def _predicate(self, plan: Predicate, person: int, owner: str, agree: int, uniform: Uniform) -> list[Chunk]:
        verb, manners, nominals = plan
        chunks = (
            [self._verb(verb, person, agree, uniform)]
            if isinstance(verb, VerbPlan)
            else [self._copula(verb, person, uniform)]
        )
        if manners:
            chunks.append(self.invariant(lex.MANNER_ADVERBS[manners[int(uniform() * len(manners))]]))
        for nominal in nominals:
            added = self._nominal(nominal, owner, uniform)[0]
            governed = isinstance(verb, VerbPlan) and self._governs_one_side(nominal)
            chunks = self._join_governed(chunks, added, nominal.join) if governed else chunks + added
        return chunks

    def _governs_one_side(self, nominal: Nominal) -> bool:
        """Return whether only one language has a preposition before it: obeys the king, obéit au roi."""
        phrase = nominal.second if nominal.join == OF else nominal.first
        if phrase is None:
            return False
        forms = lex.ADPOSITIONS[phrase.preposition].forms
        return bool(forms[self.source][0]) != bool(forms[self.target][0])

    def _join_governed(self, chunks: list[Chunk], added: list[Chunk], join: int) -> list[Chunk]:
        """Join a verb and its object in one chunk, with the preposition linked to the verb that governs it."""
        french = self._french
        verbs = self._verb_positions[chunks[0]][1 - french]
        both = concatenate([*chunks, *added])
        place = sum(len(chunk[french]) for chunk in chunks)
        places = [place]
        if join == AND:
            places.append(place + sum(len(chunk[french]) for chunk in added[:2]))
        links = {(at, verb) if french == 0 else (verb, at) for at in places for verb in verbs}
        return [(*both[:2], tuple(sorted({*both[2], *links})))]

    def _verb(self, plan: VerbPlan, person: int, agree: int, uniform: Uniform) -> Chunk:
        verbs, tense, polarity, adverbs, clitics = plan
        verb = verbs[int(uniform() * len(verbs))]
        adverb = adverbs[int(uniform() * len(adverbs))] if adverbs else NO_WORD
        clitic = clitics[int(uniform() * len(clitics))] if clitics else NO_WORD
        key = verb, tense, polarity, adverb, person, clitic, agree
        chunk = self._chunks.get(key)
        if chunk is None:
            forms = {
                language: GRAMMARS[language].verb(self.lexicon.verbs[verb], *key[1:])
                for language in (self.source, self.target)
            }
            chunk = self._realize(key, forms.__getitem__)
            self._verb_positions[chunk] = tuple(
                [i for i, mark in enumerate(marks) if "v" in lex.PARTS.get(mark, mark)] for _, marks in forms.values()
            )
        return chunk

    def _copula(self, plan: CopulaPlan, person: int, uniform: Uniform) -> Chunk:
        adjectives, kind, grades, tense = plan
        adjective = adjectives[int(uniform() * len(adjectives))]
        grade = grades[int(uniform() * len(grades))] if grades else NO_WORD
        key = adjective, kind, grade, tense, person
        arguments = (
            self.lexicon.adjectives[adjective],
            kind,
            lex.DEGREE_ADVERBS[grade] if grades else None,
            tense,
            person,
        )
        return self._chunks.get(key) or self._realize(key, lambda language: GRAMMARS[language].copula(*arguments))

    def clause(self, plan: Clause, uniform: Uniform) -> list[Chunk]:
        """Realize a clause."""
        subject, predicates, times, front, _ = plan
        chunks = self._clause_core(subject, predicates, NO_WORD, uniform)
        if not times:
            return chunks
        time = self.invariant(lex.TIME_ADVERBS[times[int(uniform() * len(times))]])
        if front:
            return [time, self.invariant(lex.COMMA), *chunks]
        if self.source == "vi":
            return [swap_targets(time, concatenate(chunks))]
        return [swap_targets(concatenate(chunks), time)] if self.target == "vi" else [*chunks, time]
