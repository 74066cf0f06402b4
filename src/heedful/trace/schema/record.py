"""The base class of every part of a trace."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Integer = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]  # exact in the page's language too
LogProbability = Annotated[float, Field(ge=-1e9, le=1e-3)]  # a little above 0 by rounding


class Record(BaseModel):
    """An immutable part of a trace. Unknown keys are ignored, so that older code reads newer minor additions."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)
