"""A list of modules with a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, cast

from torch import nn

M = TypeVar("M", bound=nn.Module)


class TypedModuleList(nn.ModuleList, Generic[M]):
    """An `nn.ModuleList` whose modules all have the type M."""

    def __init__(self, modules: Iterable[M] = ()) -> None:
        super().__init__(modules)

    def __iter__(self) -> Iterator[M]:
        return cast(Iterator[M], super().__iter__())

    def __getitem__(self, index: int) -> M:  # type: ignore[override]
        return cast(M, super().__getitem__(index))
