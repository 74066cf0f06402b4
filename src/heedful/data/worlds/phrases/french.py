"""French: agreement, elision, contraction; nouns with adjectives, the words around them, verbs."""

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.language import Language, Shape
from heedful.data.worlds.phrases.lexicon import Adjective, Determiner, Invariant, MarkedWords, Noun, Verb

NEGATION = {lex.NOT: "pas", lex.NEVER: "jamais", lex.NO_LONGER: "plus"}
FORM_OF_PERSON = {lex.ME: 0, lex.YOU: 1, lex.HE: 2, lex.SHE: 2, lex.WE: 3, lex.THEY: 4, lex.THEY_F: 4}
AVOIR = ("ai", "as", "a", "avons", "ont")
ETRE = ("suis", "es", "est", "sommes", "sont")
WAS = ("étais", "étais", "était", "étions", "étaient")
FUTURE = ("ai", "as", "a", "ons", "ont")
CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
BEFORE_VOWEL = 4  # the masculine form


def elides(word: str) -> bool:
    """Return whether "le", "que" and the like are elided before a word; only "huit" has an aspirated h here."""
    return word[0] in "aàâeéèêiîoôuhœ" and word not in ("huit", "onze")


def elide(word: str, following: str) -> str:
    """Return the form of a word before another.

    >>> elide("que", "il"), elide("que", "le"), elide("si", "il"), elide("si", "elle")
    ("qu'", 'que', "s'", 'si')
    """
    if word == "si":
        return "s'" if following in ("il", "ils") else word
    drops_vowel = word in ("le", "la", "de", "que", "ne", "me", "te", "je") and elides(following)
    return word[:-1] + "'" if drops_vowel else word


def feminine(person: int) -> bool:
    return person in (lex.SHE, lex.THEY_F)


def plural(person: int) -> bool:
    return person in (lex.WE, lex.THEY, lex.THEY_F)


def _determiner(word: str, plural: bool, shape: Shape, owner: str) -> str:
    """Return one word of a determiner; `shape.vowel` is that of the word after it."""
    masculine = not shape.feminine
    if word in ("MON", "TON", "SON"):
        if word == "SON" and owner == "p":
            return "leurs" if plural else "leur"
        return word[0].lower() + ("es" if plural else "on" if masculine or shape.vowel else "a")
    if "," in word:
        return word.split(",")[shape.feminine]
    if word == "LE":
        return "les" if plural else "l'" if shape.vowel else "le" if masculine else "la"
    if word == "CE":
        return "ces" if plural else "cette" if shape.feminine else "cet" if shape.vowel else "ce"
    forms = {
        "UN": "un" if masculine else "une",
        "NOTRE": "nos" if plural else "notre",
        "DE": "d'" if shape.vowel else "de",
    }
    return forms.get(word, word)


def _participle(verb: Verb, agree: int) -> str:
    word = verb.fr[6] + ("e" if feminine(agree) else "")
    return word + ("s" if plural(agree) and not word.endswith("s") else "")


class French(Language):
    def group(self, noun: Noun, plural: bool, pre: Adjective | None, post: Adjective | None, very: bool) -> MarkedWords:
        """petits chats noirs, très vieil homme, homme très heureux"""
        form = noun.feminine + 2 * plural
        words = noun.fr[plural]
        marks = "h" * len(words)
        if pre:
            before = pre.fr[BEFORE_VOWEL if form == 0 and elides(words[0]) else form]
            words, marks = before + words, "a" * len(before) + marks
            if very:
                words, marks = ("très", *words), "g" + marks
        if post:
            after = post.fr[form]
            if very:
                words, marks = (*words, "très"), marks + "g"
            words, marks = words + after, marks + "b" * len(after)
        return words, marks

    def around(self, det: Determiner, preposition: str, shape: Shape, owner: str) -> tuple[MarkedWords, MarkedWords]:
        """près de cette _ -là, beaucoup d' _, au _"""
        (words, marks), after = det.forms["fr"]
        chosen: list[str] = []
        for word in reversed(words):
            vowel = elides(chosen[0]) if chosen else shape.vowel
            chosen.insert(0, _determiner(word, det.plural, shape._replace(vowel=vowel), owner))
        before = list(lex.ADPOSITIONS[preposition].forms["fr"][0])
        if before and (before[-1], chosen[0]) in CONTRACTED:
            chosen[0] = CONTRACTED[before.pop(), chosen[0]]
            marks = "R" + marks[1:]
        elif before:
            before[-1] = elide(before[-1], chosen[0])
        return ((*before, *chosen), "r" * len(before) + marks), after

    def verb(
        self, verb: Verb, tense: int, polarity: int, adverb: int, person: int, clitic: int, agree: int
    ) -> MarkedWords:
        """voit souvent, ne l' a pas vue, ne verra plus"""
        form = FORM_OF_PERSON[person]
        words = [("ne", "n")] if polarity else []
        words += [(lex.PRONOUNS[clitic][4], "c")] if clitic >= 0 else []
        if tense == lex.PRESENT:
            words.append((verb.fr[form], "v"))
        elif tense == lex.FUTURE:
            words.append((verb.fr[5] + FUTURE[form], "T"))
        else:
            words.append(((ETRE if verb.etre else AVOIR)[form], "t"))
        words += [(NEGATION[polarity], "n")] if polarity else []
        words += [(word, "a") for word in lex.FREQUENCY_ADVERBS[adverb].forms["fr"][0]] if adverb >= 0 else []
        if tense == lex.PAST:
            words.append((_participle(verb, person if verb.etre else clitic if clitic >= 0 else agree), "v"))
        words += [(word, "v") for word in verb.tail]
        for i, (following, _) in enumerate(words[1:]):
            words[i] = elide(words[i][0], following), words[i][1]
        return tuple(word for word, _ in words), "".join(mark for _, mark in words)

    def copula(self, adjective: Adjective, kind: str, grade: Invariant | None, tense: int, person: int) -> MarkedWords:
        """est très heureuse; without a grade it is negated: n' était pas heureuse"""
        form = FORM_OF_PERSON[person]
        be = (ETRE[form], WAS[form], "ser" + FUTURE[form])[tense]
        mark = "k" if tense == lex.PRESENT else "K"
        words = adjective.fr[feminine(person) + 2 * plural(person)]
        marks = "j" * len(words)
        if grade:
            return (be, *grade.forms["fr"][0], *words), f"{mark}g{marks}"
        return (elide("ne", be), be, "pas", *words), f"n{mark}n{marks}"
