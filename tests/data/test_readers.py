"""Files: the formats that are read, and what is said of those that cannot be."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import heedful
from heedful.config import DataConfig
from heedful.data.paths import data_folder, locate
from heedful.data.readers import Pairs, TextPair, open_pairs, read_lines, read_pairs, split_of
from heedful.errors import DataError

REAL = Path(os.environ.get("HEEDFUL_DATA", ""))
needs_data = pytest.mark.skipif(
    not (REAL / "tatoeba_fra_eng").is_dir(), reason="needs the real data under HEEDFUL_DATA"
)


def data(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], **settings})


SKIP = data(broken="skip")


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("the cat\nthe tea \n", encoding="utf-8")
    (tmp_path / "a.vi").write_bytes("\ufeffcon mèo\r\ntrà".encode())
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("the cat\tcon mèo\nthe tea \ttrà\tthird column\n")
    lines = [{"vi": "con mèo", "en": "the cat", "n": 1}, {"en": "the tea ", "vi": "trà"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.JSONL.gz").write_bytes(gzip.compress(text.encode()))
    wanted = [TextPair("the cat", "con mèo"), TextPair("the tea ", "trà")]
    fields = data(fields=["en", "vi"])
    assert read_pairs(["a.en", "a.vi"], tmp_path) == wanted
    assert read_pairs(["a.tsv.gz"], tmp_path) == wanted
    assert read_pairs(["a.jsonl"], tmp_path, fields) == wanted
    assert read_pairs(["a.JSONL.gz"], tmp_path, fields) == wanted


cell = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\ufeff"), min_size=1).filter(str.strip)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=8))
def test_text_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for side, name in enumerate(("a", "b")):
        (folder / name).write_bytes("\n".join(row[side] for row in rows).encode())
    (folder / "c.tsv").write_bytes("".join(f"{a}\t{b}\r\n" for a, b in rows).encode())
    (folder / "d.jsonl").write_text("\n".join(json.dumps({"source": a, "target": b}) for a, b in rows))
    wanted = [TextPair(*row) for row in rows]
    for files in (["a", "b"], ["c.tsv"], ["d.jsonl"]):
        assert read_pairs(files, folder) == wanted


BROKEN = [
    ("a.tsv", b"three\n", r"expected source, tab, target; found 1 column\(s\): 'three'"),
    ("a.tsv", b"\n", r"blank"),
    ("a.tsv", b" \r\n", r"blank"),
    ("a.tsv", b"\xff\tx\n", r"not UTF-8 \(byte 0 of the line\)"),
    ("a.tsv", b"x\t \n", r"column 2 is blank"),
    ("a.tsv", b"\tx\n", r"column 1 is blank"),
    ("a.jsonl", b"\n", r"blank"),
    ("a.jsonl", b"{]\n", r"not JSON: "),
    ("a.jsonl", b"[" * 100_000 + b"\n", r"not JSON: "),
    ("a.jsonl", b"[1]\n", r"expected an object with fields, found '\[1\]'"),
    ("a.jsonl", b'{"source": "x", "traget": "y"}\n', r'no field "target"; there are: source, traget'),
    ("a.jsonl", b'{"source": "x", "target": 3}\n', r'field "target": expected text, found 3'),
    ("a.jsonl", b'{"source": "x", "target": null}\n', r'field "target": expected text, found null'),
    ("a.jsonl", b'{"source": " ", "target": "y"}\n', r'field "source": blank'),
    ("a.jsonl", b'{"source": "\\ud800", "target": "y"}\n', r'field "source": half a surrogate pair'),
]


@pytest.mark.parametrize(("name", "line", "words"), BROKEN)
def test_a_broken_line_is_named_and_refused_or_skipped(
    tmp_path: Path, name: str, line: bytes, words: str
) -> None:
    good = b"one\ttwo\n" if name == "a.tsv" else b'{"source": "one", "target": "two"}\n'
    (tmp_path / name).write_bytes(good + line + good)
    with pytest.raises(DataError, match=rf'{name}, line 2: {words}.* \(data.broken = "skip"'):
        read_pairs([name], tmp_path)
    pairs = Pairs([name], tmp_path, SKIP)
    for _ in range(2):  # a second reading reports anew
        assert [found.line for found in pairs.numbered()] == [1, 3]
        assert pairs.report.count == 1
        assert pairs.report.first[0].startswith(f"{tmp_path / name}, line 2: ")


def test_a_broken_line_in_either_of_two_files_drops_the_pair(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n\n3\n\xff\n5\n")
    (tmp_path / "b").write_bytes(b"1\n2\n \n4\n\xfe\n")
    with pytest.raises(DataError, match=r"a, line 2: blank"):
        read_pairs(["a", "b"], tmp_path)
    pairs = Pairs(["a", "b"], tmp_path, SKIP)
    assert list(pairs) == [TextPair("1", "1")]
    assert pairs.report.count == 4
    assert "b, line 3: blank" in str(pairs.report)
    assert "a, line 4: not UTF-8" in str(pairs.report)
    assert "b, line 5: not UTF-8" in str(pairs.report)


def test_a_report_stays_small(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n" + "z\n" * 1_000)
    pairs = Pairs(["a.tsv"], tmp_path, SKIP)
    assert len(list(pairs)) == 1
    assert len(pairs.report.first) == 5
    assert str(pairs.report).startswith("1,000 broken line(s) skipped:")
    assert str(pairs.report).endswith("and 995 more")


@pytest.mark.parametrize("how", [data(), SKIP])
@pytest.mark.parametrize(("left", "right"), [(2, 1), (1, 4), (0, 1), (3, 0)])
def test_parallel_files_must_agree(tmp_path: Path, how: DataConfig, left: int, right: int) -> None:
    (tmp_path / "a").write_text("one\n" * left)
    (tmp_path / "b").write_text("un\n" * right)
    with pytest.raises(DataError, match=rf"a has {left} lines, but .*b has {right}: they must agree"):
        read_pairs(["a", "b"], tmp_path, how)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_a_file_without_pairs_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=rf"{name}: no pairs in it"):
        read_pairs([name], tmp_path)
    (tmp_path / name).write_bytes(b"\n\n")
    with pytest.raises(DataError, match=rf"{name}: no pairs in it\n2 broken line\(s\) skipped"):
        read_pairs([name], tmp_path, SKIP)


@pytest.mark.parametrize("how", [data(), SKIP])
def test_a_damaged_gz_is_always_refused(tmp_path: Path, how: DataConfig) -> None:
    whole = gzip.compress("".join(f"{n} line\tof text {n * n}\n" for n in range(5000)).encode())
    flipped = bytearray(whole)
    flipped[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    for content in (whole[: len(whole) // 2], bytes(flipped), b"plain text"):
        (tmp_path / "a.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"a.gz, after line \d+: cannot be read"):
            read_pairs(["a.gz"], tmp_path, how)


def test_columns_can_be_chosen_and_rows_filtered(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("vi\tcat\tm è o\nfr\tcat\tʃ a\nvi\ttea\tt r à\nde\t\t\n")
    chosen = data(columns=[3, 2], where=["1=vi"])
    assert read_pairs(["a.tsv"], tmp_path, chosen) == [TextPair("m è o", "cat"), TextPair("t r à", "tea")]
    with pytest.raises(DataError, match=r"a.tsv: no pairs in it \(data.where = \['1=en'\]\)"):
        read_pairs(["a.tsv"], tmp_path, data(columns=[2, 3], where=["1=en"]))
    with pytest.raises(DataError, match=r"line 1: expected at least 4 columns; found 3"):
        read_pairs(["a.tsv"], tmp_path, data(columns=[2, 3], where=["4=en"]))
    with pytest.raises(DataError, match=r'"lang=vi": the columns of the TSV .* have numbers'):
        read_pairs(["a.tsv"], tmp_path, data(where=["lang=vi"]))
    (tmp_path / "a.jsonl").write_text(
        '{"l": "vi", "source": "a", "target": "b", "n": 1}\n{"l": "fr", "source": "c", "target": "d"}\n'
    )
    assert read_pairs(["a.jsonl"], tmp_path, data(where=["l=fr"])) == [TextPair("c", "d")]
    with pytest.raises(DataError, match=r'line 2: no field "n"'):
        read_pairs(["a.jsonl"], tmp_path, data(where=["n=1"]))
    assert read_pairs(["a.jsonl"], tmp_path, data(where=["n=1"], broken="skip")) == [TextPair("a", "b")]
    with pytest.raises(DataError, match=r"not of parallel files"):
        read_pairs(["a.tsv", "a.tsv"], tmp_path, data(where=["1=vi"]))


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"where": ["vi"]}, 'expected "column=value"'),
        ({"where": ["=vi"]}, 'expected "column=value"'),
        ({"split_valid": 0.1}, "there are valid pairs of their own already"),
        ({"valid": [], "split_valid": 0.6, "split_test": 0.4}, "nothing would be left"),
        ({"valid": []}, "give train and valid files"),
        ({"columns": [0, 1]}, "greater than 0"),
        ({"columns": [1]}, "columns"),
    ],
)
def test_settings_that_cannot_be_are_refused(given_: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        data(**given_)


def test_one_file_is_split_by_the_hash_of_a_side(tmp_path: Path) -> None:
    rows = [(f"source {n // 3}", f"target {n}") for n in range(3_000)]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    setting = DataConfig.model_validate({"train": ["a.tsv"], "split_valid": 0.1, "split_test": 0.2})
    splits = {name: list(pairs) for name, pairs in open_pairs(setting, tmp_path).items()}
    assert set(splits) == {"train", "valid", "test"}
    assert sorted(p for pairs in splits.values() for p in pairs) == sorted(TextPair(*row) for row in rows)
    sources = {name: {p.source for p in pairs} for name, pairs in splits.items()}
    assert not sources["train"] & sources["valid"] | sources["train"] & sources["test"]
    assert len(splits["valid"]) == pytest.approx(300, rel=0.25)
    assert len(splits["test"]) == pytest.approx(600, rel=0.25)
    by_target = setting.model_copy(update={"split_by": "target", "columns": (2, 1)})
    assert {p.target for p in open_pairs(by_target, tmp_path)["test"]} == sources["test"], "either direction"
    only_valid = DataConfig.model_validate({"train": ["a.tsv"], "split_valid": 0.1, "test": ["a.tsv"]})
    assert [len(list(p)) for p in open_pairs(only_valid, tmp_path).values()][2] == 3_000
    (tmp_path / "a.tsv").write_text("one\tpair\n")
    assert split_of("one", 0.1, 0.2) == "train"
    with pytest.raises(DataError, match=r"no pairs in it \(the valid part of the split\)"):
        list(open_pairs(setting, tmp_path)["valid"])


def test_further_pairs_are_read_behind_the_others(tmp_path: Path) -> None:
    rows = [(f"source {n}", f"target {n}") for n in range(50)]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "said.en").write_text("one\n\ntwo\n")
    (tmp_path / "said.fr").write_text("un\nrien\ndeux\n")
    setting = DataConfig.model_validate(
        {"train": ["a.tsv"], "split_valid": 0.2, "also": ["said.en", "said.fr"], "broken": "skip"}
    )
    splits = open_pairs(setting, tmp_path)
    train = list(splits["train"])
    assert train[-2:] == [TextPair("one", "un"), TextPair("two", "deux")], "none of them is held out"
    assert len(train) + len(list(splits["valid"])) == 52
    assert "said.en, line 2" in str(splits["train"].report)
    alone = open_pairs(setting.model_copy(update={"also": ()}), tmp_path)["train"]
    assert alone.fingerprint() != splits["train"].fingerprint()
    (tmp_path / "said.en").write_text("")
    (tmp_path / "said.fr").write_text("")
    with pytest.raises(DataError, match=r"^\S*said.en, \S*said.fr: no pairs in it"):
        list(splits["train"])
    with pytest.raises(ValidationError, match="also: read behind the files of train"):
        DataConfig.model_validate({"world": {}, "also": ["said.en", "said.fr"]})


def test_a_fingerprint_follows_contents_and_settings(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n")
    (tmp_path / "b.tsv").write_text("x\ty\n")
    first = Pairs(["a.tsv"], tmp_path).fingerprint()
    assert Pairs(["b.tsv"], tmp_path).fingerprint() == first, "names say nothing"
    assert Pairs(["a.tsv"], tmp_path, data(columns=[2, 1])).fingerprint() != first
    assert Pairs(["a.tsv", "b.tsv"], tmp_path).fingerprint() != first
    (tmp_path / "a.tsv").write_text("x\tz\n")
    assert Pairs(["a.tsv"], tmp_path).fingerprint() != first


def test_a_very_long_line_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("word " * 100_000 + "\tx\n")
    (pair,) = read_pairs(["a.tsv"], tmp_path)
    assert len(pair.source.split()) == 100_000


def test_a_file_is_never_held_whole(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wt", compresslevel=1) as file:
        file.write(("word " * 20 + "\n") * 50_000)  # 5 MB
    (tmp_path / "b").write_bytes(gzip.decompress((tmp_path / "a.gz").read_bytes()))
    tracemalloc.start()
    assert sum(1 for _ in Pairs(["a.gz", "b"], tmp_path)) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("locale", ["C", "en_US.US-ASCII"])
def test_files_are_utf8_whatever_the_locale(tmp_path: Path, locale: str) -> None:
    (tmp_path / "a.tsv").write_bytes("mèo\tcon mèo trà\n".encode())
    code = (
        "from pathlib import Path; from heedful.data.readers import read_pairs\n"
        "from heedful.data.tokenizer import Tokenizer; from heedful.config import TokenizerConfig\n"
        "(pair,) = read_pairs(['a.tsv'], Path())\n"
        "Tokenizer.learn([pair.target], TokenizerConfig()).save(Path('t.json'))\n"
        "print(ascii(pair.source), ascii(Tokenizer.load(Path('t.json')).decode([4, 5, 6])))"
    )
    package = str(Path(heedful.__file__).parent.parent)
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": package}
    environment = {**os.environ, "LC_ALL": locale, "LANG": locale, **plain}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == (r"'m\xe8o' 'con m\xe8o tr\xe0'", "")


@needs_data
def test_tatoeba_is_split_as_its_folder_says() -> None:
    setting = DataConfig.model_validate(
        {
            "train": ["data:tatoeba_fra_eng/eng-fra.tsv.gz"],
            "columns": [2, 1],
            "split_valid": 0.05,
            "split_test": 0.05,
            "split_by": "target",
        }
    )
    pairs = Pairs(setting.train, REAL, setting)
    counts = Counter(split_of(pair.target, 0.05, 0.05) for pair in pairs)
    assert counts == {"test": 7_078, "valid": 7_121, "train": 128_588}


@needs_data
def test_one_language_of_many_is_read() -> None:
    chosen = data(columns=[2, 3], where=["1=vie_hanoi"])
    assert len(read_pairs(["data:sigmorphon2021_g2p/medium.train.tsv.gz"], REAL, chosen)) == 8_000


def test_lines_of_a_truncated_gz_come_until_it_breaks(tmp_path: Path) -> None:
    whole = gzip.compress(b"line of text\n" * 5000)
    (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a.gz, after line \d+: cannot be read"):
        list(read_lines(tmp_path / "a.gz"))
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbffirst\nb\xff\n")
    lines = read_lines(tmp_path / "a")
    assert next(lines) == "first"
    with pytest.raises(DataError, match=r"a, line 2: not UTF-8 \(byte 1 of the line\)"):
        next(lines)


def test_paths_are_beside_the_recipe_or_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "set").mkdir(parents=True)
    (tmp_path / "data" / "set" / "train.en").touch()
    assert data_folder() == tmp_path / "data"
    assert locate("data:set/train.en", tmp_path) == tmp_path / "data" / "set" / "train.en"
    with pytest.raises(DataError, match=r'did you mean "train.en"'):
        locate("data:set/trian.en", tmp_path)
    with pytest.raises(DataError, match=r"is a folder"):
        locate("data:set", tmp_path)
    with pytest.raises(DataError, match=r"the folder .* is not there either"):
        locate("nowhere/x", tmp_path)
    monkeypatch.delenv("HEEDFUL_DATA")
    with pytest.raises(DataError, match=r"can be named by HEEDFUL_DATA"):
        locate("data:nowhere/x", tmp_path)
