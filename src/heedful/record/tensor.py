"""Arrays inside a trace: exact, and small enough for a file that people mail to each other."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

Floats = npt.NDArray[np.float32]
_KINDS = {"f4": "<f4", "u1": "|u1"}


class Tensor(BaseModel):
    """Numbers in C order, little endian, as base64: `f4` floats, `u1` truths. `dims` names the axes.

    >>> Tensor.of(np.array([[0.5, 0.25]]), "T", "S").array()
    array([[0.5 , 0.25]], dtype=float32)
    """

    model_config = ConfigDict(frozen=True)

    dtype: Literal["f4", "u1"]
    shape: list[Annotated[int, Field(ge=0)]]
    dims: list[str]
    data: str

    @classmethod
    def of(cls, array: npt.ArrayLike, *dims: str) -> Self:
        found = np.asarray(array)
        kind: Literal["f4", "u1"] = "u1" if found.dtype == np.bool_ else "f4"
        raw = np.ascontiguousarray(found, dtype=_KINDS[kind]).tobytes()
        data = base64.b64encode(raw).decode("ascii")
        return cls(dtype=kind, shape=list(found.shape), dims=list(dims), data=data)

    def array(self) -> npt.NDArray[np.float32 | np.uint8]:
        raw = base64.b64decode(self.data, validate=True)
        return np.frombuffer(raw, dtype=_KINDS[self.dtype]).reshape(self.shape)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if len(self.dims) != len(self.shape):
            raise ValueError(f"{len(self.shape)} axes, but {len(self.dims)} names for them")
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except binascii.Error:
            raise ValueError("its data is not base64") from None
        wanted = int(np.prod(self.shape, dtype=np.int64)) * int(self.dtype[1])
        if size != wanted:
            raise ValueError(f"{size} bytes of data, but shape {self.shape} asks for {wanted}")
        return self
