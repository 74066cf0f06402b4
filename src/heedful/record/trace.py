"""A trace: the record of one generation, which every picture is drawn from and every check is made on.

Schema `attn-trace/1`. The weights of every site are always there; `detail` says how much more: `steps` adds,
for the site of the alignment, what its weights were made from and what came of them; `full` does so for
every site. Arrays are named in `tensors`, so that sites can share them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from heedful.errors import TraceError, nearest
from heedful.record.fold import NO_WORD, Array, fold
from heedful.record.site import Kind, Mass, Site, without_alignment
from heedful.record.tensor import Tensor
from heedful.whole import whole

SCHEMA = "attn-trace/1"
Role = Literal["normal", "start", "end", "unknown"]
Level = Literal["weights", "steps", "full"]


class _Part(BaseModel):
    """Frozen; what a later version adds is read over."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, allow_inf_nan=False)


class Token(_Part):
    """One position: the piece as the vocabulary has it, and the word it belongs to (-1: none)."""

    text: str
    word: int = NO_WORD
    role: Role = "normal"
    id: int | None = None


class Gold(_Part):
    """Word alignment known from elsewhere, (source word, target word) from 0; sure links are possible too."""

    sure: list[tuple[int, int]]
    possible: list[tuple[int, int]] = []


class Photo(_Part):
    """A picture that was read: its tokens are regions of a grid (rows, columns), row by row."""

    href: str  # an address that holds the picture
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    grid: tuple[int, int]


class Side(_Part):
    """What was read, or written: tokens, the words they make, and the text as it is."""

    text: str
    tokens: Annotated[list[Token], Field(min_length=1)]
    words: list[str]
    reference: str | None = None  # of an output: what somebody else would have written
    image: Photo | None = None  # where what was read is a picture


class Top(_Part):
    """A word that could have been written, and how likely it was."""

    id: int | None
    text: str
    logp: float


class Step(_Part):
    """What was written at one step: the token before it, the choice, and what else was likely."""

    logp: float
    input: int | None = None
    forced: bool = False
    rank: int | None = None  # of the choice, from 0
    entropy: float | None = None  # of all words, in nats
    top: list[Top] = []


class Looks(_Part):
    """One site: names of its arrays in `tensors`.

    `weight` (query, head, key); at more detail `score` (before the normaliser), `query` (what asked),
    `value` (key, head, width: what is mixed), `context` (query, head, width: the mixture), `extra` by name.
    Of a single head the axis may be missing: then the array is one that others have too.
    """

    site: str
    kind: Kind
    heads: Annotated[int, Field(ge=1)]
    mass: Mass
    asks: Literal["target", "source"] = "target"
    reads: Literal["target", "source"] = "source"
    weight: str
    score: str | None = None
    query: str | None = None
    value: str | None = None
    context: str | None = None
    mask: str | None = None  # key: may it be read?
    through: str | None = None  # the site that made its keys of words: sentences
    extra: dict[str, str] = {}


class Node(_Part):
    """A hypothesis of a beam: one token more than its parent's (-1: the beginning)."""

    id: int
    parent: int
    t: int
    token: int
    text: str
    logp: float  # of the token
    total: float  # of everything up to it
    state: Literal["alive", "dropped", "done"]
    score: float | None = None  # of a finished one


class Tree(_Part):
    """All that a beam kept, and the weights of each: `weight` (node, head, key) of the alignment's site."""

    size: int
    nodes: list[Node]
    best: list[int]
    weight: str | None = None


class Edit(_Part):
    """A change to what the model did: `op` at a site, step, head and source position."""

    op: Literal["set", "onehot", "zero", "uniform", "permute", "gold", "mask-head", "source", "prefix"]
    site: str | None = None
    step: int | None = None  # None: every step
    head: int | None = None  # None: all
    position: int | None = None
    value: float | None = None
    text: str | None = None


class WhatIf(_Part):
    """What would have been likely at a step if a source position had all weight, or none."""

    op: Literal["onehot", "zero"]
    step: int
    position: int
    tvd: float  # total variation distance between the word distributions, 0 to 1
    top: list[Top]


class Checks(_Part):
    """Largest differences between what was recorded and what was computed again; None: not computed."""

    row_sum: float | None = None
    softmax: float | None = None
    context: float | None = None
    top_first: bool | None = None
    moving: bool | None = None  # do different steps look at different places?
    score: float | None = None
    said: float | None = None
    output: float | None = None


class Maker(_Part):
    package: str = "heedful"
    version: str = ""


class Model(_Part):
    """Whose trace it is; `settings` is the recipe's [model] section, in the recipe's own words."""

    name: str
    task: str = "translate"
    settings: dict[str, Any] = {}
    parameters: int | None = None
    sha256: str | None = None  # of its weights


class Named(NamedTuple):
    """What an axis of a picture counts: one of it, and many."""

    one: str
    many: str


READ = {"recommend": Named("item of the history", "items of the history")}
REGIONS, INPUT = Named("region", "regions"), Named("input word", "input words")
SAID = {
    "classify": Named("label", "labels"),
    "recommend": Named("recommended item", "recommended items"),
}
OUTPUT = Named("output word", "output words")


