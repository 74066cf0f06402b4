"""How a language model reads a text: sentence by sentence, or as one long text in windows."""

from __future__ import annotations

from heedful.config import ReadingConfig, Recipe
from heedful.data.tokenizer import END, START
from heedful.optional import not_none
from heedful.tasks.limits import MIN_LIMIT


def reading_config(recipe: Recipe) -> ReadingConfig:
    """Return the section [data.lm], or its defaults."""
    return recipe.data.lm or ReadingConfig()


def start_token(recipe: Recipe) -> int:
    """Return the token before a sentence; in a contiguous text, the end of the sentence before."""
    return START if reading_config(recipe).protocol == "sentences" else END


def protocol_name(recipe: Recipe) -> str:
    """Return how a text is read, as signatures of metrics name it."""
    reading, model = reading_config(recipe), not_none(recipe.model.language_model)
    if reading.protocol == "sentences":
        return "sentences"
    carried = {"lstm": "state", "lstmn": f"tape of {model.max_tape}", "transformer": "nothing"}[model.kind]
    return f"contiguous|window:{reading.window}|carried:{carried}"


def max_line_tokens(recipe: Recipe) -> int | None:
    """Return the limit of a line in training; None for a contiguous text, whose lines have none."""
    return recipe.data.max_source if reading_config(recipe).protocol == "sentences" else None


def inference_max_tokens(recipe: Recipe) -> int | None:
    """Return the limit of a line at inference, where longer lines than in training are read."""
    limit, model = max_line_tokens(recipe), not_none(recipe.model.language_model)
    if limit is None:
        return None
    has_table = model.kind == "transformer" and model.positions == "learned"
    return min(limit, model.max_positions - 1) if has_table else max(limit, MIN_LIMIT)
