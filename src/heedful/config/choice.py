"""Settings whose allowed values are the names of a registry or a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from heedful import registry

UNKNOWN = "unknown_choice"  # pydantic's error type for a name that is not allowed


class Choice:
    """Marks a string that must be a registered name: `Annotated[str, Choice("score")]`.

    `names` returns the allowed names; without it they are those of the registry, including names from plugins.
    """

    def __init__(self, kind: str, names: Callable[[], Iterable[str]] | None = None) -> None:
        self.kind = kind
        self.names = names

    def known(self) -> list[str]:
        return list(registry.known_names(self.kind) if self.names is None else self.names())

    def check(self, name: str) -> str:
        if registry.is_known(self.kind, name) if self.names is None else name in self.names():
            return name
        raise PydanticCustomError(UNKNOWN, "unknown name", {"known": self.known()})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))
