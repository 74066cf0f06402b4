"""From names to mechanisms: the one place where an attention config becomes a module."""

from __future__ import annotations

from heedful.attention.attention import Attention
from heedful.attention.heads import Heads
from heedful.attention.placements import Global, Hard, LocalM, LocalP, Placement, Uniform
from heedful.attention.scores import SCORES, Additive, CoverageAdditive, Location, Score
from heedful.config import AttentionConfig
from heedful.record import Kind

WIDE = ("additive", "concat", "prod-relu", "concat-relu")  # scores with an inner width


def build_score(config: AttentionConfig, query: int, key: int) -> Score:
    """The score a config names, for queries and keys of these sizes."""
    if config.coverage:
        return CoverageAdditive(query, key, config.hidden, config.bias)
    if config.score == "additive":
        return Additive(query, key, config.hidden, config.bias)
    if config.score == "location":
        return Location(query, key, config.table)
    kind = SCORES[config.score]
    sizes = (query, key, config.hidden) if config.score in WIDE else (query, key)
    return kind(*sizes)


def build_placement(config: AttentionConfig, query: int) -> Placement:
    """The placement a config names."""
    if config.placement == "local-m":
        return LocalM(config.window)
    if config.placement == "local-p":
        return LocalP(query, config.window, config.renormalise)
    if config.placement == "hard":
        return Hard(config.read, config.generate)
    return Uniform() if config.placement == "uniform" else Global()


def build_attention(
    config: AttentionConfig,
    *,
    query: int,
    key: int,
    value: int | None = None,
    site: str = "cross",
    kind: Kind = "cross",
) -> Attention:
    """An attention over keys of size `key` for queries of size `query`.

    With heads the width of the looks is the query's, as in a Transformer of that width.
    """
    heads = Heads(config.heads, query, query=query, key=key, value=value) if config.heads else None
    inner = (heads.per_head, heads.per_head) if heads else (query, key)
    return Attention(
        build_score(config, *inner),
        config.normaliser,
        build_placement(config, inner[0]),
        heads=heads,
        beta=config.beta,
        longer=config.longer,
        read_end=config.read_end,
        dropout=config.dropout,
        site=site,
        kind=kind,
    )
