"""The speed benchmark without its peers: subwords, protocol, table, and conversion of OpenNMT-py's weights."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import subprocess
import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import small_models
from heedful.config import ModelConfig, TokenizerConfig, load_recipe
from heedful.config.migrate import migrate_recipe
from heedful.data.batch import EncodedPair, TextBatch, collate, pad
from heedful.data.tokenizer import END, SPECIALS, START, Tokenizer
from heedful.models import build_seq2seq

SPEED = Path(__file__).parents[1] / "benchmarks" / "speed"
pytestmark = pytest.mark.skipif(not SPEED.is_dir(), reason="the benchmark is not in the sdist")
Array = npt.NDArray[np.float64]
Weights = dict[str, Array]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The scripts by name, as they import one another, with a cache folder of their own."""
    monkeypatch.syspath_prepend(str(SPEED))
    monkeypatch.setenv("HEEDFUL_BENCH", str(tmp_path / "cache"))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    yield load
    for path in SPEED.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize("name", ["sizes", "table", "run", "growth", "convert_onmt"])
def test_examples_in_docstrings_are_true(bench: Any, name: str) -> None:
    results = doctest.testmod(bench(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.attempted > 0
    assert results.failed == 0


LINES = ["A man, a plan: 3 cats!", "Zwei Männer  gehen.", "größer ▁ als 🐈 </s>", " led by a space"]


def test_subwords_of_the_peers_are_those_of_heedful(bench: Any, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(LINES * 3, TokenizerConfig(kind="bpe", vocab_size=300))
    tokenizer.save(tmp_path / "subwords.json")
    peers = bench("subwords").SubwordTokenizer(tmp_path / "subwords.json")
    names = [*SPECIALS, *peers.vocabulary()]
    assert len(names) == len(tokenizer)
    for line, subwords in zip(LINES, peers.split(LINES), strict=True):
        assert all(subword and not any(map(str.isspace, subword)) for subword in subwords)
        assert [names.index(subword) for subword in subwords] == tokenizer.encode(line)[:-1]
        assert peers.join(subwords) == tokenizer.decode(tokenizer.encode(line)) == line


# A worker without a framework: it trains by sleeping, and reports a fixed time for decoding.
FAKE = """
import sys
import time
sys.path.insert(0, {speed!r})
import protocol

protocol.WARMUP_STEPS = 1
NAME = sys.argv[1]

class Fake(protocol.Worker):
    def run_training(self, model, threads, clock):
        clock.extra["parameters"] = 12
        while True:
            clock.count_tokens(100)
            time.sleep(0.002)
            clock.on_step_end()

    def do_gemm(self, threads):
        return {{"gflops": 200.0}}

    def do_decode(self, model, method, sentences, threads=1, workers=1, int8=False, **options):
        print("output of a library")
        if NAME == "broken":
            raise ValueError("no such thing")
        seconds = {{"heedful": 1.0, "joey": 20.0}}.get(NAME, 4.0)
        seconds /= (1 + int8) * (2 if method == "traced" else 1)
        return {{"seconds": seconds / threads, "outputs": [f"line {{i}}" for i in range(sentences)]}}

Fake().serve()
"""


@pytest.fixture
def workers(tmp_path: Path) -> list[str]:
    script = tmp_path / "fake.py"
    script.write_text(FAKE.format(speed=str(SPEED)), encoding="utf-8")
    names = ("heedful", "joey", "onmt", "ct2")
    return [f"--worker={name}={sys.executable} {script} {name}" for name in names]


def test_rounds_become_a_table_and_a_picture(bench: Any, workers: list[str], tmp_path: Path) -> None:
    run, out = bench("run"), tmp_path / "out"
    options = ["--no-prepare", "--quick", "--seconds", "0.05", "--out", str(out), *workers]
    assert run.main([*options, "--rows", "greedy-R,single-T,traced-R"]) == 0
    assert run.main([*options, "--rows", "train-R"]) == 0  # later rows are added to the earlier ones
    table = (out / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    floats, joey = [line for line in table if "greedy, batch 64, model R" in line and "JoeyNMT:" in line]
    assert joey.startswith(
        "| greedy, batch 64, model R | int8: 80 sentences/s | JoeyNMT: 2 sentences/s | **40.00x** |"
        " 40.00-40.00 | 15x | yes | 2 |"
    )
    assert "| 40 sentences/s | JoeyNMT: 2 sentences/s | **20.00x** | 20.00-20.00 |  |  | 2 |" in floats
    assert any("one sentence at a time, T | 25.0 ms | CTranslate2 int8: 100.0 ms | **4.00x**" in t for t in table)
    assert any("| 80 sentences/s | not traced: 40 sentences/s | **2.00x**" in line for line in table)
    assert any("| int8: 80 sentences/s | OpenNMT-py: 10 sentences/s | **8.00x**" in line for line in table)
    assert any("| greedy, batch 64, model R | heedful |" in t and "| 20 of 20 | 2 |" in t for t in table)
    assert any(line.startswith("| R, OpenNMT-py |") and line.endswith("| 12 |") for line in table)
    assert any(line.startswith("Peak memory of training model R: heedful") for line in table)
    assert (out / "results.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "cache" / "results-quick" / "train-R.json").read_text(encoding="utf-8"))
    assert [set(results) for results in record["rounds"]] == [{"joey", "onmt", "heedful"}] * 2
    assert record["peaks"] == [200.0, 200.0]
    for path in (tmp_path / "cache" / "results-quick").glob("*.json"):  # another machine
        path.unlink()
    with pytest.raises(
        SystemExit, match=r"would lose rows measured on another machine: greedy-R, .*; choose another folder"
    ):
        run.main([*options, "--rows", "train-R"])
    assert (out / "RESULTS.md").read_text(encoding="utf-8").splitlines() == table


def test_a_failing_worker_costs_only_its_row(
    bench: Any, workers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = workers[1].replace("joey", "broken").replace("--worker=broken", "--worker=joey")
    options = ["--no-prepare", "--quick", "--out", str(tmp_path / "out"), *workers, broken]
    assert bench("run").main([*options, "--rows", "greedy-R,traced-R"]) == 1
    assert "no such thing" in capsys.readouterr().err
    table = (tmp_path / "out" / "RESULTS.md").read_text(encoding="utf-8")
    assert "not traced" in table
    assert "JoeyNMT:" not in table
    with pytest.raises(SystemExit, match="no row named fast; known: train-R"):
        bench("run").main(["--rows", "fast"])


def test_ratios_are_per_round_and_bleu_is_interpolated(bench: Any) -> None:
    table, run = bench("table"), bench("run")
    rounds = [{"heedful": {"rate": a}, "onmt": {"rate": b}} for a, b in ((2.0, 1.0), (9.0, 3.0), (4.0, 1.0))]
    assert table.speed_ratio({"rounds": rounds}, "onmt") == (3.0, 2.0, 4.0)
    assert run.time_to_bleu([[60.0, 10.0], [120.0, 28.0], [180.0, 32.0]], 30.0) == pytest.approx(150.0)
    assert run.time_to_bleu([[60.0, 10.0]], 30.0) is None
    assert 40 < bench("sizes").flops("R", 15.3, 15.8) / 1e6 < 55


# OpenNMT-py's models R and T at small sizes, written from its equations in plain numpy, one sentence at a time; shares
# no code with heedful or OpenNMT-py.


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softmax(x: Array) -> Array:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _gru(w: Weights, name: str, end: str, x: Array, h: Array) -> Array:
    """torch's GRU cell: r, z, n."""
    a = w[f"{name}weight_ih{end}"] @ x + w[f"{name}bias_ih{end}"]
    b = w[f"{name}weight_hh{end}"] @ h + w[f"{name}bias_hh{end}"]
    (ra, za, na), (rb, zb, nb) = np.split(a, 3), np.split(b, 3)
    z = _sigmoid(za + zb)
    return np.asarray((1 - z) * np.tanh(na + _sigmoid(ra + rb) * nb) + z * h)


def _recurrent(w: Weights, source: list[int], words: list[int]) -> Array:
    """Return the logits after each word: input feeding, `mlp` attention, no tanh around `linear_out`."""
    table = "embeddings.make_embedding.emb_luts.0.weight"
    vectors = [w[f"encoder.{table}"][i] for i in source]
    directions = []
    for end, order in (("_l0", vectors), ("_l0_reverse", vectors[::-1])):
        h, states = np.zeros(w["encoder.rnn.weight_hh_l0"].shape[1]), []
        for x in order:
            h = _gru(w, "encoder.rnn.", end, x, h)
            states.append(h)
        directions.append(states)
    keys = np.array([np.concatenate(both) for both in zip(directions[0], directions[1][::-1], strict=True)])
    state = np.concatenate([directions[0][-1], directions[1][-1]])
    input_feed, logits = np.zeros(len(state)), []
    for word in words:
        x = np.concatenate([w[f"decoder.{table}"][word], input_feed])
        state = _gru(w, "decoder.rnn.layers.0.", "", x, state)
        query = w["decoder.attn.linear_query.weight"] @ state + w["decoder.attn.linear_query.bias"]
        inner = np.tanh(query + keys @ w["decoder.attn.linear_context.weight"].T)
        context = _softmax(inner @ w["decoder.attn.v.weight"][0]) @ keys
        both = np.concatenate([context, state])
        input_feed = w["decoder.attn.linear_out.weight"] @ both + w["decoder.attn.linear_out.bias"]
        logits.append(w["generator.weight"] @ input_feed + w["generator.bias"])
    return np.array(logits)


def _norm(w: Weights, name: str, x: Array) -> Array:
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(variance + 1e-6) * w[f"{name}.weight"] + w[f"{name}.bias"])


def _multi_head(w: Weights, name: str, query: Array, source: Array, heads: int, causal: bool) -> Array:
    q, k, v = (
        x @ w[f"{name}.linear_{part}.weight"].T for x, part in ((query, "query"), (source, "keys"), (source, "values"))
    )
    contexts = []
    for qh, kh, vh in zip(*(np.split(x, heads, axis=1) for x in (q, k, v)), strict=True):
        scores = qh @ kh.T / np.sqrt(qh.shape[1])
        if causal:
            scores = np.where(np.tri(len(scores)) > 0, scores, -1e18)
        contexts.append(_softmax(scores) @ vh)
    return np.asarray(np.concatenate(contexts, axis=1) @ w[f"{name}.final_linear.weight"].T)


def _feed_forward(w: Weights, name: str, x: Array) -> Array:
    inner = _norm(w, f"{name}.layer_norm", x) @ w[f"{name}.w_1.weight"].T + w[f"{name}.w_1.bias"]
    return np.asarray(np.maximum(inner, 0) @ w[f"{name}.w_2.weight"].T + w[f"{name}.w_2.bias"] + x)


def _embed(w: Weights, side: str, ids: list[int]) -> Array:
    vectors = w[f"{side}.embeddings.make_embedding.emb_luts.0.weight"][ids]
    width = vectors.shape[1]
    angles = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    sinusoids = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(ids), width)
    return np.asarray(vectors * np.sqrt(width) + sinusoids)


def _transformer(w: Weights, source: list[int], words: list[int], heads: int = 2, layers: int = 2) -> Array:
    """Return the logits of a pre-norm Transformer with interleaved sinusoids and projections without bias."""
    memory = _embed(w, "encoder", source)
    for i in range(layers):
        name = f"encoder.transformer.{i}"
        normed = _norm(w, f"{name}.layer_norm", memory)
        memory = memory + _multi_head(w, f"{name}.self_attn", normed, normed, heads, False)
        memory = _feed_forward(w, f"{name}.feed_forward", memory)
    memory = _norm(w, "encoder.layer_norm", memory)
    x = _embed(w, "decoder", words)
    for i in range(layers):
        name = f"decoder.transformer_layers.{i}"
        normed = _norm(w, f"{name}.layer_norm_1", x)
        x = x + _multi_head(w, f"{name}.self_attn", normed, normed, heads, True)
        x = x + _multi_head(w, f"{name}.context_attn", _norm(w, f"{name}.layer_norm_2", x), memory, heads, False)
        x = _feed_forward(w, f"{name}.feed_forward", x)
    return np.asarray(_norm(w, "decoder.layer_norm", x) @ w["generator.weight"].T + w["generator.bias"])


def _recurrent_shapes(words: int, width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    half = hidden // 2
    shapes: dict[str, tuple[int, ...]] = {}
    for end in ("_l0", "_l0_reverse"):
        shapes |= {f"encoder.rnn.weight_ih{end}": (3 * half, width), f"encoder.rnn.bias_ih{end}": (3 * half,)}
        shapes |= {f"encoder.rnn.weight_hh{end}": (3 * half, half), f"encoder.rnn.bias_hh{end}": (3 * half,)}
    gates, attention = "decoder.rnn.layers.0", "decoder.attn"
    return {
        **shapes,
        f"{gates}.weight_ih": (3 * hidden, width + hidden),
        f"{gates}.weight_hh": (3 * hidden, hidden),
        f"{gates}.bias_ih": (3 * hidden,),
        f"{gates}.bias_hh": (3 * hidden,),
        f"{attention}.linear_context.weight": (hidden, hidden),
        f"{attention}.linear_query.weight": (hidden, hidden),
        f"{attention}.linear_query.bias": (hidden,),
        f"{attention}.v.weight": (1, hidden),
        f"{attention}.linear_out.weight": (hidden, 2 * hidden),
        f"{attention}.linear_out.bias": (hidden,),
    }


def _transformer_shapes(width: int, inner: int, layers: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for side, stack, attentions, norms in (
        ("encoder", "transformer", ["self_attn"], ["layer_norm"]),
        ("decoder", "transformer_layers", ["self_attn", "context_attn"], ["layer_norm_1", "layer_norm_2"]),
    ):
        for name in [f"{side}.{stack}.{i}" for i in range(layers)]:
            parts = ("linear_query", "linear_keys", "linear_values", "final_linear")
            shapes |= {
                f"{name}.{attention}.{part}.weight": (width, width) for attention in attentions for part in parts
            }
            norm_names = [*norms, "feed_forward.layer_norm"]
            shapes |= {f"{name}.{norm}.{kind}": (width,) for norm in norm_names for kind in ("weight", "bias")}
            shapes |= {f"{name}.feed_forward.w_1.weight": (inner, width)}
            shapes |= {f"{name}.feed_forward.w_1.bias": (inner,), f"{name}.feed_forward.w_2.bias": (width,)}
            shapes |= {f"{name}.feed_forward.w_2.weight": (width, inner)}
        shapes |= {f"{side}.layer_norm.{kind}": (width,) for kind in ("weight", "bias")}
    return shapes


OURS = [*SPECIALS, "cat", "dog", "a", "the", "Ġsees"]
THEIRS = ["<unk>", "<blank>", "<s>", "</s>", "Ġsees", "the", "a", "dog", "cat"]
COMMON = {"src_word_vec_size": 6, "dropout": [0.1], "enc_hid_size": 6, "dec_hid_size": 6}
OPTIONS: dict[str, dict[str, Any]] = {
    "R": {"decoder_type": "rnn", "encoder_type": "brnn", "rnn_type": "GRU", "global_attention": "mlp"}
    | {"input_feed": 1, "bridge": False, "enc_layers": 1, "dec_layers": 1},
    "T": {"decoder_type": "transformer", "encoder_type": "transformer", "heads": 2, "transformer_ff": 10}
    | {"norm_eps": 1e-6, "enc_layers": 2, "dec_layers": 2},
}
ORACLES = {"R": _recurrent, "T": _transformer}


@pytest.mark.parametrize("name", ["R", "T"])
def test_converted_weights_give_the_logits_of_opennmts_equations(bench: Any, name: str) -> None:
    converter = bench("convert_onmt")
    rng = np.random.default_rng(5)
    shapes = _recurrent_shapes(len(THEIRS), 6, 6) if name == "R" else _transformer_shapes(6, 10, 2)
    for side in ("encoder", "decoder"):
        shapes[f"{side}.embeddings.make_embedding.emb_luts.0.weight"] = (len(THEIRS), 6)
    theirs = {key: rng.normal(0, 0.7, shape) for key, shape in shapes.items()}
    last = {"weight": rng.normal(0, 1, (len(THEIRS), 6)), "bias": rng.normal(0, 1, len(THEIRS))}
    opt = Namespace(**COMMON, **OPTIONS[name])
    checkpoint = {
        "model": {key: torch.from_numpy(value) for key, value in theirs.items()},
        "generator": {key: torch.from_numpy(value) for key, value in last.items()},
        "vocab": {"src": THEIRS, "tgt": THEIRS},
        "opt": opt,
    }
    config = ModelConfig.model_validate(converter.model_section(opt))
    model = build_seq2seq(config, len(OURS), len(OURS)).double().eval()
    model.load_state_dict(converter.convert_weights(checkpoint, (OURS, OURS)))

    pairs = [([4, 5, 6, 8], [7, 4, 4, 5]), ([6], [8, 8, 4]), ([8, 7], [5])]  # heedful's ids, without end tokens
    batch = collate([EncodedPair([*s, END], [*t, END]) for s, t in pairs])
    actual = model(batch).logits.detach().numpy()
    onmt_ids = converter.match_ids(OURS, THEIRS).tolist()
    everything = theirs | {f"generator.{key}": value for key, value in last.items()}
    for row, (source, target) in enumerate(pairs):
        prefix = [onmt_ids[i] for i in (START, *target)]
        expected = ORACLES[name](everything, [onmt_ids[i] for i in source], prefix)[:, onmt_ids]
        np.testing.assert_allclose(
            actual[row, : len(prefix)], expected, rtol=0, atol=1e-7
        )  # heedful's sinusoids are float32


def test_an_unknown_architecture_is_refused(bench: Any) -> None:
    opt = Namespace(**COMMON, **{**OPTIONS["R"], "global_attention": "dot"})
    with pytest.raises(ValueError, match="only additive attention"):
        bench("convert_onmt").model_section(opt)


@pytest.mark.parametrize("preset", ["bigru-gru", "transformer", "conv-conv"])
def test_without_read_end_the_end_token_makes_no_difference(preset: str) -> None:
    model = small_models.build_model(small_models.small_preset(preset, encoder__read_end=False))
    default = small_models.build_model(small_models.small_preset(preset))
    default.load_state_dict(model.state_dict())
    sources = [[4, 5, 6], [7], [8, 9]]
    state, _ = model.initial_state(TextBatch(pad([[*row, END] for row in sources])))
    other, _ = default.initial_state(TextBatch(pad(sources)))
    first = torch.full((len(sources),), START)
    assert torch.allclose(model.step(state, first).logits, default.step(other, first).logits, atol=1e-12)
    alone, _ = model.initial_state(TextBatch(pad([[END]])))  # a source of only an end token keeps it
    assert torch.isfinite(model.step(alone, first[:1]).logits).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention__bias": True, "attention__score": "general"}, "bias = true: needs score"),
        ({"encoder__read_end": False, "attention__read_end": False}, "attention.read_end must be true"),
    ],
)
def test_settings_for_converted_models_are_checked(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small_models.small_preset("bigru-gru", **changes)


PEERS_ONLY = {"worker_ct2", "worker_joey", "worker_onmt", "train_onmt"}  # import packages of the peers


@pytest.mark.parametrize("folder", [".", "alignment", "figures", "speed"])
def test_every_script_imports_names_that_exist(folder: str) -> None:
    """The scripts are not run by tests; renamed functions would go unnoticed otherwise."""
    names = sorted({path.stem for path in (SPEED.parent / folder).glob("*.py")} - PEERS_ONLY)
    code = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    path = os.pathsep.join([str(SPEED.parent / folder), *sys.path])
    process = subprocess.run(
        [sys.executable, "-c", code, *names], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("recipe", sorted(SPEED.parent.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_has_keys_of_format_2(recipe: Path) -> None:
    tree = tomllib.loads(recipe.read_text(encoding="utf-8"))
    assert migrate_recipe(tree) == tree
    assert load_recipe(recipe).recipe.training.epochs > 0
