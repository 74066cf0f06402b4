"""From plans to sentence pairs, in one direction of translation.

A chunk is a run of words on both sides with its own links. The three languages put their chunks in the same
order but in two places (the king 's | horse; what happened | yesterday), so a sentence is a concatenation of
chunks, and most chunks are remembered.
"""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.english import English, takes_an
from heedful.data.worlds.phrases.french import French, elided, elides
from heedful.data.worlds.phrases.language import Language, Shape
from heedful.data.worlds.phrases.lexicon import Fixed, Lexicon, Marked, Tokens
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
Dice = Callable[[], float]  # from 0 to just below 1

SPEAK: dict[str, Language] = {"en": English(), "fr": French(), "vi": Vietnamese()}
SHAPES = tuple(Shape(*bits) for bits in product((False, True), repeat=4))
NUMBER = {shape: i for i, shape in enumerate(SHAPES)}
OWNER = {lex.HE: "m", lex.SHE: "f", lex.THEY: "p"}  # of his, her, their; i, you and we have none
NO_WORD = -1


@cache
def link(source: str, target: str) -> Links:
    """All pairs of words whose marks share a part of the meaning."""
    left, right = ([set(lex.PARTS.get(mark, mark)) for mark in marks] for marks in (source, target))
    return tuple((i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a & b)


def joined(chunks: Iterable[Chunk]) -> Chunk:
    """The chunks in the same order on both sides."""
    source: list[str] = []
    target: list[str] = []
    links: list[tuple[int, int]] = []
    for left, right, local in chunks:
        s, t = len(source), len(target)
        source += left
        target += right
        links += [(s + i, t + j) for i, j in local]
    return tuple(source), tuple(target), tuple(links)


def crossed(first: Chunk, second: Chunk) -> Chunk:
    """Two chunks in this order in the source and in the other in the target."""
    s, t = len(first[0]), len(second[1])
    links = [(i, t + j) for i, j in first[2]] + [(s + i, j) for i, j in second[2]]
    return first[0] + second[0], second[1] + first[1], tuple(links)


class World:
    """Fills plans with words; `lexicon` may be a smaller one."""

    def __init__(self, source: str, target: str, lexicon: Lexicon | None = None) -> None:
        self.lexicon = lexicon or lex.lexicon()
        self.source, self.target = source, target
        self._speakers = SPEAK[source], SPEAK[target]
        self._english, self._french = (
            (source, target).index(a) if a in (source, target) else NO_WORD for a in ("en", "fr")
        )
        self._own = frozenset(i for i, det in enumerate(self.lexicon.determiners) if det.own)
        self._chunks: dict[object, Chunk] = {}
        self._main: dict[Chunk, tuple[list[int], ...]] = {}  # the verbs of verb chunks, in both languages
        self._groups: dict[object, tuple[Tokens, Tokens, str, str, int]] = {}
        self._frames: dict[object, tuple[Marked, Marked, Marked, Marked]] = {}

    def _speak(self, key: object, forms: Callable[[str], Marked]) -> Chunk:
        """What the two languages make of the same thing, remembered by its key."""
        source, target = forms(self.source), forms(self.target)
        chunk = self._chunks[key] = source[0], target[0], link(source[1], target[1])
        return chunk

    def _first(self, chunk: Chunk) -> str:
        """Its first word in French."""
        return (chunk[1] if self._french else chunk[0])[0]

    def fixed(self, fixed: Fixed, following: Chunk | None = None) -> Chunk:
        """A word that does not inflect; que and si are elided before what follows."""
        last = ""
        if following and self._french >= 0:
            last = elided(fixed.forms["fr"][0][-1], self._first(following))
        key = fixed.name, last
        chunk = self._chunks.get(key)
        if chunk is None:
            forms = dict(fixed.forms)
            if last:
                forms["fr"] = (*forms["fr"][0][:-1], last), forms["fr"][1]
            chunk = self._speak(key, forms.__getitem__)
        return chunk

    def _pronoun(self, who: int, verb: Chunk) -> Chunk:
        first = self._first(verb) if self._french >= 0 and who == lex.ME else " "
        key = who, elides(first)
        chunk = self._chunks.get(key)
        if chunk is None:
            en, fr, vi = (tuple(word.split()) for word in lex.PERSONS[who][:3])
            forms = {"en": en, "fr": (elided(fr[0], first),), "vi": vi}
            chunk = self._speak(key, lambda language: (forms[language], "x" * len(forms[language])))
        return chunk

    def _group(self, key: tuple[int, bool, int, int, bool]) -> tuple[Tokens, Tokens, str, str, int]:
        """A noun with its adjectives, and its shape."""
        noun, plural, pre, post, very = key
        words, adjectives = self.lexicon.nouns[noun], self.lexicon.adjectives
        before, after = adjectives[pre] if pre >= 0 else None, adjectives[post] if post >= 0 else None
        forms = [speak.group(words, plural, before, after, very) for speak in self._speakers]
        en, fr = (forms[side][0] if side >= 0 else (" ",) for side in (self._english, self._french))
        shape = Shape(words.feminine, elides(fr[0]), takes_an(en[0]), plural and en[-1].endswith("s"))
        (source, left), (target, right) = forms
        group = self._groups[key] = source, target, left, right, NUMBER[shape]
        return group

    def _phrase(self, plan: NounPlan, owner: str, dice: Dice) -> tuple[Chunk, int]:
        """A noun phrase and which noun it has."""
        preposition, dets, nouns, plural, pres, posts, very = plan
        det = dets[int(dice() * len(dets))]
        noun = nouns[int(dice() * len(nouns))]
        pre = pres[int(dice() * len(pres))] if pres else NO_WORD
        post = posts[int(dice() * len(posts))] if posts else NO_WORD
        key = noun, plural, pre, post, very
        source, target, left, right, shape = self._groups.get(key) or self._group(key)
        place = det, preposition, shape, owner if det in self._own else ""
        frame = self._frames.get(place)
        if frame is None:
            given = self.lexicon.determiners[det], preposition, SHAPES[shape], place[3]
            frame = (*self._speakers[0].around(*given), *self._speakers[1].around(*given))
            self._frames[place] = frame
        (a, ma), (b, mb), (c, mc), (d, md) = frame
        links = link(ma + left + mb, mc + right + md)
        return (a + source + b, c + target + d, links), noun

    def _nominal(self, plan: Nominal, owner: str, dice: Dice) -> tuple[list[Chunk], int, str]:
        """The chunks of a noun phrase, who it is, and whose things are its own."""
        _, first, join, second, relative = plan
        assert first is not None
        chunk, noun = self._phrase(first, owner, dice)
        feminine, plural = self.lexicon.nouns[noun].feminine, first.plural
        chunks = [chunk]
        if join and second is not None:
            other, noun = self._phrase(second, owner, dice)
            if join == AND:
                chunks += self.fixed(lex.BOTH), other
                feminine, plural = feminine and self.lexicon.nouns[noun].feminine, True
            else:
                chunks = [self._possession(chunk, other)]
                feminine, plural = self.lexicon.nouns[noun].feminine, second.plural
        who = (lex.THEY if plural else lex.HE) + feminine
        owner = "p" if plural else self.lexicon.nouns[noun].owner
        if relative is not None:
            chunks += self._relative(relative, who, owner, dice)
        return chunks, who, owner

    def _possession(self, owner: Chunk, head: Chunk) -> Chunk:
        """the king 's | horse; le cheval | du roi; con ngựa | của vị vua

        The article that the head has in other languages is linked to 's, which makes it definite.
        """
        if self.source == "en":
            words, others, links = crossed(owner, head)
            free, article = all(j for _, j in links), (len(owner[0]) - 1, 0)
        elif self.target == "en":
            words, others, links = crossed(head, owner)
            free, article = all(i for i, _ in links), (0, len(owner[1]) - 1)
        else:
            return joined((head, owner))
        return words, others, tuple(sorted((*links, article))) if free else links

    def _relative(self, plan: Relative, who: int, owner: str, dice: Dice) -> list[Chunk]:
        subject, predicate = plan
        if subject is None:
            return [self.fixed(lex.WHO), *self._predicate(predicate, who, owner, NO_WORD, dice)]
        chunks = self._acting(subject, (predicate,), who, dice)
        return [self.fixed(lex.WHOM, chunks[0]), *chunks]

    def _acting(self, plan: Nominal, predicates: Iterable[Predicate], agree: int, dice: Dice) -> list[Chunk]:
        """A subject and what it does; `agree` is the object that a relative clause has put first."""
        chunks: list[Chunk] = []
        if plan.pronouns:
            who = plan.pronouns[int(dice() * len(plan.pronouns))]
            owner = OWNER.get(who, "")
        else:
            chunks, who, owner = self._nominal(plan, "", dice)
        for i, predicate in enumerate(predicates):
            does = self._predicate(predicate, who, owner, agree, dice)
            if i:
                chunks.append(self.fixed(lex.BOTH))
            elif plan.pronouns:
                chunks.append(self._pronoun(who, does[0]))
            chunks += does
        return chunks

    def _predicate(self, plan: Predicate, who: int, owner: str, agree: int, dice: Dice) -> list[Chunk]:
        verb, manners, nominals = plan
        if isinstance(verb, VerbPlan):
            chunks = [self._verb(verb, who, agree, dice)]
        else:
            chunks = [self._copula(verb, who, dice)]
        if manners:
            chunks.append(self.fixed(lex.WAYS[manners[int(dice() * len(manners))]]))
        for nominal in nominals:
            added = self._nominal(nominal, owner, dice)[0]
            governed = isinstance(verb, VerbPlan) and self._lacks(nominal)
            chunks = self._governing(chunks, added, nominal.join) if governed else chunks + added
        return chunks

    def _lacks(self, nominal: Nominal) -> bool:
        """Whether one language alone has a preposition before it: obeys the king, obéit au roi."""
        phrase = nominal.second if nominal.join == OF else nominal.first
        if phrase is None:
            return False
        forms = lex.ADPOSITIONS[phrase.preposition].forms
        return bool(forms[self.source][0]) != bool(forms[self.target][0])

    def _governing(self, chunks: list[Chunk], added: list[Chunk], join: int) -> list[Chunk]:
        """A verb and its object in one chunk, where the preposition is linked to the verb that wants it."""
        french = self._french
        verbs = self._main[chunks[0]][1 - french]
        both = joined([*chunks, *added])
        place = sum(len(chunk[french]) for chunk in chunks)
        places = [place]
        if join == AND:
            places.append(place + sum(len(chunk[french]) for chunk in added[:2]))
        links = {(at, verb) if french == 0 else (verb, at) for at in places for verb in verbs}
        return [(*both[:2], tuple(sorted({*both[2], *links})))]

    def _verb(self, plan: VerbPlan, who: int, agree: int, dice: Dice) -> Chunk:
        verbs, tense, polarity, adverbs, clitics = plan
        verb = verbs[int(dice() * len(verbs))]
        adverb = adverbs[int(dice() * len(adverbs))] if adverbs else NO_WORD
        clitic = clitics[int(dice() * len(clitics))] if clitics else NO_WORD
        key = verb, tense, polarity, adverb, who, clitic, agree
        chunk = self._chunks.get(key)
        if chunk is None:
            forms = {
                language: SPEAK[language].verb(self.lexicon.verbs[verb], *key[1:])
                for language in (self.source, self.target)
            }
            chunk = self._speak(key, forms.__getitem__)
            self._main[chunk] = tuple(
                [i for i, mark in enumerate(marks) if "v" in lex.PARTS.get(mark, mark)]
                for _, marks in forms.values()
            )
        return chunk

    def _copula(self, plan: CopulaPlan, who: int, dice: Dice) -> Chunk:
        adjectives, kind, grades, tense = plan
        adjective = adjectives[int(dice() * len(adjectives))]
        grade = grades[int(dice() * len(grades))] if grades else NO_WORD
        key = adjective, kind, grade, tense, who
        given = self.lexicon.adjectives[adjective], kind, lex.GRADES[grade] if grades else None, tense, who
        return self._chunks.get(key) or self._speak(key, lambda language: SPEAK[language].copula(*given))

    def clause(self, plan: Clause, dice: Dice) -> list[Chunk]:
        subject, predicates, times, front, _ = plan
        chunks = self._acting(subject, predicates, NO_WORD, dice)
        if not times:
            return chunks
        time = self.fixed(lex.MOMENTS[times[int(dice() * len(times))]])
        if front:
            return [time, self.fixed(lex.COMMA), *chunks]
        if self.source == "vi":
            return [crossed(time, joined(chunks))]
        return [crossed(joined(chunks), time)] if self.target == "vi" else [*chunks, time]
