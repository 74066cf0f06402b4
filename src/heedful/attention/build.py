"""Build an `Attention` from its config; no other module does so."""

from __future__ import annotations

from heedful import registry
from heedful.attention.attention import Attention
from heedful.attention.heads import Heads
from heedful.config import AttentionConfig
from heedful.trace.schema import SiteKind


def build_attention(
    config: AttentionConfig,
    *,
    query_size: int,
    key_size: int,
    value_size: int | None = None,
    site: str = "cross",
    kind: SiteKind = "cross",
) -> Attention:
    """Build attention for queries and keys of these sizes; values have the size of the keys by default.

    Multi-head attention projects everything to the size of the query.
    """
    heads = None
    if config.heads:
        heads = Heads(config.heads, query_size, query_size=query_size, key_size=key_size, value_size=value_size)
        query_size = key_size = heads.head_width
    return Attention(
        registry.get("score", config.score).from_config(config, query_size, key_size),
        registry.get("normalizer", config.normalizer).from_config(config),
        registry.get("placement", config.placement).from_config(config, query_size),
        heads=heads,
        on_too_long=config.on_too_long,
        read_end=config.read_end,
        dropout=config.dropout,
        site=site,
        kind=kind,
    )
