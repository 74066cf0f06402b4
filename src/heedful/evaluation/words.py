"""Words of any script, for measures that compare words."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Literal

Kind = Literal["joins", "alone", "mark", "nothing", "gap"]

# Written without spaces between words; a character is the smallest unit that all evaluations agree on.
ALONE = (
    (0x3005, 0x303C),  # 々 〆 〇 and the Hangzhou numerals
    (0x3041, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # CJK ideographs, extension A
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width kana
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x3FFFF),  # the ideographs' further extensions
)
UNSEEN = "\u00ad\u200c\u200d\u2060"  # soft hyphen, (non-)joiners: inside a word, no end of it


@cache
def _kind(character: str) -> Kind:
    if character in UNSEEN:
        return "nothing"
    category = unicodedata.category(character)[0]
    if category == "M":
        return "mark"
    if category not in "LN":
        return "gap"
    return "alone" if any(low <= ord(character) <= high for low, high in ALONE) else "joins"


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, marks and digits; each ideograph and kana is a word of its own.

    Punctuation is dropped, composed and decomposed accents are one (NFC). On ASCII this is exactly the
    tokeniser of the `rouge-score` package, which elsewhere drops every letter beyond a-z. Thai, Lao, Khmer
    and Burmese, written without spaces, are not cut: segment them first.

    >>> words("Don't drink the nước, s'il vous plaît!")
    ['don', 't', 'drink', 'the', 'nước', 's', 'il', 'vous', 'plaît']
    >>> words("2024年、東京 Tower")
    ['2024', '年', '東', '京', 'tower']
    """
    found: list[str] = []
    before: Kind = "gap"
    for character in unicodedata.normalize("NFC", text.lower()):
        kind = _kind(character)
        if kind == "nothing":
            continue
        if kind == "mark" and before != "gap":
            found[-1] += character  # also behind an ideograph, which stays alone
            continue
        if kind == "joins" and before == "joins":
            found[-1] += character
        elif kind != "gap":
            found.append(character)
        before = "joins" if kind == "mark" else kind
    return found
