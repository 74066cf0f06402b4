"""Every error that a user can cause; messages say what happened, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class HeedfulError(Exception):
    """Base of all errors of this package; the command line prints the message and exits with status 2."""


class ArgumentError(HeedfulError, TypeError, ValueError):
    """A wrong argument of a Python call; the message begins with the argument's name."""


class Problem(NamedTuple):
    """One problem of a recipe: the file or override it is in, the section, and a sentence."""

    source: str
    section: str
    text: str


class ConfigError(HeedfulError):
    """A recipe or an override that cannot be used; the message lists all problems, not only the first.

    >>> print(ConfigError([Problem("recipe.toml", "model.attention", "scroe: no such setting")]))
    recipe.toml [model.attention] cannot be used:
      - scroe: no such setting
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        blocks: dict[str, list[str]] = {}
        for source, section, text in problems:
            blocks.setdefault(f"{source} [{section}]" if section else source, []).append(f"  - {text}")
        lines = [line for head, texts in blocks.items() for line in (f"{head} cannot be used:", *texts)]
        super().__init__("\n".join(lines))


class ShapeError(HeedfulError):
    """Tensors or sizes that do not match; the message names both."""


class DataError(HeedfulError):
    """A data file or an input that is missing, malformed or empty; the message names file and line."""


class WorldError(HeedfulError):
    """A request for generated data that cannot be fulfilled."""


class TooLargeError(DataError):
    """An input above a limit of size: tokens, pixels, bytes."""


class ModelError(HeedfulError):
    """A model folder that is missing, incomplete, damaged or of an unknown format."""


class TrainingError(HeedfulError):
    """Training that cannot start or continue."""


class TrainingStopped(TrainingError):  # noqa: N818 - requested by the user
    """Training that the user stopped; the same command resumes it."""


class DecodingError(HeedfulError):
    """An output that cannot be generated: the model's numbers are not finite, or the call was ended early."""


class DecodingTimeoutError(DecodingError):
    """Decoding that took longer than its time limit; the message says how far it came."""


class DecodingCancelledError(DecodingError):
    """Decoding that its caller cancelled; the message says how far it came."""


class TraceError(HeedfulError):
    """A trace that cannot be read, drawn or exported."""


class PluginError(HeedfulError):
    """A name that is not registered, or a plugin that cannot be loaded."""


class ServeError(HeedfulError):
    """A server that cannot start with its settings, or one that refused a request of `heedful.Client`."""


MAX_LISTED = 60  # names that a hint lists; every table of the package has fewer
MAX_COMPARED = 5_000  # names that are compared with the mistyped one


def nearest(name: str, known: Iterable[str], limit: int = MAX_LISTED) -> str:
    """Return the hint that follows "no such ...": the closest known name, if one is close, then the known names.

    Of more than `limit` names only the first ones are listed.

    >>> nearest("aditive", ["additive", "dot"])
    'did you mean "additive"? known: additive, dot'
    >>> nearest("zzz", ["additive", "dot"])
    'known: additive, dot'
    >>> nearest("zzz", map(str, range(300)), limit=3)
    'known: 0, 1, 2 and 297 more'
    """
    names = list(known)
    compared = names[:MAX_COMPARED]
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in compared], n=1, cutoff=0.6)
    lead = ""
    if close:
        lead = f'did you mean "{next(n for n in compared if n.lower() == close[0])}"? '
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return f"{lead}known: {', '.join(names[:limit])}{more}"
