"""`heedful batch`: parts, resuming, rows that fail, processes that die."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import small_classifiers
import small_models
from command_line import HEEDFUL, complaint, here, refused
from heedful.batch import local, run
from heedful.batch.answers import answer_each
from heedful.batch.job import Job, run_part
from heedful.batch.local import OnDone
from heedful.batch.parts import Part, find_parts
from heedful.errors import DataError

LINES = ["the cat", "", "the dog sees the cat", "a cat", "the old dog"]


def run_here(job: Job, parts: Sequence[Part], digest: str, workers: int, on_done: OnDone) -> None:
    """Compute parts in this process, which is faster than starting others."""
    for part in parts:
        on_done(run_part(job, part, digest))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    small_models.random_model_folder(tmp_path / "m", small_models.small_preset("rnnsearch"))
    return tmp_path / "m"


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "run_local", run_here)


def write_lines(path: Path, lines: Sequence[str] = LINES) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("in_process")
def test_every_file_has_an_output_with_the_lines_of_the_plain_command(model: Path, tmp_path: Path) -> None:
    first = write_lines(tmp_path / "first.txt")
    with gzip.open(tmp_path / "second.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("id\ttext\n1\tthe cat\n2\tthe dog\n")
    out = tmp_path / "out"
    done = here("batch", "translate", first, tmp_path / "second.tsv.gz", "-m", model, "--out", out, "--beam", "2")
    assert done.returncode == 0, done.stderr
    expected = here("translate", first, "-m", model, "--beam", "2").stdout.splitlines()
    assert [row["text"] for row in rows(out / "first.jsonl")] == expected
    assert [row["row"] for row in rows(out / "first.jsonl")] == [1, 2, 3, 4, 5]
    assert [row["row"] for row in rows(out / "second.jsonl")] == [1, 2]
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["rows"], manifest["failed"], len(manifest["parts"])) == (7, 0, 2)
    assert manifest["job"]["options"]["beam"] == 2
    assert sorted(path.name for path in out.iterdir()) == ["first.jsonl", "manifest.json", "parts", "second.jsonl"]


@pytest.mark.usefixtures("in_process")
def test_divided_files_joined_are_the_whole_file(model: Path, tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "lines.txt")
    for name, more in (("whole", []), ("divided", ["--part-lines", "2"])):
        here("batch", "translate", lines, "-m", model, "--out", tmp_path / name, "--plain", *more)
    parts = sorted((tmp_path / "divided").glob("*.txt"))
    assert [path.name for path in parts] == ["lines-00000.txt", "lines-00001.txt", "lines-00002.txt"]
    whole = (tmp_path / "whole" / "lines.txt").read_text()
    assert "".join(path.read_text() for path in parts) == whole
    assert len(whole.splitlines()) == len(LINES)


@pytest.mark.usefixtures("in_process")
def test_only_parts_that_are_not_done_are_computed(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write_lines(tmp_path / f"{name}.txt") for name in "abc"]
    command: list[str | Path] = ["batch", "translate", *files, "-m", model, "--out", tmp_path / "out"]
    here(*command)
    before = {path: path.read_bytes() for path in (tmp_path / "out").glob("*.jsonl")}
    (tmp_path / "out" / "a.jsonl").write_text("half")  # as after a full disk
    (tmp_path / "out" / "parts" / "b.json").write_text('{"half')
    write_lines(files[2], ["another text"])
    computed: list[str] = []

    def count(job: Job, parts: Sequence[Part], digest: str, workers: int, on_done: OnDone) -> None:
        computed.extend(part.name for part in parts)
        run_here(job, parts, digest, workers, on_done)

    monkeypatch.setattr(local, "run_local", count)
    assert here(*command).returncode == 0
    assert computed == ["a", "b", "c"]
    assert before[tmp_path / "out" / "a.jsonl"] == (tmp_path / "out" / "a.jsonl").read_bytes()
    computed.clear()
    again = here(*command)
    assert "3 of 3 parts are done" in again.stderr
    assert computed == []


@pytest.mark.usefixtures("in_process")
def test_a_record_without_its_counts_is_computed_again(model: Path, tmp_path: Path) -> None:
    words = ("batch", "translate", write_lines(tmp_path / "a.txt"), "-m", model, "-o", tmp_path / "out")
    assert here(*words).returncode == 0
    record = tmp_path / "out" / "parts" / "a.json"
    tree = json.loads(record.read_text())
    del tree["rows"]
    record.write_text(json.dumps(tree))
    again = here(*words)
    assert (again.returncode, "5 rows in 1 part(s), 0 of them done before" in again.stderr) == (0, True), again.stderr


@pytest.mark.usefixtures("in_process")
def test_an_input_that_is_refused_leaves_no_folder(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(b"no gzip")
    words = ("batch", "translate", tmp_path / "a.txt.gz", "-m", model, "-o", tmp_path / "out")
    assert "cannot be read" in complaint(*words)
    assert not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()
    complaint(*words)
    assert list((tmp_path / "out").iterdir()) == []  # a folder of the user stays


@pytest.mark.usefixtures("in_process")
def test_the_output_of_another_job_is_not_mixed_with_this_one(model: Path, tmp_path: Path) -> None:
    command = ("batch", "translate", write_lines(tmp_path / "a.txt"), "-m", model, "--out", tmp_path / "out")
    here(*command)
    before = (tmp_path / "out" / "a.jsonl").read_bytes()
    message = refused(*command, "--beam", "3")
    assert "a.json was written with another model, verb or options" in message
    assert "another --out" in message
    assert (tmp_path / "out" / "a.jsonl").read_bytes() == before


@pytest.mark.usefixtures("in_process")
def test_a_row_that_cannot_be_read_gets_an_error_and_the_others_answers(model: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"the cat\n\xff\xfe\nthe dog\n")
    done = here("batch", "translate", tmp_path / "a.txt", "-m", model, "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "1 row(s) failed" in done.stderr
    first, bad, last = rows(tmp_path / "out" / "a.jsonl")
    assert "not UTF-8" in bad["error"]
    assert "error" not in first
    assert "error" not in last


def test_only_the_row_that_makes_a_batch_fail_has_an_error() -> None:
    def answer(texts: Sequence[str]) -> list[dict[str, Any]]:
        if "poison" in texts:
            raise ZeroDivisionError("poison")
        return [{"text": text.upper()} for text in texts]

    texts = ["a", "b", "poison", "c", "d"]
    records = answer_each(answer, texts)
    assert [record.get("text") for record in records] == ["A", "B", None, "C", "D"]
    assert records[2] == {"error": "ZeroDivisionError: poison"}


@pytest.mark.usefixtures("in_process")
def test_a_classifier_labels_tables_by_column(tmp_path: Path) -> None:
    small_classifiers.random_model_folder(tmp_path / "m", small_classifiers.small_preset("classify-sentences"))
    (tmp_path / "a.jsonl").write_text('{"id": 1, "body": "good film"}\n{"id": 2, "body": "bad film"}\n')
    command = ("batch", "classify", tmp_path / "a.jsonl", "-m", tmp_path / "m", "--out", tmp_path / "out")
    assert here(*command, "--column", "body").returncode == 0
    labels = [row["label"] for row in rows(tmp_path / "out" / "a.jsonl")]
    stdin = "good film\nbad film\n"
    assert labels == [
        line.split("\t")[0] for line in here("classify", "-m", tmp_path / "m", stdin=stdin).stdout.splitlines()
    ]
    message = refused(
        "batch", "classify", tmp_path / "a.jsonl", "-m", tmp_path / "m", "--out", tmp_path / "o", "--column", "bdy"
    )
    assert '--column = "bdy": no such column; did you mean "body"?' in message


def test_inputs_that_would_share_an_output_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    files = [write_lines(tmp_path / "a.txt"), write_lines(tmp_path / "x" / "a.txt")]
    with pytest.raises(DataError, match="would have the same output file"):
        find_parts(files, "translate")
    with pytest.raises(DataError, match="none of its files can be an input"):
        find_parts([Path(__file__).parent], "caption")


def test_a_model_of_another_task_is_refused(model: Path, tmp_path: Path) -> None:
    message = refused("batch", "classify", write_lines(tmp_path / "a.txt"), "-m", model, "--out", tmp_path / "out")
    assert "m was trained for translate; use heedful batch translate" in message
    assert not (tmp_path / "out").exists()


def test_a_process_that_is_killed_is_replaced(model: Path, tmp_path: Path, kill_once: Callable[[Path], None]) -> None:
    files = [write_lines(tmp_path / f"{i}.txt") for i in range(2)]
    parts = find_parts(files, "translate")
    job = Job("translate", model, tmp_path / "out", {})
    kill_once(tmp_path / "killed")
    result = run.run_batch(job, parts, workers=1)
    assert (result.parts, result.rows, result.failed) == (2, 2 * len(LINES), 0)
    assert (tmp_path / "killed").exists()


@pytest.fixture
def kill_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make the first process of a batch kill itself at its first part."""

    def arm(marker: Path) -> None:
        monkeypatch.setattr(local, "run_part", _DieOnce(marker))

    return arm


class _DieOnce:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self, job: Job, part: Part, digest: str) -> dict[str, Any]:
        if not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return run_part(job, part, digest)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [[], ["--ray", "local"]], ids=["processes", "ray"])
def test_a_job_killed_again_and_again_ends_with_the_output_of_one_process(
    engine: list[str], model: Path, tmp_path: Path
) -> None:
    if engine:
        pytest.importorskip("ray", reason="needs heedful[ray]")
    files = [write_lines(tmp_path / f"{i:02d}.txt", [f"the cat {n} dog" for n in range(i, 700 + i)]) for i in range(12)]
    here("batch", "translate", *files, "-m", model, "--out", tmp_path / "one", "--workers", "1")
    command = [HEEDFUL, "batch", "translate", *files, "-m", model, "--out", tmp_path / "two", "--workers", "2", *engine]
    for seconds in (6.0, 9.0, 12.0):
        process = subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(seconds)
        process.kill()
        process.wait()
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two = (sorted((tmp_path / name).glob("*.jsonl")) for name in ("one", "two"))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert len(one) == len(files)
