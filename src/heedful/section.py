"""The base class of all sections of a recipe; outside `heedful.config`, so that tasks can define sections too."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
# Upper bounds far above any model that was ever useful: without them, one mistyped number asks for all the memory.
Width = Annotated[int, Field(gt=0, le=65_536)]
Layers = Annotated[int, Field(gt=0, le=256)]
Positions = Annotated[int, Field(gt=0, le=1_000_000)]  # of a table, in tokens
Count = Annotated[int, Field(gt=0, le=1_000_000_000)]  # of anything that is counted, not allocated


class Section(BaseModel):
    """Base of every section: frozen, strict about types; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
