"""The case of a seed and a number: the kind is drawn by weight, then its generator makes the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from fuzz.case import Case
from fuzz.corpus import Corpus
from fuzz.data_files import data_bomb_case, data_case, training_case
from fuzz.http_requests import client_case, http_case
from fuzz.model_folders import model_case
from fuzz.options import decoding_case, option_case
from fuzz.pair_files import align_case, batch_case, guided_case, studio_training_case
from fuzz.pictures import picture_bomb_case, picture_case
from fuzz.recipes import recipe_case
from fuzz.traces import trace_bomb_case, trace_case
from fuzz.transformers_folders import transformers_case

Generator = Callable[[Corpus, Random], Case]
# Weights in cases per thousand; cheap kinds have more. `make fuzz` keeps 25 cases per second with them.
GENERATORS: dict[str, tuple[float, Generator]] = {
    "recipe": (310, recipe_case),
    "trace": (300, trace_case),
    "model": (180, model_case),
    "data": (80, data_case),
    "decoding": (45, decoding_case),
    "options": (55, option_case),
    "picture": (20, picture_case),
    "training": (9, training_case),
    "http": (150, http_case),
    "client": (60, client_case),
    "align": (40, align_case),
    "batch": (40, batch_case),
    "guided": (15, guided_case),
    "transformers": (20, transformers_case),
    "studio-training": (3, studio_training_case),
    "trace-bomb": (0.3, trace_bomb_case),
    "data-bomb": (0.4, data_bomb_case),
    "picture-bomb": (0.3, picture_bomb_case),
}


def make_case(corpus: Corpus, seed: int, number: int, kinds: tuple[str, ...] = ()) -> Case:
    """Return the case of a seed and a number; `kinds` restricts the choice, and makes other cases."""
    rng = Random(f"{seed}:{number}")
    names = kinds or tuple(GENERATORS)
    (name,) = rng.choices(names, [GENERATORS[kind][0] for kind in names])
    return replace(GENERATORS[name][1](corpus, rng), name=f"{seed}:{number}")


def one_of_each(corpus: Corpus, seed: int, count: int) -> list[Case]:
    """Return `count` cases in which every kind occurs, the cheap ones by their weight.

    Folders of transformers are left to campaigns: what another library raises is not promised.
    """
    usual = tuple(kind for kind in GENERATORS if kind != "transformers")
    kinds = [kind for kind in usual if not kind.endswith("-bomb")]
    return [
        make_case(corpus, seed, number, (kinds[number],) if number < len(kinds) else usual) for number in range(count)
    ]
