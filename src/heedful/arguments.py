"""Arguments of Python calls: one item or several, and errors that name arguments instead of command-line options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heedful.errors import ArgumentError, HeedfulError

PYTHON_NAMES: Mapping[str, str] = {"set": "edits", "metric": "metrics", "test": "tests"}  # others differ by "_" only
WITH_VALUE = ("beam", "detail", "on-too-long", "site", "split", "task", "test", "view")  # in messages
PHRASES: Mapping[str, str] = {
    "pass one with -m": 'pass the name of its folder: heedful.load("folder")',
    "draw it with -o ": "use ",
    "write it with -o ": "use ",
    "print it without -o": "use the command line",
    "name files in data.valid": "give valid=...",
    "name files in data.test": "give test=...",
}
_OVERRIDE = re.compile(r'^override "([\w.]+) *=.*" (?:\[[\w.]+\] )?cannot be used:$', re.MULTILINE)
_OPTION = re.compile(rf"--({'|'.join(WITH_VALUE)}) (\"?)([\w.-]+)\2(?!\w)|(?<![\w-])--([a-z][a-z0-9-]*)")


def to_python(message: str) -> str:
    """Return an error message with arguments of Python in place of command-line options.

    >>> to_python("--what-if: is for models that generate text; use --set")
    'what_if: is for models that generate text; use edits'
    >>> to_python("use --view lines, or record it with --beam 5")
    'use view="lines", or record it with beam=5'
    """
    for phrase, python in PHRASES.items():
        message = message.replace(phrase, python)
    message = _OVERRIDE.sub(r"the setting \1 cannot be used:", message)
    return _OPTION.sub(_argument, message)


def _argument(match: re.Match[str]) -> str:
    option, _, value, plain = match.groups()
    name = option or plain
    name = PYTHON_NAMES.get(name, name.replace("-", "_"))
    if value is None:
        return name
    return f"{name}={value}" if value.isdigit() else f'{name}="{value}"'


@contextmanager
def python_errors() -> Iterator[None]:
    """Rewrite the message of any HeedfulError for users of Python."""
    try:
        yield
    except HeedfulError as error:
        error.args = tuple(to_python(arg) if isinstance(arg, str) else arg for arg in error.args)
        raise


def is_several(inputs: object) -> bool:
    """Return whether `inputs` are several items: a list, a tuple, a generator, a column of a data frame.

    Text, bytes, paths, images and arrays of two or more dimensions are one item.

    >>> is_several("a line"), is_several(["a line"]), is_several(Path("photo.jpg"))
    (False, True, False)
    """
    if isinstance(inputs, str | bytes | Path) or getattr(inputs, "ndim", 1) > 1:
        return False
    return isinstance(inputs, Iterable) and not isinstance(inputs, Mapping)


def as_list(inputs: object) -> list[Any]:
    """Return several items as a list, one item as a list of it."""
    return list(inputs) if is_several(inputs) else [inputs]  # type: ignore[call-overload]


def as_texts(inputs: object, name: str = "inputs") -> list[str]:
    """Return one text or several as a list; anything else raises an ArgumentError that names the argument.

    >>> as_texts(["a", 3])
    Traceback (most recent call last):
    ...
    heedful.errors.ArgumentError: inputs[1]: expected text, got int
    """
    texts = as_list(inputs)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            where = f"{name}[{index}]" if is_several(inputs) else name
            raise ArgumentError(f"{where}: expected text, got {type(text).__name__}")
    return texts


def one_per_input(value: Any, count: int, several: bool, name: str) -> list[Any]:
    """Return an argument of which each input has its own, such as `target`; None means none for all.

    >>> one_per_input(["a", "b"], 2, True, "target"), one_per_input(None, 2, True, "target")
    (['a', 'b'], [None, None])
    """
    if value is None or not several:
        return [value] * count
    values = as_list(value)
    if len(values) != count:
        raise ArgumentError(f"{name}: expected one per input, so {count}, got {len(values)}")
    return values
