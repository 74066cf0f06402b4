"""`-m hf:FOLDER` on the command line and in `heedful.load`, and measures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

import heedful
from command_line import complaint, here
from heedful.errors import ModelError
from heedful.trace.schema import Trace
from integrations import tiny_transformers as tiny

PAIRS = [
    ("The cat sleeps.", "Le chat dort."),
    ("A dog eats the fish.", "Un chien mange."),
    ("the old chair", "la vieille chaise"),
    ("A cat eats.", "Un chat mange."),
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of a translator, a classifier and a decoder, as `save_pretrained` writes them."""
    base = tmp_path_factory.mktemp("models")
    paths = {name: base / name for name in ("marian", "bert")}
    tokenizer = tiny.tokenizer()
    heedful.from_transformers(tiny.marian(len(tokenizer)), tokenizer).save_pretrained(paths["marian"])
    tokenizer = tiny.tokenizer("wordpiece", "<s> $A </s>")
    heedful.from_transformers(tiny.bert(len(tokenizer)), tokenizer).save_pretrained(paths["bert"])
    return paths


def test_commands_take_a_folder_of_transformers(folders: dict[str, Path], tmp_path: Path) -> None:
    name = f"hf:{folders['marian']}"
    model = heedful.load(name)
    traced = here("trace", tiny.SENTENCE, "-m", name, "-o", str(tmp_path / "t.json"), "--set", "uniform:step=1")
    assert traced.returncode == 0, traced.stderr
    assert "before:" in traced.stdout
    trace = Trace.load(tmp_path / "t.json")
    assert trace.model.name == "marian"
    assert len(trace.sites) == 9
    shown = here("show", str(tmp_path / "t.json"), "--site", "enc.0.self")
    assert shown.returncode == 0, shown.stderr
    translated = here("translate", "-m", name, "--beam", "2", stdin=f"{tiny.SENTENCE}\n\n")
    assert translated.stdout.splitlines() == [model(tiny.SENTENCE, beam=2), ""]
    replayed = here("trace", "a", "-m", name, "-o", str(tmp_path / "t.json"), "--replay")
    assert replayed.returncode == 2
    assert "no model of ours" in replayed.stderr


def test_what_cannot_be_loaded_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    for name, message in (
        (f"hf:{tmp_path}", "cannot be loaded"),
        (f"hf:{tmp_path.parent}", "no config.json"),
        ("hf:", "no config.json"),
    ):
        done = here("translate", "-m", name, stdin="a\n")
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def change_config(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def link_out(folder: Path) -> None:
    (folder / "tokenizer.json").rename(folder.parent / "other.json")
    (folder / "tokenizer.json").symlink_to("../other.json")


def damage_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((10**12).to_bytes(8, "little"))


def name_shard(folder: Path, shard: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": shard}}))


STRANGE: dict[str, tuple[Any, str]] = {
    "layers": (lambda folder: change_config(folder, encoder_layers=20_000), "encoder_layers = 20,000, which its"),
    "positions": (lambda folder: change_config(folder, max_position_embeddings=10**8), "= 100,000,000, which its"),
    "a part": (lambda folder: change_config(folder, text_config={"num_layers": 999}), "num_layers = 999, which its"),
    "start": (lambda folder: change_config(folder, decoder_start_token_id=10**6), ""),
    "a link": (link_out, "tokenizer.json is a link out of the folder"),
    "a header": (damage_header, "model.safetensors is no safetensors file: its header is too long"),
    "a shard": (lambda folder: name_shard(folder, "../x.safetensors"), 'names "../x.safetensors", which is no file of'),
    "no shards": (lambda folder: name_shard(folder, [3]), 'names "[3]"'),
    "a type": (lambda folder: change_config(folder, vocab_size="x"), "cannot be loaded"),
}  # fmt: skip


@pytest.mark.parametrize("change", STRANGE)
def test_a_strange_folder_is_one_clear_error(change: str, folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["marian"], tmp_path / "m")
    apply, message = STRANGE[change]
    apply(tmp_path / "m")
    if change == "start":
        generation = tmp_path / "m" / "generation_config.json"
        generation.write_text(json.dumps(json.loads(generation.read_text()) | {"decoder_start_token_id": 10**6}))
        message = "MarianMTModel: the start token is 1,000,000, but it has"
    done = here("translate", "-m", f"hf:{tmp_path / 'm'}", stdin="a\n")
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 0)
    assert message in done.stderr


def test_a_tokenizer_that_fails_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise TypeError("as after a strange tokenizer_config.json")

    tokenizer = tiny.tokenizer()
    model = heedful.from_transformers(tiny.marian(len(tokenizer)), tokenizer)
    monkeypatch.setattr(type(tokenizer), "__call__", fail)
    with pytest.raises(ModelError, match="the tokenizer failed: as after"):
        model("a")


def test_a_classifier_that_cannot_be_run_is_one_clear_error() -> None:
    tokenizer = tiny.tokenizer("wordpiece", "<s> $A </s>")
    model = heedful.from_transformers(tiny.bert(3), tokenizer)  # of another vocabulary
    with pytest.raises(ModelError, match="cannot be run: index out of range"):
        model.trace(tiny.SENTENCE)


def test_links_of_the_hubs_cache_are_followed(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["marian"], tmp_path / "blobs")
    folder = tmp_path / "snapshots" / "1"
    folder.mkdir(parents=True)
    for blob in (tmp_path / "blobs").iterdir():
        (folder / blob.name).symlink_to(f"../../blobs/{blob.name}")
    assert here("translate", "-m", f"hf:{folder}", stdin="a\n").returncode == 0


def test_a_model_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="hf:nobody/nothing: cannot be loaded; it is no folder here"):
        heedful.load("hf:nobody/nothing")


