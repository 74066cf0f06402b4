"""Arrays inside a trace: exact values in a JSON file that is small enough to mail."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Annotated, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

DType = Literal["f4", "u1"]
MAX_AXES = 8
_NUMPY_DTYPES: dict[DType, str] = {"f4": "<f4", "u1": "|u1"}


class PackedTensor(BaseModel):
    """Numbers in C order, little endian, as base64: `f4` is float32, `u1` is boolean. `dims` names the axes.

    >>> PackedTensor.pack(np.array([[0.5, 0.25]]), "T", "S").array()
    array([[0.5 , 0.25]], dtype=float32)
    """

    model_config = ConfigDict(frozen=True)

    dtype: DType
    shape: Annotated[list[Annotated[int, Field(ge=0, le=2**31)]], Field(max_length=MAX_AXES)]
    dims: Annotated[list[str], Field(max_length=MAX_AXES)]
    data: str

    @classmethod
    def pack(cls, values: npt.ArrayLike, *dims: str) -> Self:
        """Encode an array; booleans become `u1`, everything else `f4`."""
        array = np.asarray(values)
        dtype: DType = "u1" if array.dtype == np.bool_ else "f4"
        raw = np.ascontiguousarray(array, dtype=_NUMPY_DTYPES[dtype]).tobytes()
        return cls(dtype=dtype, shape=list(array.shape), dims=list(dims), data=base64.b64encode(raw).decode("ascii"))

    def array(self) -> npt.NDArray[np.float32 | np.uint8]:
        """Decode the array. It is read-only."""
        raw = base64.b64decode(self.data, validate=True)
        return np.frombuffer(raw, dtype=_NUMPY_DTYPES[self.dtype]).reshape(self.shape)

    def __repr__(self) -> str:
        axes = ", ".join(f"{name}={size}" for name, size in zip(self.dims, self.shape, strict=True))
        return f"PackedTensor({self.dtype}, {axes})"

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if len(self.dims) != len(self.shape):
            raise ValueError(f"{len(self.shape)} axes, but {len(self.dims)} axis names")
        try:
            size = len(base64.b64decode(self.data, validate=True))
        except (binascii.Error, ValueError):  # ValueError: not ASCII
            raise ValueError("the data is not base64") from None
        expected = math.prod(self.shape) * int(self.dtype[1])
        if size != expected:
            raise ValueError(f"{size} bytes of data, but shape {self.shape} needs {expected}")
        return self
