"""Lines that are written all in capitals, which most training texts lack."""

from __future__ import annotations

import re

MIN_LETTERS = 4  # a single word of fewer capitals is taken for an abbreviation
_SENTENCE_START = re.compile(r"(?:^|[.!?…]\s+)\W*\w")


def is_all_capitals(line: str) -> bool:
    """Return whether a line has no lower-case letters, and is not an abbreviation or a sign such as a size.

    >>> [is_all_capitals(line) for line in ("HOW ARE YOU?", "STOP!", "USA", "OK", "I am", "42")]
    [True, True, False, False, False, False]
    """
    return line.isupper() and sum(map(str.isalpha, line)) >= MIN_LETTERS


def recase(line: str) -> str:
    """Return a line of capitals in lower case, with a capital at the beginning of each sentence.

    >>> recase("STOP! WHO IS THERE?")
    'Stop! Who is there?'
    """
    return _SENTENCE_START.sub(lambda match: match[0].upper(), line.lower())
