"""Rows of different lengths in one flat array, in memory or mapped from a file."""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Ragged(NamedTuple):
    """Rows of different lengths: row i is `ids[ends[i]:ends[i + 1]]`; `ends[0]` is 0."""

    ids: Array
    ends: Array

    def row(self, number: int) -> list[int]:
        row: list[int] = self.ids[self.ends[number] : self.ends[number + 1]].tolist()
        return row

    @property
    def lengths(self) -> npt.NDArray[np.int32]:
        """The length of every row."""
        lengths = np.empty(len(self.ends) - 1, dtype=np.int32)
        np.subtract(self.ends[1:], self.ends[:-1], out=lengths, casting="unsafe")
        self.release_pages()
        return lengths

    def release_pages(self) -> None:
        """Release the mapped pages that were read, which otherwise count as memory of this process."""
        for array in self:
            mapping = getattr(array.base, "_mmap", None)
            if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                mapping.madvise(mmap.MADV_DONTNEED)
