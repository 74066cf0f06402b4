"""Length limits at inference: what happens to input lines with more tokens than a model reads."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from heedful.config import DataConfig, Recipe
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError, DecodingError

MIN_LIMIT = 1_000  # tokens: lines up to this length are read even if training lines were shorter
CHARACTERS_PER_TOKEN = 64  # a line with more of them is cut before it is tokenized
OnTooLong = Literal["cut", "skip", "error"]
Log = Callable[[str], None]


def inference_limits(recipes: Sequence[Recipe]) -> DataConfig:
    """Return the lengths that all models of an ensemble can read, with the other data settings of the first."""
    source = min(_max_source(recipe) for recipe in recipes)
    target = min(max(recipe.data.max_target, MIN_LIMIT) for recipe in recipes)
    return recipes[0].data.model_copy(update={"max_source": source, "max_target": target})


def _max_source(recipe: Recipe) -> int:
    encoder, limit = recipe.model.encoder, max(recipe.data.max_source, MIN_LIMIT)
    has_table = encoder.kind in ("conv", "transformer") and encoder.positions == "learned"
    return min(limit, encoder.max_positions - 1) if has_table else limit  # one position is the end token's


def warn(text: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {text}", file=sys.stderr)


def check_finite(numbers: Iterable[float], place: str, model: str) -> None:
    """Raise DecodingError if a number that a model computed is not finite; `place` is the input it belongs to."""
    if not all(map(math.isfinite, numbers)):
        raise DecodingError(f"{place}: the output of {model} is not finite; its weights are damaged")


def limit_lines(
    lines: Sequence[str],
    tokenizer: Tokenizer,
    max_tokens: int,
    on_too_long: OnTooLong = "cut",
    first_line: int = 1,
    log: Log = warn,
) -> list[str]:
    """Cut lines of more than `max_tokens`, replace them by blank lines (skip), or raise DataError.

    One line of 100,000 words would delay all others or exhaust memory. Of a line that is much too long, only the
    beginning is tokenized. Messages number the lines from `first_line`.
    """
    limited = []
    for number, line in enumerate(lines, first_line):
        begin, count = _count_tokens(line, tokenizer, max_tokens)
        if count <= max_tokens:
            limited.append(line)
            continue
        size = f"{count:,} tokens" if begin == line else f"more than {count:,} tokens"
        message = f'line {number} ("{line[:20]}…") has {size}, but the model reads at most {max_tokens:,}'
        if on_too_long == "error":
            raise DataError(f"{message}; --on-too-long cut or skip processes the other lines")
        cut = on_too_long == "cut"
        log(f"{message}: {f'cut to the first {max_tokens:,}' if cut else 'skipped'}")
        limited.append(tokenizer.truncate(begin, max_tokens) if cut else "")
    return limited


def _count_tokens(line: str, tokenizer: Tokenizer, max_tokens: int) -> tuple[str, int]:
    """Return the beginning of a line that shows if it is too long (mostly the whole line), and its number of tokens.

    The beginning ends at a space if it has one, so that its tokens are the first ones of the line.
    """
    if 4 * len(line) < max_tokens:  # at most four tokens (bytes) per character, so short lines need no counting
        return line, 0
    size = CHARACTERS_PER_TOKEN * max_tokens
    if len(line) > size:
        begin = line[: max(line.rfind(" ", 0, size), 0) or size]
        count = len(tokenizer.encode(begin)) - 1
        if count > max_tokens:
            return begin, count
    return line, len(tokenizer.encode(line)) - 1
