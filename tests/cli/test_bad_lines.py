"""Input lines and options that cannot be used."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch

import small_models
from cli.corpus import GOOD, LONG
from command_line import complaint, here, refused
from heedful.config import Recipe
from heedful.data.pairs import TextPair
from heedful.models import build_seq2seq
from heedful.tasks.model_folder import save_model
from heedful.tasks.seq2seq.assets import Seq2SeqAssets

pytestmark = pytest.mark.usefixtures("as_users_run")


def test_unreadable_input_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "u.txt").write_bytes(b"the a\n")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"the a\n" * 500)[:-12])
    (tmp_path / "false.gz").write_bytes(b"the a\n")
    translate = ("translate", "-m", trained)
    assert "cannot be read: Compressed file ended" in complaint(*translate, tmp_path / "a.gz")
    assert "Not a gzipped file" in complaint(*translate, tmp_path / "false.gz")
    assert "there is no such file" in complaint(*translate, tmp_path / "u.txt", tmp_path / "none.txt")
    assert "is a folder" in complaint(*translate, tmp_path)
    assert "not UTF-8" in refused("trace", "a\udcff", "-m", trained, "-o", tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


def test_a_line_that_cannot_be_read_is_reported_and_the_others_are_answered(trained: Path, tmp_path: Path) -> None:
    translate = ("translate", "-m", trained)
    (tmp_path / "u.txt").write_bytes(b"the a falls\na\xff\n" + b"x" * 1_000_001 + b"\nthe b falls\n")
    good = here(*translate, stdin="the a falls\nthe b falls\n").stdout.splitlines()
    for files, stdin, name in (
        ([], (tmp_path / "u.txt").read_bytes(), "stdin"),
        ([tmp_path / "u.txt"], b"", str(tmp_path / "u.txt")),
    ):
        done = here(*translate, *files, stdin=stdin)
        assert done.returncode == 1
        assert done.stdout.splitlines() == [good[0], "", "", good[1]], "outputs stay in step with inputs"
        assert done.stderr.splitlines() == [
            f"error: {name}, line 2: not UTF-8 (byte 1 of the line)",
            f"error: {name}, line 3: longer than 1,000,000 bytes",
            "2 of 4 lines could not be read",
        ]
        records = [json.loads(line) for line in here(*translate, *files, "--json", stdin=stdin).stdout.splitlines()]
        assert ["error" in record for record in records] == [False, True, True, False]
        assert records[1]["error"].endswith("line 2: not UTF-8 (byte 1 of the line)")


def test_the_time_limit_ends_a_command_with_what_is_done(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000_000))
    monkeypatch.setattr("heedful.stopping.monotonic", lambda: next(clock))  # a second per look at it
    words = ("translate", "-m", trained, "--batch-size", "1", "--max-length", "3", "--threads", "1")
    done = here(*words, "--max-seconds", "12", stdin="the a falls\n" * 9)
    answered = len(done.stdout.splitlines())
    assert done.returncode == 1
    assert 0 < answered < 9
    assert "error: --max-seconds: decoding took longer than 12 s and was stopped after " in done.stderr
    assert f" of at most 3 steps; 0 of 1 inputs were done; {answered} lines were answered" in done.stderr
    trace = here("trace", "the a falls", "-m", trained, "--max-seconds", "1", "-o", trained / "t.json")
    assert (trace.returncode, (trained / "t.json").exists()) == (1, False)
    assert "error: decoding took longer than 1 s and was stopped after 0 of at most" in trace.stderr
    evaluation = here("evaluate", "-m", trained, "--split", "valid", "--max-seconds", "2")
    assert evaluation.returncode == 1, evaluation.stderr
    for seconds in ("0", "-1", "nan", "inf"):
        assert "expected a number of seconds above 0" in complaint(*words, "--max-seconds", seconds)


def test_a_too_long_line_is_cut_with_a_warning_and_all_other_lines_are_answered(trained: Path) -> None:
    """One line of 100,000 words among others used to stop the whole run without any output."""
    translate = ("translate", "-m", trained)
    short = here(*translate, stdin="the a falls\nthe b falls\n").stdout.splitlines()
    done = here(*translate, stdin=f"the a falls\n{LONG}\nthe b falls\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert (len(lines), lines[::2]) == (3, short)
    (warning,) = done.stderr.splitlines()
    assert warning.startswith('warning: line 2 ("the the the')
    assert "has more than 16,000 tokens, but the model reads at most 1,000: cut to the first 1,000" in warning
    record = json.loads(here(*translate, "--json", stdin=LONG).stdout)
    assert len(record["tokens"]) == len(record["outputs"][0]["alignment"][0]) == 1_001


def test_a_too_long_line_can_be_skipped_or_refused(trained: Path) -> None:
    translate, stdin = ("translate", "-m", trained), f"the a falls\n{LONG}\nthe b falls\n"
    short = here(*translate, stdin="the a falls\nthe b falls\n").stdout.splitlines()
    skipped = here(*translate, "--on-too-long", "skip", stdin=stdin)
    assert skipped.stdout.splitlines() == [short[0], "", short[1]]
    assert 'warning: line 2 ("the the the' in skipped.stderr
    error = refused(*translate, "--on-too-long", "error", stdin=stdin)
    assert 'line 2 ("the the the' in error
    assert "recipe" not in error, "nobody should edit the recipe of an installed model"
    assert "--on-too-long cut or skip" in error
    assert "'ignore' is not one of 'cut', 'skip', 'error'" in complaint(
        *translate, "--on-too-long", "ignore", stdin="a\n"
    )


def test_line_numbers_of_warnings_go_on_in_later_chunks(trained: Path) -> None:
    done = here("translate", "-m", trained, "--max-length", "1", stdin="the a\n" * 1_000 + f"{LONG}\n")
    assert len(done.stdout.splitlines()) == 1_001
    assert "\nwarning: line 1001 " in f"\n{done.stderr}"


def test_a_too_long_line_is_cut_for_a_trace_and_follows_the_recipe_in_an_evaluation(
    trained: Path, tmp_path: Path
) -> None:
    trace = ("trace", " ".join(["the"] * 5_000), "-m", trained, "-o", tmp_path / "t.json")
    assert "cut to the first 1,000" in here(*trace).stderr
    assert len(json.loads((tmp_path / "t.json").read_text())["source"]["tokens"]) == 1_001
    (tmp_path / "l.tsv").write_text(f"{GOOD}{LONG}\t{LONG}\n")
    evaluate = ("evaluate", "-m", trained, "--metric", "exact", "--data", tmp_path / "l.tsv")
    assert "line 31" in complaint(*evaluate)
    (tmp_path / "l.tsv").write_text(GOOD + f"{' '.join(['the'] * 600)}\tle\n")  # longer than in training
    assert here(*evaluate).returncode == 0


@pytest.mark.parametrize("kind", ["word", "character", "bpe"])
def test_a_very_long_line_does_not_exhaust_memory(tmp_path: Path, kind: str) -> None:
    recipe = Recipe.model_validate(
        {
            "data": {"world": {}, "on_too_long": "cut"},
            "tokenizer": {"kind": kind, "vocab_size": 400},
            "model": small_models.small_preset("transformer").model_dump(),
            "decoding": {"max_length": 3},
        }
    )
    assets = Seq2SeqAssets.train([TextPair("the cat", "le chat")], recipe)
    torch.manual_seed(3)
    save_model(tmp_path / "m", recipe, assets, build_seq2seq(recipe.model, len(assets.source), len(assets.target)), {})
    for line in (LONG if kind == "word" else LONG[:40_000], "the" * 10_000, "貓" * 10_000):
        done = here("translate", "-m", tmp_path / "m", "--json", stdin=f"{line}\n")
        assert done.returncode == 0, done.stderr
        assert 0 < len(json.loads(done.stdout)["tokens"]) <= 1_001


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "nan", "--sample"], "temperature = nan: expected a finite number"),
        (["--temperature", "-1", "--sample"], "temperature = -1.0: must be more than 0"),
        (["--top-p", "-1", "--sample"], "top_p = -1.0: must be more than 0"),
        (["--top-p", "7", "--sample"], "top_p = 7.0: must be at most 1"),
        (["--length-penalty", "nan", "--beam", "2"], "length_penalty = nan: expected a finite number"),
        (["--beam", "1001"], "beam = 1001: must be at most 1000"),
        (["--n-best", "1001"], "n_best = 1001: must be at most 1000"),
        (["--max-length", "10001"], "max_length = 10001: must be at most 10000"),
        (["--batch-size", "9999999"], "batch_size = 9999999: must be at most 10000"),
        (["--length-penalty", "1e308", "--beam", "2"], "length_penalty = 1e+308: must be at most 10"),
        (["--beam", "0"], "greater than or equal to 1"),
        (["--modle"], "No such option: --modle"),
    ],
)
def test_wrong_decoding_options_are_refused(trained: Path, options: list[str], words: str) -> None:
    assert words in complaint("translate", "-m", trained, *options, stdin="the a\n")


def test_any_number_of_64_bits_is_a_seed(trained: Path, corpus: Path) -> None:
    assert "must be less than 9223372036854775808" in complaint("translate", "-m", trained, "--seed", "9" * 30)
    huge = str(2**63 - 1)
    done = here("translate", "-m", trained, "--sample", "--seed", huge, stdin="the a\n")
    assert done.returncode == 0
    done = here("train", corpus / "r.toml", f"training.seed={huge}", "--out", corpus / "out")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "options", [("--target", "le " * 1_001), ("--target", "l" * 64_001), ("--set", f"prefix:text={'le ' * 1_001}")]
)
def test_a_given_output_that_is_too_long_is_refused(options: tuple[str, ...], model: Path, tmp_path: Path) -> None:
    """Every step of it is recorded: one of 100,000 words would exhaust memory."""
    error = complaint("trace", "the cat", "-m", model, "-o", tmp_path / "t.json", *options)
    assert "the output has more than 1,000 tokens" in error
    assert not (tmp_path / "t.json").exists()
