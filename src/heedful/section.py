"""The base class of all sections of a recipe; outside `heedful.config`, so that tasks can define sections too."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
# Upper bounds far above any model that was ever useful: without them, one mistyped number asks for all the memory.
Width = Annotated[int, Field(gt=0, le=65_536)]
Layers = Annotated[int, Field(gt=0, le=256)]
Positions = Annotated[int, Field(gt=0, le=1_000_000)]  # of a table, in tokens
Count = Annotated[int, Field(gt=0, le=1_000_000_000)]  # of anything that is counted, not allocated
MAX_COLUMN = 1_000_000_000


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _check_columns(value: Any) -> tuple[int | str, ...]:
    """Return names, or numbers counted from 1, as a tuple; a single one may stand without a list."""
    columns = tuple(value) if isinstance(value, list | tuple) else (value,)
    for column in columns:
        is_number = isinstance(column, int) and not isinstance(column, bool) and 0 < column <= MAX_COLUMN
        if not is_number and not (isinstance(column, str) and column.strip()):
            raise ValueError(
                f'{column!r}: expected names or numbers of columns, counted from 1, such as ["text", "label"] or [1, 2]'
            )
    return columns


# One text is accepted where a list of them is meant.
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(strict=False)]
Column = int | str  # a number counted from 1, or a name
Columns = Annotated[tuple[Column, ...], PlainValidator(_check_columns)]


class Section(BaseModel):
    """Base of every section: frozen, strict about types; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
