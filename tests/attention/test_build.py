"""Names and settings of a recipe become the mechanisms they name."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from attention.helpers import (
    COMBINATIONS,
    PLACEMENT_SETTINGS,
    PLACEMENTS,
    SCORES,
    build,
    context_and_weights,
    make_inputs,
)
from heedful import registry
from heedful.attention import (
    CoverageAdditive,
    Hard,
    LocalM,
    LocalP,
    Location,
    Normalizer,
    Placement,
    Score,
    build_attention,
)
from heedful.attention.placements.base import PlacementContext, PlacementOutput
from heedful.attention.placements.hard import HardMode
from heedful.attention.scores.base import Keys, Query, Scores, dot_products
from heedful.config import AttentionConfig
from heedful.config.model import HardModeName
from heedful.trace.schema import Mass


def test_names_are_those_of_the_files_that_define_them() -> None:
    assert registry.built_in_names("normalizer") == ("entmax15", "smoothed-softmax", "softmax", "sparsemax")
    assert registry.built_in_names("placement") == ("global", "hard", "local-m", "local-p", "uniform")
    assert {"additive", "concat-relu", "scaled-dot"} <= set(registry.built_in_names("score"))
    assert get_args(HardModeName) == get_args(HardMode)


class Negative(Score):
    """A score of a user."""

    def forward(self, query: Query, keys: Keys) -> Scores:
        return -dot_products(query, keys)


class Constant(Normalizer):
    """A normalizer of a user."""

    mass: ClassVar[Mass] = "free"

    def __call__(self, scores: Tensor, keep: Tensor) -> Tensor:
        return torch.full_like(scores, 0.5) * keep


class First(Placement):
    """A placement of a user: the first position alone."""

    def forward(
        self, scores: Tensor, allowed: Tensor, normalizer: Normalizer, context: PlacementContext
    ) -> PlacementOutput:
        first = torch.arange(scores.shape[-1]) == 0
        return normalizer(scores, allowed & first), {}


def test_a_recipe_can_name_what_a_user_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError):
        AttentionConfig(score="negative")
    for kind, thing in (("score", Negative), ("normalizer", Constant), ("placement", First)):
        monkeypatch.setitem(registry._registered[kind], thing.__name__.lower(), thing)
    config = AttentionConfig(score="negative", normalizer="constant", placement="first")
    attention = build_attention(config, query_size=2, key_size=2)
    keys = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    output = attention(torch.tensor([[[1.0, 1.0]]]), keys)
    assert output.scores is not None
    assert output.scores.flatten().tolist() == [-3.0, -7.0]
    assert output.context is not None
    assert output.context.flatten().tolist() == [0.5, 1.0]
    assert attention.site.mass == "free"


def test_every_mode_of_hard_attention_is_a_case() -> None:
    modes = {settings["hard_training"] for settings in PLACEMENT_SETTINGS.values() if "hard_training" in settings}
    assert modes == set(get_args(HardMode))


def test_every_name_builds_what_it_names() -> None:
    for score, normalizer, placement in COMBINATIONS:
        attention = build(score, normalizer, placement)
        assert type(attention.score) is SCORES.get(score, CoverageAdditive)
        assert type(attention.normalizer) is registry.get("normalizer", normalizer)
        assert type(attention.placement) is PLACEMENTS[placement.split()[0]]
        context, weights = context_and_weights(attention, make_inputs(score))
        assert context.shape == (5, 3, 13)
        assert weights.shape == (5, 3, 1, 7)


def built(**settings: Any) -> Any:
    return build_attention(AttentionConfig(**settings), query_size=10, key_size=10, site="here", kind="self")


def test_every_setting_reaches_its_mechanism() -> None:
    plain = built()
    assert plain.site == ("here", "self", 1, "one")
    assert (plain.read_end, plain.dropout, plain.on_too_long, plain.heads) == (True, 0.0, "error", None)
    assert built(hidden=3).score.v.shape == (3,)
    assert built(read_end=False).read_end is False
    assert built(dropout=0.25).dropout == 0.25
    local_m, local_p = built(placement="local-m", window=3), built(placement="local-p", window=4)
    assert isinstance(local_m.placement, LocalM)
    assert isinstance(local_p.placement, LocalP)
    assert (local_m.placement.window, local_p.placement.window) == (3, 4)
    assert local_p.placement.renormalize is False
    assert built(placement="local-p", renormalize=True).placement.renormalize is True
    hard = built(placement="hard", hard_training="argmax", hard_inference="sample")
    assert isinstance(hard.placement, Hard)
    assert (hard.placement.hard_training, hard.placement.hard_inference) == ("argmax", "sample")
    assert (built(placement="hard").placement.hard_training, built(placement="hard").placement.hard_inference) == (
        "sample",
        "expectation",
    )
    location = built(score="location", max_source_positions=3, on_too_long="ignore")
    assert isinstance(location.score, Location)
    assert (location.score.max_keys, location.on_too_long) == (3, "ignore")
    several = built(score="dot", heads=5)
    assert several.site.heads == several.heads.count == 5
    assert several.score.key_size == 2


@pytest.mark.parametrize(
    ("settings", "mass"),
    [
        ({}, "one"),
        ({"normalizer": "sparsemax"}, "one"),
        ({"normalizer": "entmax15"}, "one"),
        ({"normalizer": "smoothed-softmax"}, "free"),
        ({"normalizer": "smoothed-softmax", "placement": "local-m"}, "free"),
        ({"normalizer": "smoothed-softmax", "placement": "local-p"}, "free"),
        ({"normalizer": "smoothed-softmax", "placement": "local-p", "renormalize": True}, "one"),
        ({"normalizer": "smoothed-softmax", "placement": "uniform"}, "one"),
        ({"placement": "local-p"}, "at_most_one"),
        ({"placement": "local-p", "renormalize": True}, "one"),
        ({"placement": "local-m"}, "one"),
        ({"placement": "hard"}, "one"),
        ({"placement": "uniform"}, "one"),
    ],
)
def test_a_site_states_what_its_weights_sum_to(settings: dict[str, Any], mass: str) -> None:
    assert built(**settings).site.mass == mass
