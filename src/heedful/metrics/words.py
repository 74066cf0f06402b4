"""Words of any script, for metrics that compare words."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal

CharacterClass = Literal["letter", "ideograph", "mark", "ignored", "separator"]

# scripts written without spaces: a character is the smallest unit that all evaluations agree on
IDEOGRAPHS = (
    (0x3005, 0x303C),  # 々 〆 〇 and the Hangzhou numerals
    (0x3041, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # CJK ideographs, extension A
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width kana
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),  # further extensions of the ideographs
)
IGNORED = "\u00ad\u200c\u200d\u2060"  # soft hyphen and (non-)joiners: inside a word they do not end it


@cache
def _classify(character: str) -> CharacterClass:
    if character in IGNORED:
        return "ignored"
    category = unicodedata.category(character)[0]
    if category == "M":
        return "mark"
    if category not in "LN":
        return "separator"
    return "ideograph" if any(low <= ord(character) <= high for low, high in IDEOGRAPHS) else "letter"


def split_words(text: str) -> list[str]:
    """Split a text into lowercased runs of letters, marks and digits; each ideograph and kana is a word.

    Punctuation is dropped, and composed and decomposed accents are equal (NFC). On ASCII this is exactly the
    tokenizer of the `rouge-score` package, which drops all letters beyond a-z. Thai, Lao, Khmer and Burmese,
    written without spaces, are not split: segment them first.

    >>> split_words("Don't drink the nước, s'il vous plaît!")
    ['don', 't', 'drink', 'the', 'nước', 's', 'il', 'vous', 'plaît']
    >>> split_words("2024年、東京 Tower")
    ['2024', '年', '東', '京', 'tower']
    """
    words: list[str] = []
    previous: CharacterClass = "separator"
    for character in unicodedata.normalize("NFC", text.lower()):
        current = _classify(character)
        if current == "ignored":
            continue
        if current == "mark" and previous != "separator":
            words[-1] += character  # also after an ideograph, which stays a word of its own
            continue
        if current == "letter" and previous == "letter":
            words[-1] += character
        elif current != "separator":
            words.append(character)
        previous = "letter" if current == "mark" else current
    return words
