"""Every error a user can cause: what is wrong, where, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class HeedfulError(Exception):
    """Base of all of them. The command line prints the message and exits with 2, without a traceback."""


class Mistake(NamedTuple):
    """One thing wrong with a recipe: the file or the command line, the section, and what would be right."""

    where: str
    section: str
    text: str


class ConfigError(HeedfulError):
    """A recipe or an override that cannot be used. Carries every mistake, not only the first.

    >>> print(ConfigError([Mistake("recipe.toml", "model.attention", "scroe: no such setting")]))
    recipe.toml [model.attention] cannot be used:
      - scroe: no such setting
    """

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        blocks: dict[str, list[str]] = {}
        for where, section, text in mistakes:
            blocks.setdefault(f"{where} [{section}]" if section else where, []).append(f"  - {text}")
        lines = [line for head, texts in blocks.items() for line in (f"{head} cannot be used:", *texts)]
        super().__init__("\n".join(lines))


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