class Matrix(NamedTuple):
    """What a picture shows: labels, weights (row, column), gold links (row, column), what is on its axes."""

    rows: list[str]
    columns: list[str]
    weights: Array
    gold: list[tuple[int, int]]
    asks: Named
    reads: Named


class Trace(_Part):
    """One generation: what was read, what was written, and where each step looked."""

    in_notebooks: ClassVar[Callable[[Trace], str] | None] = (
        None  # set by `heedful.view`, which knows pictures
    )

    schema_: Literal["attn-trace/1"] = Field("attn-trace/1", alias="schema")
    id: str = ""
    parent: str | None = None
    created: str = ""
    detail: Level = "weights"
    generator: Maker = Maker()
    model: Model
    decode: dict[str, Any] = {}
    source: Side
    target: Side
    gold: Gold | None = None
    steps: list[Step]
    sites: list[Looks]
    alignment: str | None = None  # the site of the usual picture; None: this model never looks back
    shift: int = 1  # so many steps later a query has read the word
    tensors: dict[str, Tensor] = {}
    combine: dict[str, str] = {}  # what the read-out was given, by name, and `said`, what it gave
    beam: Tree | None = None
    edits: list[Edit] = []
    whatif: list[WhatIf] = []  # for pages that have no model to ask
    checks: Checks | None = None
    tests: dict[str, Any] = {}

    @model_validator(mode="after")
    def _shapes_agree(self) -> Self:
        lengths = {"source": len(self.source.tokens), "target": len(self.target.tokens)}
        if len(self.steps) != lengths["target"]:
            raise ValueError(f"{lengths['target']} output tokens but {len(self.steps)} steps")
        for looks in self.sites:
            wanted = [lengths[looks.asks], looks.heads, lengths[looks.reads]]
            for name in (looks.weight, looks.score):
                if name is not None and (found := self._shape(name)) != wanted:
                    raise ValueError(f"site {looks.site}: {name} of shape {found}, expected {wanted}")
            self._goes_through(looks)
        if self.alignment is not None and self.alignment not in {looks.site for looks in self.sites}:
            raise ValueError(f"alignment names the site {self.alignment}, which is not in the trace")
        photo = self.source.image
        if photo is not None and photo.grid[0] * photo.grid[1] != lengths["source"]:
            raise ValueError(f"{lengths['source']} regions do not make a grid of {photo.grid}")
        for side in (self.source, self.target):
            if any(not NO_WORD <= token.word < len(side.words) for token in side.tokens):
                raise ValueError("a token belongs to a word that is not there")
        return self

    def _goes_through(self, looks: Looks) -> None:
        """What a site reads can be looks of another that reads words itself."""
        if looks.through is None:
            return
        inner = next((other for other in self.sites if other.site == looks.through), None)
        if inner is None or inner.through is not None or inner.asks != looks.reads:
            raise ValueError(f"site {looks.site}: cannot read through {looks.through}")

    def _shape(self, name: str) -> list[int]:
        if name not in self.tensors:
            raise ValueError(f"the tensor {name} is not in the trace")
        return self.tensors[name].shape

    @classmethod
    def from_weights(
        cls,
        source: Sequence[str],
        target: Sequence[str],
        weights: npt.ArrayLike,
        *,
        model: str = "given weights",
        gold: Gold | None = None,
    ) -> Self:
        """A trace of anybody's matrix: (output, source), or (output, head, source).

        >>> trace = Trace.from_weights(["a", "b"], ["c"], [[0.25, 0.75]])
        >>> trace.matrix()
        array([[0.25, 0.75]])
        """
        array = np.asarray(weights, dtype=np.float32)
        array = array[:, None] if array.ndim == 2 else array
        if array.ndim != 3 or array.shape[::2] != (len(target), len(source)):
            raise TraceError(
                f"weights of shape {np.asarray(weights).shape}, but {len(target)} output and {len(source)}"
                f" source words ask for ({len(target)}, {len(source)})"
            )
        if not np.isfinite(array).all():
            raise TraceError("weights that are not finite cannot be drawn")
        sums = array.sum(axis=-1)
        mass: Mass = "one" if np.allclose(sums, 1, atol=1e-4) else "free"
        made = cls(
            model=Model(name=model),
            source=plain_side(source),
            target=plain_side(target),
            gold=gold,
            steps=[Step(logp=0.0) for _ in target],
            sites=[Looks(site="cross", kind="cross", heads=array.shape[1], mass=mass, weight="weight")],
            alignment="cross",
            tensors={"weight": Tensor.of(array, "T", "H", "S")},
        )
        return made.signed()

    def signed(self) -> Self:
        """With the date, the maker and an id that follows from the content."""
        maker = Maker(version=version("heedful"))
        now = self.created or datetime.now(UTC).isoformat(timespec="seconds")
        named = self.model_copy(update={"generator": maker, "created": now, "id": ""})
        content = named.model_dump(by_alias=True, exclude={"id", "created", "checks", "tests"})
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return named.model_copy(update={"id": "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:32]})

    def looks(self, site: str | None = None) -> Looks:
        """A site by its name; without one, that of the alignment."""
        wanted = site or self.alignment
        if wanted is None:
            raise TraceError(without_alignment(self.model.name, [looks.site for looks in self.sites]))
        known = {looks.site: looks for looks in self.sites}
        if wanted not in known:
            raise TraceError(f'the trace has no site "{wanted}"; {nearest(wanted, known)}')
        return known[wanted]

    def array(self, name: str) -> Array:
        return self.tensors[name].array().astype(np.float64)

    def by_head(self, name: str) -> Array:
        """(position, head, width); a single head may be left out of the shape."""
        array = self.array(name)
        return array[:, None] if array.ndim == 2 else array

    def weights(self, site: str | None = None) -> Array:
        """(query, head, key) of a site."""
        return self.array(self.looks(site).weight)

    def matrix(self, site: str | None = None, head: int | None = None) -> Array:
        """The weights of a site by token, of one head or the mean of all: (query, key).

        Where what is read are sentences, each word has its share of what its sentence got.
        """
        weights = self.weights(site)
        if head is not None and not 0 <= head < weights.shape[1]:
            raise TraceError(f"there is no head {head}; this site has 0 to {weights.shape[1] - 1}")
        mine = np.asarray(weights.mean(axis=1) if head is None else weights[:, head])
        through = self.looks(site).through
        return mine if through is None else np.asarray(mine @ self.matrix(through))

    def table(
        self,
        site: str | None = None,
        head: int | None = None,
        *,
        words: bool = True,
        specials: bool = True,
    ) -> Matrix:
        """What a picture shows: pieces folded into words (or not), with or without start and end tokens.

        Folding sums over the pieces of a word that is read, and takes the mean over those of one that asks.
        """
        looks = self.looks(site)
        sides = {"source": self.source, "target": self.target}
        asks, reads = sides[looks.asks], sides[looks.reads]
        rows, row_labels, row_of = _groups(asks, words, specials)
        columns, column_labels, column_of = _groups(reads, words, specials)
        weights = fold(self.matrix(site, head), rows, columns)
        links = self.gold.sure if self.gold and (looks.asks, looks.reads) == ("target", "source") else []
        gold = [(row_of[t], column_of[s]) for s, t in links if t in row_of and s in column_of]
        named = self._named(looks.asks), self._named(looks.reads)
        return Matrix(row_labels, column_labels, weights, gold if words else [], *named)

    def _named(self, side: Literal["target", "source"]) -> Named:
        if side == "target":
            return SAID.get(self.model.task, OUTPUT)
        return REGIONS if self.source.image is not None else READ.get(self.model.task, INPUT)

    def _repr_html_(self) -> str | None:
        """What a notebook shows, once `heedful.view` is imported."""
        show = type(self).in_notebooks
        return None if show is None else show(self)

    def save(self, path: Path) -> None:
        """Write the trace as JSON (`.gz`: packed); a reader never sees half of it."""
        raw = (self.model_dump_json(by_alias=True, exclude_none=True) + "\n").encode()
        raw = gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw
        with whole(path, TraceError) as draft:
            draft.write_bytes(raw)

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            raw = path.read_bytes()
            raw = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
            return cls.model_validate_json(raw.decode("utf-8"))
        except (gzip.BadGzipFile, EOFError):
            raise TraceError(f"{path}: not a whole gzip file") from None
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise TraceError(f"{path}: not UTF-8 text, so not a trace") from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            said = first["msg"].removeprefix("Value error, ")
            raise TraceError(f"{path}: not a trace of schema {SCHEMA}: {where}: {said}") from None


def plain_side(words: Sequence[str]) -> Side:
    """Words that are their own tokens; an end token is known by its name."""
    roles: Mapping[str, Role] = {"</s>": "end", "<s>": "start", "<unk>": "unknown"}
    tokens: list[Token] = []
    plain: list[str] = []
    for word in words:
        role = roles.get(word, "normal")
        inside = role in ("normal", "unknown")
        tokens.append(Token(text=word, word=len(plain) if inside else NO_WORD, role=role))
        plain += [word] if inside else []
    return Side(text=" ".join(plain), tokens=tokens, words=plain)


def _groups(side: Side, words: bool, specials: bool) -> tuple[list[list[int]], list[str], dict[int, int]]:
    """Positions that make a row or column, their labels, and the row or column of each word."""
    groups: list[list[int]] = []
    labels: list[str] = []
    of_word: dict[int, int] = {}
    for at, token in enumerate(side.tokens):
        if token.word == NO_WORD:
            if specials or token.role == "normal":
                groups.append([at])
                labels.append(token.text)
        elif words and token.word in of_word:
            groups[of_word[token.word]].append(at)
        else:
            of_word.setdefault(token.word, len(groups))
            groups.append([at])
            labels.append(side.words[token.word] if words else token.text)
    return groups, labels, of_word


def site_looks(site: Site, **more: Any) -> Looks:
    return Looks(site=site.id, kind=site.kind, heads=site.heads, mass=site.mass, **more)


def json_schema() -> str:
    """The schema as published in docs/trace.schema.json."""
    tree = Trace.model_json_schema(by_alias=True)
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"
