"""Every command through the real entry point."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

import small_models
from command_line import HEEDFUL, RECIPES, complaint, heedful, here, refused
from heedful.cli.app import build_app
from heedful.cli.console import print_json
from heedful.cli.generate import COMMANDS as GENERATE
from heedful.cli.options import parse_decoding, warn_if_int8_is_slow
from heedful.config import DecodingOptions
from heedful.tasks.registry import TASKS
from heedful.trace.schema import Trace

RECIPE = RECIPES / "world-phrases.toml"
PROGRAM: Any = typer.main.get_command(build_app())
COMMANDS = {name: command for name, command in PROGRAM.commands.items() if not command.hidden}
DECODING = {*GENERATE, "caption", "evaluate", "trace"}


def options_of(command: Any) -> dict[str, Any]:
    return {parameter.name: parameter for parameter in command.params}


def test_help_names_every_command() -> None:
    done = heedful("--help", fork=False)
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()]
    assert listed == list(COMMANDS)
    assert {*TASKS, "check", "train", "evaluate", "trace", "show", "measure", "compare", "bench"} < set(listed)


def test_json_has_no_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, math.nan, (math.inf, "é\x1b")], "b": {"c": -math.inf}, "d": None})
    assert capsys.readouterr().out == '{"a": [1.5, null, [null, "é\\u001b"]], "b": {"c": null}, "d": null}\n'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_behind_stdout_is_an_error_without_traceback() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([HEEDFUL, "models"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: the output: No space left on device\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom heedful.cli import main\ntry:\n    main()\nexcept SystemExit:\n    print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    for module in ("torch", "numpy", "pydantic", "matplotlib", "lightning_fabric"):
        assert f"'{module}'" not in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_described_in_a_sentence(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert command.help.strip().endswith("."), command.help
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        assert text, f"{name}: {parameter.name}"
        assert text[0].isupper() or text[0] in "." or ":" in text, text
        assert text.endswith("."), text


def test_the_version_is_that_of_the_package() -> None:
    assert heedful("--version", fork=False).stdout.startswith("heedful 0.")


@pytest.mark.parametrize("name", sorted(DECODING))
def test_decoding_options_have_the_names_of_the_recipe(name: str) -> None:
    own = options_of(COMMANDS[name])
    fields = {*DecodingOptions.model_fields, "sample"} - {"method"}
    without = {"evaluate": {"n_best"}, "trace": {"n_best", "batch_size"}, "caption": {"replace_unknown"}}
    assert fields & set(own) == fields - without.get(name, set())
    for field in fields & set(own):
        assert f"--{field.replace('_', '-')}" in own[field].opts
        assert own[field].default in (None, False), "what is not given stays unset"


def test_only_given_options_are_set() -> None:
    unset: dict[str, Any] = dict.fromkeys(set(DecodingOptions.model_fields) - {"method"})
    assert parse_decoding({**unset, "exact": False, "sample": False}).model_fields_set == set()
    options = parse_decoding({**unset, "sample": True, "seed": 0, "top_k": 0, "replace_unknown": True})
    assert options.model_dump(exclude_unset=True) == {
        "method": "sample",
        "seed": 0,
        "top_k": 0,
        "replace_unknown": True,
    }


def test_summarise_is_understood_but_not_listed() -> None:
    assert "summarize" in refused("summarise", stdin="a\n")
    assert "summarise" not in heedful("--help").stdout


def test_check_prints_every_value_as_a_recipe(tmp_path: Path) -> None:
    done = heedful("check", RECIPE, "model.attention.score=general", "training.epochs=2")
    assert done.returncode == 0
    assert 'score = "general"' in done.stdout
    assert "(override)" in done.stdout
    again = tmp_path / "again.toml"
    again.write_text(done.stdout, encoding="utf-8")
    assert heedful("check", again).returncode == 0


def test_a_wrong_recipe_or_override_is_refused(tmp_path: Path) -> None:
    assert 'did you mean "additive"?' in refused("check", RECIPE, "model.attention.score=aditive")
    assert "no such setting" in refused("train", RECIPE, "training.epoch=2", "--out", tmp_path / "m")
    assert "there is no such file" in refused("check", tmp_path / "none.toml")
    assert list(tmp_path.iterdir()) == []


def test_other_mistakes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("{}")
    assert "no such model folder" in refused("translate", "-m", tmp_path / "m", stdin="a\n")
    assert "there is no such file" in refused("translate", "-m", tmp_path, tmp_path / "none.txt")
    assert "the sentence is empty" in refused("trace", " ", "-m", tmp_path, "-o", tmp_path / "o.json")
    assert "not a trace" in refused("show", tmp_path / "t.json")
    assert "is a file" in refused("train", RECIPE, "--out", tmp_path / "t.json")
    assert "`measure` takes one model, got 2" in refused("measure", "-m", "a", "-m", "b")
    assert "--links: needs --gold" in refused("measure", "--links", tmp_path / "t.json")


@pytest.mark.usefixtures("as_users_run")
def test_decoding_options_reach_the_search(tmp_path: Path) -> None:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("rnnsearch"))
    translate = ("translate", "--json", "-m", tmp_path / "m")

    def outputs(*options: str) -> list[dict[str, Any]]:
        done = here(*translate, *options, stdin="the cat\n")
        assert done.returncode == 0, done.stderr
        (record,) = map(json.loads, done.stdout.splitlines())
        found: list[dict[str, Any]] = record["outputs"]
        return found

    assert len(outputs()) == 1
    assert len(outputs("--n-best", "3")) == 3, "several outputs need a beam"
    assert len(outputs("--sample", "--n-best", "4")) == 4
    assert all(len(output["tokens"]) <= 2 for output in outputs("--max-length", "2", "--beam", "3"))
    greedy, beam = outputs("--beam", "1"), outputs("--beam", "4", "--length-penalty", "0")
    assert beam[0]["logp"] >= greedy[0]["logp"] - 1e-6
    assert beam[0]["score"] == pytest.approx(beam[0]["logp"])
    assert outputs("--sample", "--seed", "3") == outputs("--sample", "--seed", "3")


@pytest.mark.parametrize(("int8", "fast", "warned"), [(True, False, True), (True, True, False), (False, False, False)])
def test_int8_warns_where_it_is_slower(
    int8: bool, fast: bool, warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("heedful.kernels.has_fast_int8", lambda: fast)
    warn_if_int8_is_slow(int8)
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("warning: --int8 is slower than float32 on this machine") is warned
    assert len(errors.splitlines()) == warned


@pytest.mark.usefixtures("as_users_run")
def test_int8_is_used_with_a_warning_where_it_is_slower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("rnnsearch"))
    monkeypatch.setattr("heedful.kernels.has_fast_int8", lambda: False)
    done = here("translate", "-m", tmp_path / "m", "--int8", stdin="the cat\nthe dog\n")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.count("warning: --int8 is slower") == 1


@pytest.mark.usefixtures("as_users_run")
def test_evaluate_takes_the_decoding_options_of_translate(tmp_path: Path) -> None:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("rnnsearch"))
    (tmp_path / "d.tsv").write_text("the cat\tle chat\n")
    evaluate = ("evaluate", "--json", "-m", tmp_path / "m", "--data", tmp_path / "d.tsv", "--metric", "exact")
    for options in (("--beam", "3", "--length-penalty", "0.5"), ("--sample", "--seed", "2", "--max-length", "3")):
        done = here(*evaluate, *options)
        assert done.returncode == 0, done.stderr
    assert "length_penalty = -1.0: must be at least 0" in complaint(*evaluate, "--length-penalty", "-1")


@pytest.mark.parametrize("name", ["phrases", "scenes", "tastes", "moods"])
def test_every_world_is_written_and_the_same_seed_writes_the_same(tmp_path: Path, name: str) -> None:
    for out in ("a", "b"):
        done = heedful("world", name, "--n", "30", "--seed", "5", "--out", tmp_path / out, LC_ALL="C")
        assert done.returncode == 0, done.stderr
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert len(files) > 3
    for file in files:
        if file.name != "README.md":
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_an_impossible_world_is_refused(tmp_path: Path) -> None:
    assert "en-de" in refused("world", "phrases", "--n", "9", "--languages", "en-de", "--out", tmp_path / "w")


def test_word_links_are_extracted_by_the_chosen_method(tmp_path: Path) -> None:
    weights = [[0.5, 0.4, 0.1], [0.7, 0.1, 0.2]]
    file, out = tmp_path / "t.json", tmp_path / "t.links"
    Trace.from_weights(["the", "black", "cat"], ["chat", "noir"], weights).save(file)
    for method, links in (("naive", "0-0 0-1"), ("shared", "1-0 2-1")):
        assert heedful("show", file, "-o", out, "--link-method", method).returncode == 0
        assert out.read_text() == links + "\n"
    done = heedful("show", file, "-o", out, "--link-method", "share")
    assert done.returncode == 2
    assert 'did you mean "shared"' in done.stderr
