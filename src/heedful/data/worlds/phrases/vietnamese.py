"""Vietnamese: nothing inflects; number, tense and possession are words of their own.

A noun includes its classifier ("con mèo").
"""

from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.language import Language, Shape
from heedful.data.worlds.phrases.lexicon import Adjective, Determiner, Invariant, MarkedWords, Noun, Verb

TENSE: dict[int, MarkedWords] = {lex.PRESENT: ((), ""), lex.PAST: (("đã",), "t"), lex.FUTURE: (("sẽ",), "t")}
NEGATION: dict[int, MarkedWords] = {
    lex.POSITIVE: ((), ""),
    lex.NOT: (("không",), "n"),
    lex.NEVER: (("không", "bao", "giờ"), "nnn"),
    lex.NO_LONGER: (("không", "còn"), "nn"),
}
NEVER_YET: MarkedWords = (("chưa", "bao", "giờ"), "Dnn")  # implies the past as well


class Vietnamese(Language):
    def group(self, noun: Noun, plural: bool, pre: Adjective | None, post: Adjective | None, very: bool) -> MarkedWords:
        """con mèo đen nhỏ, người đàn ông rất già"""
        words, marks = noun.vi, "h" * len(noun.vi)
        if very:
            words, marks = (*words, "rất"), marks + "g"
        for adjective, mark in ((post, "b"), (pre, "a")):
            if adjective:
                word = adjective.vi[noun.kind]
                words, marks = words + word, marks + mark * len(word)
        return words, marks

    def around(self, det: Determiner, preposition: str, shape: Shape, owner: str) -> tuple[MarkedWords, MarkedWords]:
        """trong những _ này"""
        (words, marks), after = det.forms["vi"]
        before = lex.ADPOSITIONS[preposition].forms["vi"][0]
        return (before + words, "r" * len(before) + marks), after

    def verb(
        self, verb: Verb, tense: int, polarity: int, adverb: int, person: int, clitic: int, agree: int
    ) -> MarkedWords:
        """thường xuyên nhìn thấy, đã không nhìn thấy cô ấy"""
        if (tense, polarity) == (lex.PAST, lex.NEVER):
            words, marks = NEVER_YET
        else:
            (words, marks), (minus, n) = TENSE[tense], NEGATION[polarity]
            words, marks = words + minus, marks + n
        often = lex.FREQUENCY_ADVERBS[adverb].forms["vi"][0] if adverb >= 0 else ()
        whom = tuple(lex.PRONOUNS[clitic][2].split()) if clitic >= 0 else ()
        words = words + often + verb.vi + whom
        return words, marks + "a" * len(often) + "v" * len(verb.vi) + "c" * len(whom)

    def copula(self, adjective: Adjective, kind: str, grade: Invariant | None, tense: int, person: int) -> MarkedWords:
        """rất hạnh phúc, đã không hạnh phúc; there is no word for "is" """
        words, marks = TENSE[tense]
        middle, mark = (grade.forms["vi"][0], "g") if grade else (("không",), "n")
        word = adjective.vi[kind]
        return (*words, *middle, *word), f"{marks}{mark}{'j' * len(word)}"
