"""`heedful bench`: every decoding mode in float32 and int8, on any lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from changed_models import write_hashes
from command_line import here, refused
from heedful.analysis.bench import BenchResult, load_lines
from heedful.analysis.bench_lines import BENCH_LINES, built_in_lines
from heedful.errors import DataError, DecodingError
from heedful.models import Seq2Seq
from heedful.tasks.registry import TASKS
from heedful.tasks.seq2seq.predict import load_predictor
from small_models import random_model_folder, small_preset

OPTIONS = ("--threads", "1")


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """Use one thread in torch too: for small matrices, more only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small untrained translation model; its recipe names the phrase world."""
    folder = tmp_path_factory.mktemp("bench") / "m"
    random_model_folder(folder, small_preset("cgru"))
    recipe = (folder / "recipe.toml").read_text()
    for setting, value in (("train", 20), ("valid", 12), ("test", 12), ("max_length", 9)):
        recipe = re.sub(rf"^{setting} = \d+$", f"{setting} = {value}", recipe, flags=re.M)
    (folder / "recipe.toml").write_text(recipe)
    write_hashes(folder)
    return folder


def test_every_mode_is_measured_in_float32_and_int8(model: Path) -> None:
    done = here("bench", "-m", model, "--rounds", "2", "--lines", "12", *OPTIONS, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    modes = report["modes"]
    assert [(mode["mode"], mode["int8"]) for mode in modes][:2] == [("greedy", False), ("greedy", True)]
    assert len(modes) == 10
    for mode in modes:
        assert mode["lines"] == 12
        assert len(mode["rates"]) == 2
        assert min(mode["rates"]) > 0
        assert mode["lines_per_second"] == pytest.approx(sum(mode["rates"]) / 2)
        assert (mode["same_outputs"] is None) != mode["int8"]


def test_bounds_and_numbers_that_are_not_finite_are_errors(model: Path, tmp_path: Path) -> None:
    assert "--lines': Input should be less than or equal to 100000" in refused(
        "bench", "-m", model, "--lines", "100001"
    )
    assert "--rounds': Input should be less than or equal to 1000" in refused("bench", "-m", model, "--rounds", "9999")
    predictor = load_predictor([model])
    assert isinstance(predictor.model, Seq2Seq)
    for parameter in predictor.model.parameters():
        parameter.data.fill_(float("nan"))
    with pytest.raises(DecodingError, match="the model's output is not finite in step 1"):
        predictor.search(["the cat"], predictor.decoding)


def test_lines_come_from_a_file_and_blank_ones_are_skipped(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("the cat sleeps\n\nthe dog eats\n", encoding="utf-8")
    done = here("bench", file, "-m", model, "--rounds", "1", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "2 lines" in done.stdout
    assert "one by one, beam" in done.stdout
    assert "no such file" in refused("bench", tmp_path / "none.txt", "-m", model)
    file.write_text("\n", encoding="utf-8")
    assert "has no lines to generate from" in refused("bench", file, "-m", model)


def test_without_the_models_data_built_in_lines_are_used(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise DataError("train.tsv does not exist")

    log: list[str] = []
    assert load_lines(model, None, 3, log.append) != built_in_lines("translate", 3)
    assert log == []
    monkeypatch.setattr("heedful.analysis.bench.evaluation_pairs", missing)
    assert load_lines(model, None, 50, log.append) == built_in_lines("translate", 50)
    assert log == ["the data of m is not on this machine: using built-in lines"]
    done = here("bench", "-m", model, "--rounds", "1", "--lines", "4", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert "using built-in lines" in done.stderr
    assert "4 lines" in done.stdout


def test_every_task_that_generates_text_from_text_has_built_in_lines() -> None:
    text_tasks = {name for name, task in TASKS.items() if "seq2seq" in task}
    assert BENCH_LINES.keys() == text_tasks
    for lines in BENCH_LINES.values():
        assert len(set(lines)) == len(lines) >= 6
        assert all(line == line.strip() != "" for line in lines)


def test_one_round_has_no_spread() -> None:
    result = BenchResult("greedy", False, 4, [2.0], 3.0, None)
    assert (result.lines_per_second, result.sd) == (2.0, 0.0)
    assert result._replace(rates=[1.0, 3.0]).sd == pytest.approx(2**0.5)
