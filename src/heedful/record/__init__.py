"""What is written down about a look: sites, traces, links. Numpy and pydantic only: it loads at once."""

from heedful.record.links import Links, pharaoh, read_links, to_csv, to_npz, trace_links
from heedful.record.site import Kind, Mass, Site
from heedful.record.tensor import Tensor
from heedful.record.trace import (
    NO_WORD,
    SCHEMA,
    Checks,
    Edit,
    Gold,
    Looks,
    Matrix,
    Model,
    Node,
    Side,
    Step,
    Token,
    Top,
    Trace,
    Tree,
    json_schema,
    site_looks,
)

__all__ = [
    "NO_WORD",
    "SCHEMA",
    "Checks",
    "Edit",
    "Gold",
    "Kind",
    "Links",
    "Looks",
    "Mass",
    "Matrix",
    "Model",
    "Node",
    "Side",
    "Site",
    "Step",
    "Tensor",
    "Token",
    "Top",
    "Trace",
    "Tree",
    "json_schema",
    "pharaoh",
    "read_links",
    "site_looks",
    "to_csv",
    "to_npz",
    "trace_links",
]
