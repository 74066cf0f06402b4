"""Decoding options: one object for recipe, command line and Python."""

from __future__ import annotations

import pytest

from heedful.config import DecodingOptions, decoding_options


def test_only_explicit_options_override() -> None:
    recipe = DecodingOptions(method="beam", beam=7, length_penalty=0.6)
    assert recipe.override(DecodingOptions()) == recipe
    options = recipe.override(DecodingOptions(length_penalty=1.0))
    assert (options.method, options.beam, options.length_penalty) == ("beam", 7, 1.0), "1.0 is the default, but was set"


@pytest.mark.parametrize(
    ("recipe", "given", "expected"),
    [
        ({}, {"n_best": 3}, ("beam", 5, 3)),
        ({}, {"n_best": 9}, ("beam", 9, 9)),
        ({"method": "sample"}, {"n_best": 3}, ("sample", 5, 3)),
        ({"method": "beam", "beam": 2}, {"n_best": 3}, ("beam", 2, 3)),
        ({"method": "beam", "beam": 4}, {"beam": 1}, ("greedy", 1, 1)),
        ({}, {"beam": 4}, ("beam", 4, 1)),
        ({}, {"beam": 4, "method": "sample"}, ("sample", 4, 1)),
    ],
)
def test_the_method_follows_from_beam_and_n_best(
    recipe: dict[str, object], given: dict[str, object], expected: tuple[str, int, int]
) -> None:
    options = DecodingOptions.model_validate(recipe).override(decoding_options(given))
    assert (options.method, options.beam, options.n_best) == expected


def test_none_means_not_given() -> None:
    assert decoding_options(dict.fromkeys(DecodingOptions.model_fields)).model_fields_set == set()
