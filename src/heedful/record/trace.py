"""A trace: the record of one generation, which every picture is drawn from.

This is the first draft of the schema: tokens, weights and log-probabilities. It says so in its version, and
a reader refuses what it does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from heedful.errors import TraceError
from heedful.record.site import Kind, Mass, Site

SCHEMA = "attn-trace/0"
Row = list[Annotated[float, Field(ge=0.0)]]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Token(_Part):
    """One position of the source or of the output."""

    text: str
    role: Literal["normal", "start", "end", "unknown"] = "normal"


class Step(_Part):
    """What was written at one step, and how sure the model was of it."""

    logp: float


class Looks(_Part):
    """The weights of one site: output step, head, source position."""

    site: str
    kind: Kind
    heads: Annotated[int, Field(ge=1)]
    mass: Mass
    weights: list[list[Row]]


class Trace(_Part):
    """One generation: what was read, what was written, and where each step looked."""

    schema_: Literal["attn-trace/0"] = Field("attn-trace/0", alias="schema")
    model: str
    source: Annotated[list[Token], Field(min_length=1)]
    target: Annotated[list[Token], Field(min_length=1)]
    steps: list[Step]
    sites: list[Looks]
    alignment: str
    gold: list[tuple[int, int]] | None = None  # source word, target word, from 0

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @model_validator(mode="after")
    def _shapes_agree(self) -> Self:
        if len(self.steps) != len(self.target):
            raise ValueError(f"{len(self.target)} output tokens but {len(self.steps)} steps")
        for looks in self.sites:
            wanted = (len(self.target), looks.heads, len(self.source))
            found = {(len(looks.weights), len(step), len(row)) for step in looks.weights for row in step}
            if found - {wanted}:
                raise ValueError(f"site {looks.site}: weights of shape {found.pop()}, expected {wanted}")
        if self.alignment not in {looks.site for looks in self.sites}:
            raise ValueError(f"alignment names the site {self.alignment}, which is not in the trace")
        return self

    @classmethod
    def make(
        cls,
        *,
        model: str,
        source: list[Token],
        target: list[Token],
        logp: list[float],
        weights: dict[str, np.ndarray],
        sites: list[Site],
        alignment: str,
    ) -> Self:
        """A trace from arrays of shape (output step, head, source position)."""
        looks = [
            Looks(site=s.id, kind=s.kind, heads=s.heads, mass=s.mass, weights=weights[s.id].tolist())
            for s in sites
            if s.id in weights
        ]
        steps = [Step(logp=value) for value in logp]
        return cls(model=model, source=source, target=target, steps=steps, sites=looks, alignment=alignment)

    def matrix(self, site: str | None = None) -> np.ndarray:
        """The weights of a site (default: the alignment), mean over its heads: (output step, source)."""
        looks = next(s for s in self.sites if s.site == (site or self.alignment))
        shape = (len(self.target), looks.heads, len(self.source))
        weights = np.asarray(looks.weights, dtype=np.float64).reshape(shape)
        return np.asarray(weights.mean(axis=1))

    def save(self, path: Path) -> None:
        """Write the trace as JSON; a reader never sees half of it."""
        draft = path.with_name(f"{path.name}.tmp")
        try:
            draft.write_text(self.model_dump_json(by_alias=True, indent=1) + "\n", encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            raise TraceError(f"{path}: cannot be written: {error.strerror}") from None

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TraceError(f"{path}: not UTF-8 text, so not a trace") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            said = first["msg"].removeprefix("Value error, ")
            raise TraceError(f"{path}: not a trace of schema {SCHEMA}: {where}: {said}") from None