def test_the_best_head_is_found_on_half_of_the_pairs_and_named(folders: dict[str, Path], tmp_path: Path) -> None:
    gold = tmp_path / "gold.txt"
    gold.write_text("0-0 1-1 2-2\n" * len(PAIRS))
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    options = ["--data", str(data), "--gold", str(gold), "--steps", "1", "--json"]
    done = here("measure", "-m", f"hf:{folders['marian']}", *options)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    chosen = report["gold"]["chosen"]
    assert chosen["site"] in ("dec.0.cross", "dec.1.cross", "dec.2.cross")
    assert (chosen["found_on"], chosen["measured_on"]) == (2, 2)
    assert {"naive", "shift", "diagonal"} <= set(report["gold"])
    tests = report["faithfulness"]
    assert {"correlation", "permutation", "uniform", "erasure", "input_erasure", "outputs"} <= set(tests)
    assert tests["decisions"] == 4
    assert 0 <= tests["uniform"]["tvd"]["mean"] <= 1


def test_models_of_both_kinds_are_compared(folders: dict[str, Path], tmp_path: Path) -> None:
    data, gold = tmp_path / "pairs.tsv", tmp_path / "gold.txt"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    gold.write_text("0-0 1-1 2-2\n" * len(PAIRS))
    name = f"hf:{folders['marian']}"
    done = here("compare", "-m", name, "-m", "en-fr", "--data", str(data), "--gold", str(gold))
    assert done.returncode == 0, done.stderr
    head, _, first, second = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()]
    assert head == ["model", "parameters", "BLEU", "chrF2", "AER", "entropy", "TVD uniform"]
    assert (first[0], second[0]) == ("marian", "en-fr")
    assert all(0 <= float(cell) <= 100 for cell in first[2:] + second[2:])
    assert float(second[2]) > float(first[2])
    assert "give either a recipe" in complaint("compare", "-o", str(tmp_path / "out"))
    assert "--data: needed" in complaint("compare", "-m", name)
    message = complaint("compare", "-m", name, "-m", f"hf:{folders['bert']}", "--data", str(data))
    assert "models of different tasks cannot be compared: classify, translate" in message


def test_a_classifier_is_measured_by_what_its_head_reads(folders: dict[str, Path]) -> None:
    model = heedful.load(f"hf:{folders['bert']}")
    texts = [("The cat sleeps on the chair.", "good"), ("A dog eats the red fish.", "bad"), ("Le chat.", "bad")]
    result = model.measure(texts)
    assert 0 < result["attention"]["entropy_ratio"] <= 1
    assert result["faithfulness"]["decisions"] == 3
    assert result["faithfulness"]["correlation"]["weight_vs_gradient"]["decisions"] == 3
    assert {"permutation", "uniform", "erasure", "input_erasure"} <= set(result["faithfulness"])
    assert "label" in str(result)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architectures": ["pipeline"]}, "transformers has no model pipeline"),
        ({"architectures": ["BertTokenizerFast"]}, "transformers has no model BertTokenizerFast"),
        ({"architectures": [7]}, "transformers has no model 7"),
        ({"attn_implementation": "stranger/attention"}, "names code of the hub, stranger/attention, which is not run"),
        ({"num_hidden_layers": 9}, "weights are missing, such as"),
    ],
    ids=["function", "tokenizer", "number", "attention", "layers"],
)
def test_a_strangers_config_runs_nothing_else(
    change: dict[str, Any], message: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "m"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(ModelError, match=message):
        heedful.load(f"hf:{folder}")


def test_weights_in_a_pickle_are_not_read(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "m"))
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    heedful.load(f"hf:{folder}")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"no file named model\.safetensors"):
        heedful.load(f"hf:{folder}")
