"""The benchmark's own parts, without any peer: pieces, protocol, table, and OpenNMT-py's equations."""

from __future__ import annotations

import doctest
import importlib
import json
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

import small
from heedful.config import ModelConfig, TokenizerConfig
from heedful.data.batch import Encoded, TextBatch, collate, pad
from heedful.data.tokenizer import END, SPECIALS, START, Tokenizer
from heedful.models import build

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


@pytest.mark.parametrize("name", ["sizes", "table", "run", "growth", "from_onmt"])
def test_what_the_scripts_say_of_themselves_is_so(bench: Any, name: str) -> None:
    found = doctest.testmod(bench(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0


LINES = ["A man, a plan: 3 cats!", "Zwei Männer  gehen.", "größer ▁ als 🐈 </s>", " led by a space"]


def test_pieces_are_ours_and_come_back_as_text(bench: Any, tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(LINES * 3, TokenizerConfig(kind="bpe", size=300))
    tokenizer.save(tmp_path / "pieces.json")
    pieces = bench("pieces").Pieces(tmp_path / "pieces.json")
    names = [*SPECIALS, *pieces.names()]
    assert len(names) == len(tokenizer)
    for line, cut in zip(LINES, pieces.cut(LINES), strict=True):
        assert all(piece and not any(map(str.isspace, piece)) for piece in cut)
        assert [names.index(piece) for piece in cut] == tokenizer.encode(line)[:-1]
        assert pieces.join(cut) == tokenizer.decode(tokenizer.encode(line)) == line


# A worker without a framework: it trains by waiting, and says of a translation how long it would have taken.
FAKE = """
import sys
import time
sys.path.insert(0, {speed!r})
import protocol

protocol.WARM = 1
NAME = sys.argv[1]

class Fake(protocol.Worker):
    def learn(self, model, threads, clock):
        clock.more["parameters"] = 12
        while True:
            clock.saw(100)
            time.sleep(0.002)
            clock.between()

    def do_gemm(self, threads):
        return {{"gflops": 200.0}}

    def do_decode(self, model, how, sentences, threads=1, workers=1, int8=False, **more):
        print("a library that talks")
        if NAME == "broken":
            raise ValueError("no such thing")
        slow = {{"heedful": 1.0, "joey": 20.0}}.get(NAME, 4.0)
        slow /= (1 + int8) * (2 if how == "traced" else 1)
        return {{"seconds": slow / threads, "outputs": [f"line {{i}}" for i in range(sentences)]}}

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
    asked = ["--as-is", "--quick", "--seconds", "0.05", "--out", str(out), *workers]
    assert run.main([*asked, "--rows", "greedy-R,single-T,traced-R"]) == 0
    assert run.main([*asked, "--rows", "train-R"]) == 0  # later rows join what was there
    table = (out / "RESULTS.md").read_text(encoding="utf-8").splitlines()
    floats, joey = [line for line in table if "greedy, batch 64, model R" in line and "JoeyNMT:" in line]
    assert joey.startswith(
        "| greedy, batch 64, model R | int8: 80 sentences/s | JoeyNMT: 2 sentences/s | **40.00x** |"
        " 40.00-40.00 | 15x | yes | 2 |"
    )
    assert "| 40 sentences/s | JoeyNMT: 2 sentences/s | **20.00x** | 20.00-20.00 |  |  | 2 |" in floats
    assert any(
        "one sentence at a time, T | 25.0 ms | CTranslate2 int8: 100.0 ms | **4.00x**" in t for t in table
    )
    assert any("| 80 sentences/s | not traced: 40 sentences/s | **2.00x**" in line for line in table)
    assert any("| int8: 80 sentences/s | OpenNMT-py: 10 sentences/s | **8.00x**" in line for line in table)
    assert any("| greedy, batch 64, model R | heedful |" in t and "| 20 of 20 | 2 |" in t for t in table)
    assert any(line.startswith("| R, OpenNMT-py |") and line.endswith("| 12 |") for line in table)
    assert any(line.startswith("Training model R holds") for line in table)
    assert (out / "results.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((tmp_path / "cache" / "results-quick" / "train-R.json").read_text(encoding="utf-8"))
    assert [set(found) for found in record["rounds"]] == [{"joey", "onmt", "heedful"}] * 2
    assert record["peaks"] == [200.0, 200.0]
    for path in (tmp_path / "cache" / "results-quick").glob("*.json"):  # another machine
        path.unlink()
    with pytest.raises(
        SystemExit, match=r"would lose what was measured elsewhere: greedy-R, .*; --out takes"
    ):
        run.main([*asked, "--rows", "train-R"])
    assert (out / "RESULTS.md").read_text(encoding="utf-8").splitlines() == table


def test_a_worker_that_fails_costs_its_row_and_no_other(
    bench: Any, workers: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = workers[1].replace("joey", "broken").replace("--worker=broken", "--worker=joey")
    asked = ["--as-is", "--quick", "--out", str(tmp_path / "out"), *workers, broken]
    assert bench("run").main([*asked, "--rows", "greedy-R,traced-R"]) == 1
    assert "no such thing" in capsys.readouterr().err
    table = (tmp_path / "out" / "RESULTS.md").read_text(encoding="utf-8")
    assert "not traced" in table
    assert "JoeyNMT:" not in table
    with pytest.raises(SystemExit, match="no such row: fast; there are train-R"):
        bench("run").main(["--rows", "fast"])


def test_ratios_belong_to_rounds_and_bleu_is_read_between_points(bench: Any) -> None:
    table, run = bench("table"), bench("run")
    rounds = [{"heedful": {"rate": a}, "onmt": {"rate": b}} for a, b in ((2.0, 1.0), (9.0, 3.0), (4.0, 1.0))]
    assert table.ratio({"rounds": rounds}, "onmt") == (3.0, 2.0, 4.0)
    assert run.crossing([[60.0, 10.0], [120.0, 28.0], [180.0, 32.0]], 30.0) == pytest.approx(150.0)
    assert run.crossing([[60.0, 10.0]], 30.0) is None
    assert 40 < bench("sizes").flops("R", 15.3, 15.8) / 1e6 < 55


# OpenNMT-py's models R and T at small sizes, written from its equations with plain numpy, one sentence at a
# time. Nothing of ours, nothing of theirs.


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
    """The scores after each of the words: input feeding, `mlp` attention, no tanh around `linear_out`."""
    table = "embeddings.make_embedding.emb_luts.0.weight"
    vectors = [w[f"encoder.{table}"][i] for i in source]
    ways = []
    for end, order in (("_l0", vectors), ("_l0_reverse", vectors[::-1])):
        h, states = np.zeros(w["encoder.rnn.weight_hh_l0"].shape[1]), []
        for x in order:
            h = _gru(w, "encoder.rnn.", end, x, h)
            states.append(h)
        ways.append(states)
    keys = np.array([np.concatenate(both) for both in zip(ways[0], ways[1][::-1], strict=True)])
    state = np.concatenate([ways[0][-1], ways[1][-1]])
    fed, scores = np.zeros(len(state)), []
    for word in words:
        x = np.concatenate([w[f"decoder.{table}"][word], fed])
        state = _gru(w, "decoder.rnn.layers.0.", "", x, state)
        asked = w["decoder.attn.linear_query.weight"] @ state + w["decoder.attn.linear_query.bias"]
        inner = np.tanh(asked + keys @ w["decoder.attn.linear_context.weight"].T)
        context = _softmax(inner @ w["decoder.attn.v.weight"][0]) @ keys
        both = np.concatenate([context, state])
        fed = w["decoder.attn.linear_out.weight"] @ both + w["decoder.attn.linear_out.bias"]
        scores.append(w["generator.weight"] @ fed + w["generator.bias"])
    return np.array(scores)


def _norm(w: Weights, name: str, x: Array) -> Array:
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return np.asarray((x - mean) / np.sqrt(variance + 1e-6) * w[f"{name}.weight"] + w[f"{name}.bias"])


def _heads(w: Weights, name: str, asking: Array, read: Array, heads: int, causal: bool) -> Array:
    q, k, v = (
        x @ w[f"{name}.linear_{part}.weight"].T
        for x, part in ((asking, "query"), (read, "keys"), (read, "values"))
    )
    mixed = []
    for qh, kh, vh in zip(*(np.split(x, heads, axis=1) for x in (q, k, v)), strict=True):
        fits = qh @ kh.T / np.sqrt(qh.shape[1])
        if causal:
            fits = np.where(np.tri(len(fits)) > 0, fits, -1e18)
        mixed.append(_softmax(fits) @ vh)
    return np.asarray(np.concatenate(mixed, axis=1) @ w[f"{name}.final_linear.weight"].T)


def _feed(w: Weights, name: str, x: Array) -> Array:
    inner = _norm(w, f"{name}.layer_norm", x) @ w[f"{name}.w_1.weight"].T + w[f"{name}.w_1.bias"]
    return np.asarray(np.maximum(inner, 0) @ w[f"{name}.w_2.weight"].T + w[f"{name}.w_2.bias"] + x)


def _placed(w: Weights, side: str, ids: list[int]) -> Array:
    vectors = w[f"{side}.embeddings.make_embedding.emb_luts.0.weight"][ids]
    width = vectors.shape[1]
    angles = np.arange(len(ids))[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(ids), width)
    return np.asarray(vectors * np.sqrt(width) + waves)


def _transformer(w: Weights, source: list[int], words: list[int], heads: int = 2, layers: int = 2) -> Array:
    """Pre-norm, sinusoids between one another, projections without biases."""
    read = _placed(w, "encoder", source)
    for i in range(layers):
        name = f"encoder.transformer.{i}"
        given = _norm(w, f"{name}.layer_norm", read)
        read = read + _heads(w, f"{name}.self_attn", given, given, heads, False)
        read = _feed(w, f"{name}.feed_forward", read)
    read = _norm(w, "encoder.layer_norm", read)
    x = _placed(w, "decoder", words)
    for i in range(layers):
        name = f"decoder.transformer_layers.{i}"
        given = _norm(w, f"{name}.layer_norm_1", x)
        x = x + _heads(w, f"{name}.self_attn", given, given, heads, True)
        x = x + _heads(w, f"{name}.context_attn", _norm(w, f"{name}.layer_norm_2", x), read, heads, False)
        x = _feed(w, f"{name}.feed_forward", x)
    return np.asarray(_norm(w, "decoder.layer_norm", x) @ w["generator.weight"].T + w["generator.bias"])


def _shapes_of_r(words: int, width: int, hidden: int) -> dict[str, tuple[int, ...]]:
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


def _shapes_of_t(width: int, inner: int, layers: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for side, stack, looks, norms in (
        ("encoder", "transformer", ["self_attn"], ["layer_norm"]),
        ("decoder", "transformer_layers", ["self_attn", "context_attn"], ["layer_norm_1", "layer_norm_2"]),
    ):
        for name in [f"{side}.{stack}.{i}" for i in range(layers)]:
            parts = ("linear_query", "linear_keys", "linear_values", "final_linear")
            shapes |= {f"{name}.{look}.{part}.weight": (width, width) for look in looks for part in parts}
            norm_names = [*norms, "feed_forward.layer_norm"]
            shapes |= {
                f"{name}.{norm}.{kind}": (width,) for norm in norm_names for kind in ("weight", "bias")
            }
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
def test_weights_of_opennmt_write_as_its_equations_say(bench: Any, name: str) -> None:
    convert = bench("from_onmt")
    rng = np.random.default_rng(5)
    shapes = _shapes_of_r(len(THEIRS), 6, 6) if name == "R" else _shapes_of_t(6, 10, 2)
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
    config = ModelConfig.model_validate(convert.model_tree(opt))
    model = build(config, len(OURS), len(OURS)).double().eval()
    model.load_state_dict(convert.weights(checkpoint, (OURS, OURS)))

    pairs = [([4, 5, 6, 8], [7, 4, 4, 5]), ([6], [8, 8, 4]), ([8, 7], [5])]  # of our numbers, ends apart
    batch = collate([Encoded([*s, END], [*t, END]) for s, t in pairs])
    found = model.score(batch).logits.detach().numpy()
    numbers = convert.rows(OURS, THEIRS).tolist()
    everything = theirs | {f"generator.{key}": value for key, value in last.items()}
    for row, (source, target) in enumerate(pairs):
        given = [numbers[i] for i in (START, *target)]
        wanted = ORACLES[name](everything, [numbers[i] for i in source], given)[:, numbers]
        np.testing.assert_allclose(
            found[row, : len(given)], wanted, rtol=0, atol=1e-7
        )  # our sinusoids are float32


def test_what_the_loader_does_not_know_is_refused(bench: Any) -> None:
    opt = Namespace(**COMMON, **{**OPTIONS["R"], "global_attention": "dot"})
    with pytest.raises(ValueError, match="only additive attention"):
        bench("from_onmt").model_tree(opt)


@pytest.mark.parametrize("preset", ["bigru-gru", "transformer", "conv-conv"])
def test_an_end_that_is_not_read_makes_no_difference(preset: str) -> None:
    model = small.built(small.preset(preset, encoder__read_end=False))
    usual = small.built(small.preset(preset))
    usual.load_state_dict(model.state_dict())
    sources = [[4, 5, 6], [7], [8, 9]]
    state, _ = model.encode(TextBatch(pad([[*row, END] for row in sources])))
    other, _ = usual.encode(TextBatch(pad(sources)))
    first = torch.full((len(sources),), START)
    assert torch.allclose(model.step(state, first).logits, usual.step(other, first).logits, atol=1e-12)
    alone, _ = model.encode(TextBatch(pad([[END]])))  # nothing but an end: it is kept
    assert torch.isfinite(model.step(alone, first[:1]).logits).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention__bias": True, "attention__score": "general"}, "bias = true: needs score"),
        ({"encoder__read_end": False, "attention__read_end": False}, "no end is left"),
    ],
)
def test_settings_for_others_models_are_checked(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        small.preset("bigru-gru", **changes)
