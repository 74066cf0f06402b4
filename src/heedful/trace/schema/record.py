"""The base class of every part of a trace."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable part of a trace. Unknown keys are ignored, so that older code reads newer minor additions."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)
