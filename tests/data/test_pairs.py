"""Pairs from files: every format, every bad line, splits by hash."""

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
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import heedful
from heedful.config import DataConfig
from heedful.data.lines import assign_split
from heedful.data.pairs import PairFiles, TextPair, open_pairs, read_pairs
from heedful.errors import DataError

REAL = Path(os.environ.get("HEEDFUL_DATA", ""))
needs_data = pytest.mark.skipif(
    not (REAL / "tatoeba_fra_eng").is_dir(), reason="needs the real data under HEEDFUL_DATA"
)


def data(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], **settings})


SKIP = data(on_error="skip")


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("the cat\nthe tea \n", encoding="utf-8")
    (tmp_path / "a.vi").write_bytes("\ufeffcon mèo\r\ntrà".encode())
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("the cat\tcon mèo\nthe tea \ttrà\tthird column\n")
    lines = [{"vi": "con mèo", "en": "the cat", "n": 1}, {"en": "the tea ", "vi": "trà"}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.JSONL.gz").write_bytes(gzip.compress(text.encode()))
    expected = [TextPair("the cat", "con mèo"), TextPair("the tea ", "trà")]
    fields = data(columns=["en", "vi"])
    assert read_pairs(["a.en", "a.vi"], tmp_path) == expected
    assert read_pairs(["a.tsv.gz"], tmp_path) == expected
    assert read_pairs(["a.jsonl"], tmp_path, fields) == expected
    assert read_pairs(["a.JSONL.gz"], tmp_path, fields) == expected


cell = st.text(st.characters(codec="utf-8", exclude_characters="\t\r\n\ufeff"), min_size=1).filter(str.strip)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(cell, cell), min_size=1, max_size=8))
@example([("A", "B"), ("0", "0")])  # numbers are texts like others
@example([("A", "B"), *((str(n), str(n * n)) for n in range(40))])
@example([("Title", "Titre"), ("Open a file", "Ouvrir un fichier")])  # a text may be a word that columns are named by
@example([("book", "b ʊ k"), ("time", "t aɪ m")])
@example([("id", "pw"), ("1", "2")])
@example([("date", "Datum")])
@example([("source", "target"), ("source", "Quelle"), ("x", "y")])
def test_text_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("files")
    for side, name in enumerate(("a", "b")):
        (folder / name).write_bytes("\n".join(row[side] for row in rows).encode())
    (folder / "c.tsv").write_bytes("".join(f"{a}\t{b}\r\n" for a, b in rows).encode())
    (folder / "d.jsonl").write_text("\n".join(json.dumps({"source": a, "target": b}) for a, b in rows))
    expected = [TextPair(*row) for row in rows]
    for files in (["a", "b"], ["c.tsv"], ["d.jsonl"]):
        assert read_pairs(files, folder) == expected


BAD_LINES = [
    ("a.tsv", b"three\n", r"expected at least 2 columns separated by a tab; found 1 column\(s\): 'three'"),
    ("a.tsv", b"\n", r"blank"),
    ("a.tsv", b" \r\n", r"blank"),
    ("a.tsv", b"\xff\tx\n", r"not UTF-8 \(byte 0 of the line\)"),
    ("a.tsv", b"x\t \n", r"column 2 is blank"),
    ("a.tsv", b"\tx\n", r"column 1 is blank"),
    ("a.jsonl", b"\n", r"blank"),
    ("a.jsonl", b"{]\n", r"not JSON: "),
    ("a.jsonl", b"[" * 100_000 + b"\n", r"not JSON: "),
    ("a.jsonl", b"[1]\n", r"expected an object with fields, found '\[1\]'"),
    (
        "a.jsonl",
        b'{"source": "x", "traget": "y"}\n',
        r'no column "target"; the columns are: source, traget \(data.columns\)',
    ),
    ("a.jsonl", b'{"source": "x", "target": [3]}\n', r'column "target": expected text, found \[3\]'),
    ("a.jsonl", b'{"source": "x", "target": null}\n', r'column "target" is blank'),
    ("a.jsonl", b'{"source": " ", "target": "y"}\n', r'column "source" is blank'),
    ("a.jsonl", b'{"source": "\\ud800", "target": "y"}\n', r'column "source": contains half a surrogate pair'),
]


@pytest.mark.parametrize(("name", "line", "reason"), BAD_LINES)
def test_a_bad_line_is_raised_or_skipped(tmp_path: Path, name: str, line: bytes, reason: str) -> None:
    good = b"one\ttwo\n" if name == "a.tsv" else b'{"source": "one", "target": "two"}\n'
    (tmp_path / name).write_bytes(good + line + good)
    with pytest.raises(DataError, match=rf'{name}, line 2: {reason}.* \(fix the line, or set data.on_error = "skip"'):
        read_pairs([name], tmp_path)
    pairs = PairFiles([name], tmp_path, SKIP)
    for _ in range(2):  # the second iteration counts anew
        assert [row.line for row in pairs.numbered_pairs()] == [1, 3]
        assert pairs.bad_lines.count == 1
        assert pairs.bad_lines.first[0].startswith(f"{tmp_path / name}, line 2: ")


