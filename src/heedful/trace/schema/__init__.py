"""The trace file format: sites, traces, links. Only numpy and pydantic are imported."""

from heedful.trace.schema.edit import Counterfactual, Edit
from heedful.trace.schema.export import to_csv, to_npz
from heedful.trace.schema.fold import NO_WORD, entropy_ratio, fold, fold_words
from heedful.trace.schema.info import Checks, Generator, ModelInfo
from heedful.trace.schema.links import (
    LINK_METHODS,
    LinkMethod,
    Links,
    format_links,
    grade_links,
    parse_links,
    read_links,
    trace_links,
    word_links,
)
from heedful.trace.schema.migrate import SCHEMA
from heedful.trace.schema.side import Gold, Role, Side, SourceImage, Token
from heedful.trace.schema.site import Mass, SideName, Site, SiteKind, SiteRecord, no_alignment_message
from heedful.trace.schema.step import BeamNode, BeamTree, Candidate, Step
from heedful.trace.schema.table import AttentionTable, Noun
from heedful.trace.schema.tensor import PackedTensor
from heedful.trace.schema.trace import Trace, TraceDetail, json_schema
from heedful.trace.schema.validate import SENTENCE_ENDS

__all__ = [
    "LINK_METHODS",
    "NO_WORD",
    "SCHEMA",
    "SENTENCE_ENDS",
    "AttentionTable",
    "BeamNode",
    "BeamTree",
    "Candidate",
    "Checks",
    "Counterfactual",
    "Edit",
    "Generator",
    "Gold",
    "LinkMethod",
    "Links",
    "Mass",
    "ModelInfo",
    "Noun",
    "PackedTensor",
    "Role",
    "Side",
    "SideName",
    "Site",
    "SiteKind",
    "SiteRecord",
    "SourceImage",
    "Step",
    "Token",
    "Trace",
    "TraceDetail",
    "entropy_ratio",
    "fold",
    "fold_words",
    "format_links",
    "grade_links",
    "json_schema",
    "no_alignment_message",
    "parse_links",
    "read_links",
    "to_csv",
    "to_npz",
    "trace_links",
    "word_links",
]
