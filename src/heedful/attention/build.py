"""From names to mechanisms: the one place where an attention config becomes a module."""

from __future__ import annotations

from heedful import registry
from heedful.attention.attention import Attention
from heedful.attention.heads import Heads
from heedful.config import AttentionConfig
from heedful.trace.schema import SiteKind


def build_attention(
    config: AttentionConfig,
    *,
    query: int,
    key: int,
    value: int | None = None,
    site: str = "cross",
    kind: SiteKind = "cross",
) -> Attention:
    """Build an attention over keys of size `key` for queries of size `query`.

    Multi-head attention has the width of the query, as in a Transformer of that width.
    """
    heads = Heads(config.heads, query, query=query, key=key, value=value) if config.heads else None
    query_size, key_size = (heads.per_head, heads.per_head) if heads else (query, key)
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
