"""Every error a user can cause: what is wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class HeedfulError(Exception):
    """Base of all of them. The command line prints the message and exits with 2, without a traceback."""


class ConfigError(HeedfulError):
    """A recipe or an override that cannot be used. Carries every mistake, not only the first.

    >>> print(ConfigError("recipe.toml", [("model.attention", "scroe: no such setting")]))
    recipe.toml [model.attention] cannot be used:
      - scroe: no such setting
    """

    def __init__(self, where: str, mistakes: Sequence[tuple[str, str]]) -> None:
        self.where = where
        self.mistakes = tuple(mistakes)
        sections: dict[str, list[str]] = {}
        for section, text in mistakes:
            sections.setdefault(section, []).append(text)
        blocks = []
        for section, texts in sections.items():
            head = f"{where} [{section}]" if section else where
            blocks.append("\n".join([f"{head} cannot be used:", *(f"  - {text}" for text in texts)]))
        super().__init__("\n".join(blocks))


class ShapeError(HeedfulError):
    """Tensors or sizes that do not fit one another; the message names both sides."""


class DataError(HeedfulError):
    """A data file that is missing, broken or empty; the message names file and line."""


class WorldError(HeedfulError):
    """A world asked for something it cannot make."""


class ModelError(HeedfulError):
    """A model folder that is missing, incomplete, damaged or of another format."""


class TrainingError(HeedfulError):
    """Training that cannot start or go on."""


class TraceError(HeedfulError):
    """A trace file that cannot be read or drawn."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The help that follows "no such ...": the closest known name if one is close, then all of them.

    >>> nearest("aditive", ["additive", "dot"])
    'did you mean "additive"? known: additive, dot'
    >>> nearest("zzz", ["additive", "dot"])
    'known: additive, dot'
    """
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1, cutoff=0.6)
    lead = ""
    if close:
        lead = f'did you mean "{next(n for n in names if n.lower() == close[0])}"? '
    return f"{lead}known: {', '.join(names)}"
