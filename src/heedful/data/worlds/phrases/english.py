"""English: nouns with adjectives, the words around them, verbs with auxiliaries."""

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.language import Language, Shape
from heedful.data.worlds.phrases.lexicon import Adjective, Determiner, Invariant, MarkedWords, Noun, Tokens, Verb

OWN = {"": "", "m": "his", "f": "her", "n": "its", "t": "their", "p": "their"}
NEGATION = {lex.POSITIVE: (), lex.NOT: ("not",), lex.NEVER: ("never",), lex.NO_LONGER: ("no", "longer")}
BE = {lex.PRESENT: ("am", "is", "are"), lex.PAST: ("was", "was", "were")}


def takes_an(word: str) -> bool:
    """Return whether the article before a word is "an"."""
    return word[0] in "aeio" or word in ("honest", "umbrella", "uncle")


class English(Language):
    def group(self, noun: Noun, plural: bool, pre: Adjective | None, post: Adjective | None, very: bool) -> MarkedWords:
        """small black cats, very happy man"""
        words: Tokens = (noun.en[plural],)
        marks = "h"
        if post:
            words, marks = (post.en, *words), "b" + marks
        if pre:
            words, marks = (pre.en, *words), "a" + marks
        return (("very", *words), "g" + marks) if very else (words, marks)

    def around(self, det: Determiner, preposition: str, shape: Shape, owner: str) -> tuple[MarkedWords, MarkedWords]:
        """in front of these _; the _ 's"""
        words, marks = det.forms["en"][0]
        forms = {"A": "an" if shape.an else "a", "OWN": OWN[owner]}
        words = tuple(forms.get(word, word) for word in words)
        if preposition == "of":
            return (words, marks), (("'" if det.plural and shape.s else "'s",), "r")
        before = lex.ADPOSITIONS[preposition].forms["en"][0]
        return (before + words, "r" * len(before) + marks), ((), "")

    def verb(
        self, verb: Verb, tense: int, polarity: int, adverb: int, person: int, clitic: int, agree: int
    ) -> MarkedWords:
        """often sees, did not see her, will no longer see"""
        base, third, past = verb.en
        third = third if person in (lex.HE, lex.SHE) else base
        minus = NEGATION[polarity]
        often = lex.FREQUENCY_ADVERBS[adverb].forms["en"][0] if adverb >= 0 else ()
        middle, marks = minus + often, "n" * len(minus) + "a" * len(often)
        if tense == lex.FUTURE:
            words, marks = ("will", *middle, base), f"t{marks}v"
        elif polarity == lex.NOT and tense == lex.PAST:
            words, marks = ("did", *middle, base), f"D{marks}v"
        elif polarity == lex.NOT:
            words, marks = ("does" if third != base else "do", *middle, base), f"n{marks}v"
        elif tense == lex.PAST:
            words, marks = (*middle, past), f"{marks}T"
        else:
            words, marks = (*middle, third), f"{marks}v"
        words, marks = words + verb.particle, marks + "v" * len(verb.particle)
        return ((*words, lex.PRONOUNS[clitic][3]), marks + "c") if clitic >= 0 else (words, marks)

    def copula(self, adjective: Adjective, kind: str, grade: Invariant | None, tense: int, person: int) -> MarkedWords:
        """is very happy; without a grade it is negated: is not happy"""
        middle, mark = (grade.forms["en"][0], "g") if grade else (("not",), "n")
        if tense == lex.FUTURE:
            words, marks = (("will", "be", *middle), "tkg") if grade else (("will", "not", "be"), "tnk")
        else:
            be = BE[tense][0 if person == lex.ME else 1 if person in (lex.HE, lex.SHE) else 2]
            words, marks = (be, *middle), ("K" if tense == lex.PAST else "k") + mark
        return (*words, adjective.en), marks + "j"
