"""Control characters made visible, so that no file, model or file name can send commands to a terminal."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed
_CONTROL_OR_SPACE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def show_controls(text: str) -> str:
    r"""Return the text with every control character but tab and line feed as `\u001b`.

    The form is that of JSON and TOML strings, so that printed JSON and TOML mean the same as before.

    >>> show_controls("a\x1b]52;c;\x07b")
    'a\\u001b]52;c;\\u0007b'
    """
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return the text as one line: tabs and line ends are shown like all control characters.

    >>> one_line("a\nb")
    'a\\u000ab'
    """
    return _CONTROL_OR_SPACE.sub(_escape, text)


def shorten(text: str, letters: int) -> str:
    """Return the text as one line of at most so many letters, with an ellipsis in the middle.

    >>> shorten("counterrevolutionary", 9)
    'coun…nary'
    """
    text = one_line(text)
    if len(text) <= letters:
        return text
    end = (letters - 1) // 2
    return f"{text[: letters - 1 - end]}…{text[len(text) - end :]}"


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"
