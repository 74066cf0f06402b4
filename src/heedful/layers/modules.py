"""For type checkers: lists of modules of one kind (torch's own does not tell it), and what must be there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, cast

from torch import nn

M = TypeVar("M", bound=nn.Module)
T = TypeVar("T")


def must(it: T | None) -> T:
    """For what is there by construction, which a type checker cannot see."""
    assert it is not None
    return it


class Modules(nn.ModuleList, Generic[M]):
    def __init__(self, modules: Iterable[M] = ()) -> None:
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return cast(Iterator[M], super().__iter__())

    def __getitem__(self, index: int) -> M:  # type: ignore[override]
        return cast(M, super().__getitem__(index))
