"""A trace: the record of one run of a model, from which figures and pages are drawn and which checks verify.

Schema `attn-trace/2`. A trace always contains the weights of every site. `detail` says what else it contains: `steps`
adds the scores, query, values and context of the alignment site, `full` those of every site. Arrays are stored by name
in `tensors`, so that several sites can refer to the same array.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError, model_validator

from heedful.atomic_write import atomic_write
from heedful.errors import TraceError, nearest
from heedful.trace.schema.display import TraceDisplay
from heedful.trace.schema.edit import Counterfactual, Edit
from heedful.trace.schema.file import read_trace_bytes
from heedful.trace.schema.fold import Array
from heedful.trace.schema.given import attention_fields
from heedful.trace.schema.info import Checks, Generator, ModelInfo
from heedful.trace.schema.migrate import OLD_SCHEMA, SCHEMA, migrate_trace
from heedful.trace.schema.side import Gold, Side, side_from_words
from heedful.trace.schema.site import Mass, SiteRecord, no_alignment_message
from heedful.trace.schema.step import BeamTree, Step
from heedful.trace.schema.table import AttentionTable, build_table, group_tokens, side_noun
from heedful.trace.schema.tensor import PackedTensor
from heedful.trace.schema.validate import check_counts, check_trace

TraceDetail = Literal["weights", "steps", "full"]
MAX_SHIFT = 100


class Trace(TraceDisplay):
    """One generation: its input, its output, and the attention of every step."""

    schema_: Literal["attn-trace/2"] = Field("attn-trace/2", alias="schema")
    id: str = ""
    parent: str | None = None  # the id of the trace without the edits
    created: str = ""
    detail: TraceDetail = "weights"
    generator: Generator = Generator()
    model: ModelInfo
    decoding: dict[str, Any] = Field(default_factory=dict)
    source: Side
    target: Side
    gold: Gold | None = None
    steps: list[Step]
    sites: list[SiteRecord]
    alignment_site: str | None = None  # the site that aligns output and input; None: the model has none
    shift: Annotated[int, Field(ge=0, le=MAX_SHIFT)] = (
        1  # the token generated at step t is part of the query of step t + shift
    )
    tensors: dict[str, PackedTensor] = Field(default_factory=dict)
    # names of tensors: the inputs of the read-out, and `features`, its output
    intermediates: dict[str, str] = Field(default_factory=dict)
    beam: BeamTree | None = None
    edits: list[Edit] = Field(default_factory=list)
    counterfactuals: list[Counterfactual] = Field(
        default_factory=list
    )  # precomputed, because a page cannot run the model
    checks: Checks | None = None
    # method, such as `leave-one-out` -> name of its tensor (query, key)
    attributions: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _migrate(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        check_counts(tree)
        return migrate_trace(tree) if tree.get("schema") == OLD_SCHEMA else tree

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_trace(self)
        return self

    @classmethod
    def build(cls, **fields: Any) -> Self:
        """Return a trace of what a model computed; raise TraceError if it cannot be one, such as with NaN weights."""
        try:
            return cls(**fields)
        except ValidationError as error:
            raise TraceError(f"the model's numbers cannot be recorded: {_first_problem(error)}") from None

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
        """Return a trace of any attention weights, (target, source) or (target, head, source).

        >>> trace = Trace.from_weights(["a", "b"], ["c"], [[0.25, 0.75]])
        >>> trace.matrix()
        array([[0.25, 0.75]])
        """
        array = np.asarray(weights, dtype=np.float32)
        array = array[:, None] if array.ndim == 2 else array
        if array.ndim != 3 or array.shape[::2] != (len(target), len(source)):
            raise TraceError(
                f"weights of shape {np.asarray(weights).shape}, but {len(target)} output and {len(source)}"
                f" source words need ({len(target)}, {len(source)})"
            )
        if not np.isfinite(array).all():
            raise TraceError("weights must be finite, got NaN or infinity")
        mass: Mass = "one" if np.allclose(array.sum(axis=-1), 1, atol=1e-4) else "free"
        trace = cls.build(
            model=ModelInfo(name=model),
            source=side_from_words(source),
            target=side_from_words(target),
            gold=gold,
            steps=[Step(logp=0.0) for _ in target],
            sites=[SiteRecord(site="cross", kind="cross", heads=array.shape[1], mass=mass, weights="weights")],
            alignment_site="cross",
            tensors={"weights": PackedTensor.pack(array, "T", "H", "S")},
        )
        return trace.with_id()

    @classmethod
    def from_attentions(
        cls,
        attentions: Any,
        tokens: Sequence[str],
        *,
        target_tokens: Sequence[str] | None = None,
        decoder_attentions: Any = None,
        cross_attentions: Any = None,
        model: str = "given attentions",
    ) -> Self:
        """Return a trace of weights that you have already: tuples with a tensor (1, head, query, key) per layer.

        Those are what models of transformers return with `output_attentions=True`, and what bertviz takes. For an
        encoder-decoder `attentions` are the encoder's (or None), and `target_tokens` the output. The tuples of tuples
        that `generate` returns, a step each, are joined.

        >>> import numpy as np
        >>> layers = (np.full((1, 2, 3, 3), 1 / 3), np.eye(3)[None, None].repeat(2, axis=1))
        >>> Trace.from_attentions(layers, ["a", "b", "c"]).weights("enc.1.self").shape  # query, head, key
        (3, 2, 3)
        """
        fields = attention_fields(
            attentions,
            tokens,
            target_tokens=target_tokens,
            decoder_attentions=decoder_attentions,
            cross_attentions=cross_attentions,
            model=model,
        )
        return cls.build(**fields).with_id()

    def with_id(self) -> Self:
        """Return the trace with its date, generator, and an id that is a hash of its content."""
        generator = Generator(version=version("heedful"))
        created = self.created or datetime.now(UTC).isoformat(timespec="seconds")
        trace = self.model_copy(update={"generator": generator, "created": created, "id": ""})
        content = trace.model_dump(by_alias=True, exclude={"id", "created", "checks", "attributions"})
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return trace.model_copy(update={"id": "sha256:" + hashlib.sha256(text.encode()).hexdigest()[:32]})

    def site(self, name: str | None = None) -> SiteRecord:
        """Return the record of a site, by default the alignment site."""
        name = name or self.alignment_site
        if name is None:
            raise TraceError(no_alignment_message(self.model.name, [record.site for record in self.sites]))
        records = {record.site: record for record in self.sites}
        if name not in records:
            raise TraceError(f'the trace has no site "{name}"; {nearest(name, records)}')
        return records[name]

    def find_site(self, name: str | None = None) -> SiteRecord | None:
        """Return the record of a site, by default the alignment site; None if there is none."""
        return next((record for record in self.sites if record.site == (name or self.alignment_site)), None)

    def array(self, name: str) -> Array:
        """Return a tensor by name, as float64."""
        if name not in self.tensors:
            raise TraceError(f'the trace has no tensor "{name}"')
        return self.tensors[name].array().astype(np.float64)

    def by_head(self, name: str) -> Array:
        """Return a tensor as (position, head, width); a single head is stored without an axis."""
        array = self.array(name)
        return array[:, None] if array.ndim == 2 else array

    def weights(self, site: str | None = None) -> Array:
        """Return the weights of a site, (query, head, key)."""
        return self.array(self.site(site).weights)

    def matrix(self, site: str | None = None, head: int | None = None) -> Array:
        """Return the weights of a site by token, (query, key), of one head or averaged over heads.

        Where the keys are sentences, a word's weight is its sentence's times its own inside the sentence.
        """
        weights = self.weights(site)
        if head is not None and not 0 <= head < weights.shape[1]:
            raise TraceError(f"there is no head {head}; this site has heads 0 to {weights.shape[1] - 1}")
        matrix = np.asarray(weights.mean(axis=1) if head is None else weights[:, head])
        inner = self.site(site).keys_from
        return matrix if inner is None else np.asarray(matrix @ self.matrix(inner))

    def table(
        self,
        site: str | None = None,
        head: int | None = None,
        *,
        words: bool = True,
        specials: bool = True,
        punctuation: bool = False,
    ) -> AttentionTable:
        """Return the weights as a labeled table, by word or by token, with or without start and end tokens.

        A word's weight is the sum over its tokens as keys and the mean over its tokens as queries. With
        `punctuation`, punctuation marks that are tokens have rows and columns of their own.
        """
        record = self.site(site)
        sides = {"source": self.source, "target": self.target}
        aligned = words and (record.query_side, record.key_side) == ("target", "source")
        image = self.source.image is not None
        return build_table(
            self.matrix(site, head),
            group_tokens(sides[record.query_side], words, specials, punctuation),
            group_tokens(sides[record.key_side], words, specials, punctuation),
            self.gold.sure if self.gold and aligned else [],
            (
                side_noun(record.query_side, self.model.task, image),
                side_noun(record.key_side, self.model.task, image),
            ),
        )

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON, gzipped if the name ends in `.gz`; the file is written atomically."""
        path = Path(path)
        raw = (self.model_dump_json(by_alias=True, exclude_none=True) + "\n").encode()
        raw = gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw
        with atomic_write(path, TraceError) as draft:
            draft.write_bytes(raw)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a trace of this or an earlier format and check all of it."""
        path = Path(path)
        raw = read_trace_bytes(path)
        try:
            return cls.model_validate_json(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise TraceError(f"{path}: not UTF-8 text, so not a trace") from None
        except ValidationError as error:
            raise TraceError(f"{path}: not a trace of schema {SCHEMA}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "the file"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"


def json_schema() -> str:
    """Return the JSON Schema that is published as docs/trace.schema.json."""
    tree = Trace.model_json_schema(by_alias=True)
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"
