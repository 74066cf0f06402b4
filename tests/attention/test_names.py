"""The names a recipe may use are the names of the tables, and each of them can be built."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from attention.helpers import COMBINATIONS, PLACEMENT_SETTINGS, build, scene, see
from heedful.attention import (
    NORMALISERS,
    PLACEMENTS,
    SCORES,
    CoverageAdditive,
    Hard,
    LocalM,
    LocalP,
    Location,
    build_attention,
)
from heedful.attention.placements import Read
from heedful.config import AttentionConfig
from heedful.config.model import NormaliserName, PlacementName, ReadName, ScoreName


def test_the_literals_of_the_config_are_the_keys_of_the_tables() -> None:
    assert get_args(ScoreName) == tuple(SCORES)
    assert get_args(NormaliserName) == tuple(NORMALISERS)
    assert get_args(PlacementName) == tuple(PLACEMENTS)
    assert get_args(ReadName) == get_args(Read)


def test_every_way_to_read_is_among_the_cases() -> None:
    read = {settings["read"] for settings in PLACEMENT_SETTINGS.values() if "read" in settings}
    assert read == set(get_args(Read))


def test_every_name_builds_what_it_names() -> None:
    for score, normaliser, placement in COMBINATIONS:
        attention = build(score, normaliser, placement)
        assert type(attention.score) is SCORES.get(score, CoverageAdditive)
        assert attention.normaliser == normaliser
        assert type(attention.placement) is PLACEMENTS[placement.split()[0]]
        context, weights = see(attention, scene(score))
        assert context.shape == (5, 3, 13)
        assert weights.shape == (5, 3, 1, 7)


def built(**settings: Any) -> Any:
    return build_attention(AttentionConfig(**settings), query=10, key=10, site="here", kind="self")


def test_every_setting_reaches_its_mechanism() -> None:
    plain = built()
    assert plain.site == ("here", "self", 1, "one")
    assert (plain.read_end, plain.dropout, plain.longer, plain.heads) == (True, 0.0, "error", None)
    assert built(hidden=3).score.v.shape == (3,)
    assert built(read_end=False).read_end is False
    assert built(dropout=0.25).dropout == 0.25
    local_m, local_p = built(placement="local-m", window=3), built(placement="local-p", window=4)
    assert isinstance(local_m.placement, LocalM)
    assert isinstance(local_p.placement, LocalP)
    assert (local_m.placement.window, local_p.placement.window) == (3, 4)
    assert local_p.placement.renormalise is False
    assert built(placement="local-p", renormalise=True).placement.renormalise is True
    hard = built(placement="hard", read="argmax", generate="sample")
    assert isinstance(hard.placement, Hard)
    assert (hard.placement.read, hard.placement.generate) == ("argmax", "sample")
    assert (built(placement="hard").placement.read, built(placement="hard").placement.generate) == (
        "sample",
        "expectation",
    )
    location = built(score="location", table=3, longer="ignore")
    assert isinstance(location.score, Location)
    assert (location.score.limit, location.longer) == (3, "ignore")
    several = built(score="dot", heads=5)
    assert several.site.heads == several.heads.count == 5
    assert several.score.key_size == 2


@pytest.mark.parametrize(
    ("settings", "mass"),
    [
        ({}, "one"),
        ({"normaliser": "sparsemax"}, "one"),
        ({"normaliser": "entmax15"}, "one"),
        ({"normaliser": "smoothed-softmax"}, "free"),
        ({"normaliser": "smoothed-softmax", "placement": "local-m"}, "free"),
        ({"normaliser": "smoothed-softmax", "placement": "local-p"}, "free"),
        ({"normaliser": "smoothed-softmax", "placement": "local-p", "renormalise": True}, "one"),
        ({"normaliser": "smoothed-softmax", "placement": "uniform"}, "one"),
        ({"placement": "local-p"}, "at_most_one"),
        ({"placement": "local-p", "renormalise": True}, "one"),
        ({"placement": "local-m"}, "one"),
        ({"placement": "hard"}, "one"),
        ({"placement": "uniform"}, "one"),
    ],
)
def test_a_site_says_what_its_weights_sum_to(settings: dict[str, Any], mass: str) -> None:
    assert built(**settings).site.mass == mass
