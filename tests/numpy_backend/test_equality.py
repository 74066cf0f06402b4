"""The NumPy backend computes the same outputs as PyTorch: texts, scores, log-probabilities and attention weights."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command_line import here
from heedful.config import DecodingOptions, ModelConfig
from heedful.errors import DecodingTimeoutError
from heedful.models import build_seq2seq
from heedful.numpy_backend import gru
from heedful.stopping import StopCondition
from heedful.tasks.bundled import find_models
from heedful.tasks.seq2seq.numpy_predict import MAX_LINES, load_numpy_predictor
from heedful.tasks.seq2seq.predict import generate_records, generate_texts, load_predictor
from small_models import PAIRS, random_model_folder

TOLERANCE = 2e-5  # of log-probabilities and attention weights, in float32
LINES = [*(pair.source for pair in PAIRS), "the", "", "a the cat dog fish eats sees red"]
GREEDY = DecodingOptions(max_length=8)
BEAM = DecodingOptions(method="beam", beam=4, n_best=3, max_length=8, length_penalty=0.8)
EXACT = BEAM.model_copy(update={"exact": True, "n_best": 1})
STEPS = {
    "feed nothing": {"step_order": "update-attend-generate"},
    "feed context": {"step_order": "update-attend-generate", "input_feeding": "context"},
    "feed first context": {
        "step_order": "update-attend-generate",
        "input_feeding": "context",
        "input_feeding_init": "attend",
    },
    "attend first": {"step_order": "attend-update-generate"},
    "conditional": {"step_order": "conditional"},
}
READ_OUTS = ("linear", "affine", "tanh", "deep")
STATE_INITS = ("mean", "bridge", "top", "backward", "zeros")
TIES = ("none", "output", "all")


def config(step: dict[str, Any], **changes: Any) -> ModelConfig:
    encoder = {"kind": "gru", "hidden": 6, **changes.pop("encoder", {})}
    decoder = {"kind": "gru", "hidden": 12, **step, **changes.pop("decoder", {})}
    attention = {"score": "additive", "hidden": 7, **changes.pop("attention", {})}
    settings = {"embedding": 10, "encoder": encoder, "decoder": decoder, "attention": attention, **changes}
    return ModelConfig.model_validate({"tie_embeddings": "none", **settings})


def cases() -> list[tuple[str, ModelConfig]]:
    """Every step order with every read-out; the other settings take turns."""
    found = []
    for number, ((name, step), read_out) in enumerate(product(STEPS.items(), READ_OUTS)):
        decoder = {"read_out": read_out, "state_init": STATE_INITS[number % len(STATE_INITS)]}
        decoder["start_token"] = ("<s>", "</s>")[number % 2]
        encoder = {"layers": 1 + number % 2}
        tie = "none" if read_out == "linear" else TIES[number % len(TIES)]
        attention = {"bias": number % 2 == 0}
        case = config(step, decoder=decoder, encoder=encoder, attention=attention, tie_embeddings=tie)
        found.append((f"{name}, {read_out}", case))
    attentional = {"step_order": "update-attend-generate", "input_feeding": "attentional"}
    found += [
        (f"feed attentional, {kind}", config(attentional, decoder={"read_out": kind})) for kind in ("tanh", "affine")
    ]
    found.append(
        (
            "one direction",
            config(
                STEPS["conditional"], encoder={"bidirectional": False, "hidden": 12}, decoder={"state_init": "bridge"}
            ),
        )
    )
    return found


CASES = cases()


@pytest.mark.parametrize("model", [case for _, case in CASES], ids=[name for name, _ in CASES])
def test_the_outputs_are_those_of_torch(model: ModelConfig, tmp_path: Path) -> None:
    random_model_folder(tmp_path, model)
    ours = load_numpy_predictor(tmp_path, DecodingOptions())
    assert ours is not None
    theirs = load_predictor([tmp_path], threads=1)
    for options in (GREEDY, BEAM, EXACT):
        records = generate_records(ours, LINES, options), generate_records(theirs, LINES, options)
        for mine, other in zip(*records, strict=True):
            assert_equal_records(mine, other)
    assert generate_texts(ours, LINES, BEAM) == generate_texts(theirs, LINES, BEAM)


def assert_equal_records(mine: dict[str, Any], other: dict[str, Any]) -> None:
    """Assert that two records of `--json` differ by rounding only."""
    assert mine.keys() == other.keys()
    assert [output["text"] for output in mine["outputs"]] == [output["text"] for output in other["outputs"]]
    assert (mine["source"], mine["unlike_training"]) == (other["source"], other["unlike_training"])
    for a, b in zip(mine["outputs"], other["outputs"], strict=True):
        assert a.keys() == b.keys()
        assert (a["tokens"], a["finished"]) == (b["tokens"], b["finished"])
        for key in ("logp", "score", "confidence", "token_logp", "alignment"):
            np.testing.assert_allclose(a[key], b[key], atol=TOLERANCE * 20 if key == "logp" else TOLERANCE, rtol=1e-5)


@pytest.mark.parametrize("model", [case for _, case in CASES[:: len(STATE_INITS)]])
def test_the_weights_are_those_of_the_torch_model(model: ModelConfig) -> None:
    parameters = dict(build_seq2seq(model, 30, 30).named_parameters())  # without the second names of tied ones
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    ours = gru.weight_shapes(model, 30, 30)
    assert sorted(ours.values()) == sorted(shapes.values())
    for name in ours:
        assert set(gru.aliases(model, name)) & set(shapes), name


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder": {"kind": "lstm"}},
        {"encoder": {"layer_norm": True}},
        {"encoder": {"read_end": False}},
        {"attention": {"score": "general"}},
        {"attention": {"normalizer": "sparsemax"}},
        {"attention": {"coverage": True}},
        {"decoder": {"layers": 2}},
        {"decoder": {"read_out": "maxout"}},
        {"copying": True, "decoder": {"read_out": "tanh"}},
    ],
    ids=str,
)
def test_other_models_are_left_to_torch(changes: dict[str, Any]) -> None:
    assert not gru.supports(config(STEPS["feed nothing"], **changes))


def test_damaged_folders_and_other_options_are_left_to_torch(tmp_path: Path) -> None:
    random_model_folder(tmp_path, CASES[0][1])
    assert load_numpy_predictor(tmp_path, DecodingOptions(method="sample")) is None
    assert load_numpy_predictor(tmp_path, DecodingOptions(method="beam", coverage_penalty=0.2)) is None
    assert load_numpy_predictor(tmp_path / "missing", DecodingOptions()) is None
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\xff\xff\xff\x7f")  # NaN, and another hash
    assert load_numpy_predictor(tmp_path, DecodingOptions()) is None


def test_a_time_limit_ends_the_search(tmp_path: Path) -> None:
    random_model_folder(tmp_path, CASES[0][1])
    ours = load_numpy_predictor(tmp_path, DecodingOptions())
    assert ours is not None
    with pytest.raises(DecodingTimeoutError):
        ours.generate(LINES, GREEDY, stop=StopCondition(max_seconds=1e-9))


EVERYDAY = [
    "Hello.",
    "The cat sleeps on the table.",
    "How old are you?",
    "I would like to buy two tickets for tomorrow.",
]


def test_the_bundled_translator_gives_the_same_without_torch() -> None:
    (folder,) = find_models(["en-fr"], "translate")
    ours = load_numpy_predictor(folder, DecodingOptions())
    assert ours is not None
    with torch.inference_mode():
        theirs = load_predictor([folder], threads=1)
        for mine, other in zip(
            generate_records(ours, EVERYDAY, ours.decoding),
            generate_records(theirs, EVERYDAY, ours.decoding),
            strict=True,
        ):
            assert_equal_records(mine, other)


CODE = """
import sys
from heedful.cli import main
sys.argv = ["heedful", "translate"]
try: main()
except SystemExit: pass
print(sorted({"torch", "scipy", "rich"} & set(sys.modules)), file=sys.stderr)
"""


def test_a_line_is_translated_without_importing_torch() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], input="Hello.\n", capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert done.stderr.splitlines()[-1] == "[]"


def test_many_lines_and_few_give_the_same(tmp_path: Path) -> None:
    random_model_folder(tmp_path / "m", CASES[0][1])
    line = LINES[0] + "\n"
    many = here("translate", "-m", tmp_path / "m", stdin=line * (MAX_LINES + 1))
    assert many.stdout == here("translate", "-m", tmp_path / "m", stdin=line).stdout * (MAX_LINES + 1)