def test_a_bad_line_in_either_parallel_file_drops_the_pair(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n\n3\n\xff\n5\n")
    (tmp_path / "b").write_bytes(b"1\n2\n \n4\n\xfe\n")
    with pytest.raises(DataError, match=r"a, line 2: blank"):
        read_pairs(["a", "b"], tmp_path)
    pairs = PairFiles(["a", "b"], tmp_path, SKIP)
    assert list(pairs) == [TextPair("1", "1")]
    assert pairs.bad_lines.count == 4
    assert "b, line 3: blank" in str(pairs.bad_lines)
    assert "a, line 4: not UTF-8" in str(pairs.bad_lines)
    assert "b, line 5: not UTF-8" in str(pairs.bad_lines)


def test_the_summary_of_bad_lines_stays_short(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n" + "z\n" * 1_000)
    pairs = PairFiles(["a.tsv"], tmp_path, SKIP)
    assert len(list(pairs)) == 1
    assert len(pairs.bad_lines.first) == 5
    assert str(pairs.bad_lines).startswith("1,000 bad line(s) skipped:")
    assert str(pairs.bad_lines).endswith("and 995 more")


@pytest.mark.parametrize("config", [data(), SKIP])
@pytest.mark.parametrize(("n_source", "n_target"), [(2, 1), (1, 4), (0, 1), (3, 0)])
def test_parallel_files_need_the_same_number_of_lines(
    tmp_path: Path, config: DataConfig, n_source: int, n_target: int
) -> None:
    (tmp_path / "a").write_text("one\n" * n_source)
    (tmp_path / "b").write_text("un\n" * n_target)
    with pytest.raises(DataError, match=rf"a has {n_source} lines, but .*b has {n_target}: parallel files need"):
        read_pairs(["a", "b"], tmp_path, config)


@pytest.mark.parametrize("name", ["a.tsv", "a.jsonl"])
def test_a_file_without_pairs_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=rf"{name}: contains no pairs"):
        read_pairs([name], tmp_path)
    (tmp_path / name).write_bytes(b"\n\n")
    with pytest.raises(DataError, match=rf"{name}: contains no pairs\n2 bad line\(s\) skipped"):
        read_pairs([name], tmp_path, SKIP)


@pytest.mark.parametrize("config", [data(), SKIP])
def test_a_damaged_gzip_file_is_always_an_error(tmp_path: Path, config: DataConfig) -> None:
    intact = gzip.compress("".join(f"{n} line\tof text {n * n}\n" for n in range(5000)).encode())
    flipped = bytearray(intact)
    flipped[len(intact) // 2 : len(intact) // 2 + 40] = b"\xff" * 40
    for content in (intact[: len(intact) // 2], bytes(flipped), b"plain text"):
        (tmp_path / "a.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"a.gz(, after line \d+)?: cannot be read"):
            read_pairs(["a.gz"], tmp_path, config)


def test_columns_and_fields_select_and_where_filters(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("vi\tcat\tm è o\nfr\tcat\tʃ a\nvi\ttea\tt r à\nde\t\t\n")
    chosen = data(columns=[3, 2], where=["1=vi"])
    assert read_pairs(["a.tsv"], tmp_path, chosen) == [TextPair("m è o", "cat"), TextPair("t r à", "tea")]
    with pytest.raises(DataError, match=r"a.tsv: contains no pairs \(data.where = \['1=en'\]\)"):
        read_pairs(["a.tsv"], tmp_path, data(columns=[2, 3], where=["1=en"]))
    with pytest.raises(DataError, match=r"line 1: expected at least 4 columns separated by a tab; found 3"):
        read_pairs(["a.tsv"], tmp_path, data(columns=[2, 3], where=["4=en"]))
    with pytest.raises(
        DataError,
        match=r'data.where = "lang": no such name in the first line\nit has no header; give numbers from 1 to 3',
    ):
        read_pairs(["a.tsv"], tmp_path, data(where=["lang=vi"]))
    (tmp_path / "a.jsonl").write_text(
        '{"l": "vi", "source": "a", "target": "b", "n": 1}\n{"l": "fr", "source": "c", "target": "d"}\n'
    )
    assert read_pairs(["a.jsonl"], tmp_path, data(where=["l=fr"])) == [TextPair("c", "d")]
    with pytest.raises(DataError, match=r'line 2: no column "n"; the columns are: l, source, target'):
        read_pairs(["a.jsonl"], tmp_path, data(where=["n=1"]))
    assert read_pairs(["a.jsonl"], tmp_path, data(where=["n=1"], on_error="skip")) == [TextPair("a", "b")]
    with pytest.raises(DataError, match=r"has no effect on parallel files"):
        read_pairs(["a.tsv", "a.tsv"], tmp_path, data(where=["1=vi"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"where": ["vi"]}, 'expected "column=value"'),
        ({"where": ["=vi"]}, 'expected "column=value"'),
        ({"split_valid": 0.1}, "there is valid data already"),
        ({"valid": [], "split_valid": 0.6, "split_test": 0.4}, "no training data is left"),
        ({"valid": []}, "train, valid: name the files"),
        ({"columns": [0, 1]}, "expected names or numbers of columns, counted from 1"),
        ({"columns": [1, True]}, "expected names or numbers"),
        ({"columns": [1, ""]}, "expected names or numbers"),
        ({"columns": [1, 2, 3, 4]}, "at most 3 can be used"),
    ],
)
def test_impossible_settings_are_an_error(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        data(**settings)


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
    assert assign_split("one", 0.1, 0.2) == "train"
    with pytest.raises(
        DataError, match=r"no pairs \(the valid part of the split: data.split_valid = 0.1 puts no row there; equal rows"
    ):
        list(open_pairs(setting, tmp_path)["valid"])


def test_extra_pairs_follow_the_others_and_are_never_held_out(tmp_path: Path) -> None:
    rows = [(f"source {n}", f"target {n}") for n in range(50)]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    (tmp_path / "extra.en").write_text("one\n\ntwo\n")
    (tmp_path / "extra.fr").write_text("un\nrien\ndeux\n")
    setting = DataConfig.model_validate(
        {"train": ["a.tsv"], "split_valid": 0.2, "extra_train": ["extra.en", "extra.fr"], "on_error": "skip"}
    )
    splits = open_pairs(setting, tmp_path)
    train = list(splits["train"])
    assert train[-2:] == [TextPair("one", "un"), TextPair("two", "deux")], "none of them is held out"
    assert len(train) + len(list(splits["valid"])) == 52
    assert "extra.en, line 2" in str(splits["train"].bad_lines)
    without_extra = open_pairs(setting.model_copy(update={"extra_train": ()}), tmp_path)["train"]
    assert without_extra.fingerprint() != splits["train"].fingerprint()
    (tmp_path / "extra.en").write_text("")
    (tmp_path / "extra.fr").write_text("")
    with pytest.raises(DataError, match=r"^\S*extra.en, \S*extra.fr: contains no pairs"):
        list(splits["train"])
    with pytest.raises(ValidationError, match="extra_train: needs train"):
        DataConfig.model_validate({"world": {}, "extra_train": ["extra.en", "extra.fr"]})


def test_a_fingerprint_follows_contents_and_settings(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("x\ty\n")
    (tmp_path / "b.tsv").write_text("x\ty\n")
    first = PairFiles(["a.tsv"], tmp_path).fingerprint()
    assert PairFiles(["b.tsv"], tmp_path).fingerprint() == first, "file names do not count"
    assert PairFiles(["a.tsv"], tmp_path, data(columns=[2, 1])).fingerprint() != first
    assert PairFiles(["a.tsv", "b.tsv"], tmp_path).fingerprint() != first
    (tmp_path / "a.tsv").write_text("x\tz\n")
    assert PairFiles(["a.tsv"], tmp_path).fingerprint() != first


def test_a_very_long_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("word " * 100_000 + "\tx\n")
    (pair,) = read_pairs(["a.tsv"], tmp_path)
    assert len(pair.source.split()) == 100_000


def test_reading_takes_constant_memory(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wt", compresslevel=1) as file:
        file.write(("word " * 20 + "\n") * 50_000)  # 5 MB
    (tmp_path / "b").write_bytes(gzip.decompress((tmp_path / "a.gz").read_bytes()))
    tracemalloc.start()
    assert sum(1 for _ in PairFiles(["a.gz", "b"], tmp_path)) == 50_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("locale", ["C", "en_US.US-ASCII"])
def test_files_are_utf8_in_every_locale(tmp_path: Path, locale: str) -> None:
    (tmp_path / "a.tsv").write_bytes("mèo\tcon mèo trà\n".encode())
    code = (
        "from pathlib import Path; from heedful.data.pairs import read_pairs\n"
        "from heedful.data.tokenizer import Tokenizer; from heedful.config import TokenizerConfig\n"
        "(pair,) = read_pairs(['a.tsv'], Path())\n"
        "Tokenizer.train([pair.target], TokenizerConfig()).save(Path('t.json'))\n"
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
def test_tatoeba_is_split_as_its_readme_says() -> None:
    setting = DataConfig.model_validate(
        {
            "train": ["data:tatoeba_fra_eng/eng-fra.tsv.gz"],
            "columns": [2, 1],
            "split_valid": 0.05,
            "split_test": 0.05,
            "split_by": "target",
        }
    )
    pairs = PairFiles(setting.train, REAL, setting)
    counts = Counter(assign_split(pair.target, 0.05, 0.05) for pair in pairs)
    assert counts == {"test": 7_078, "valid": 7_121, "train": 128_588}


@needs_data
def test_one_language_of_a_multilingual_file_is_read() -> None:
    chosen = data(columns=[2, 3], where=["1=vie_hanoi"])
    assert len(read_pairs(["data:sigmorphon2021_g2p/medium.train.tsv.gz"], REAL, chosen)) == 8_000
