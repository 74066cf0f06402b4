"""CSV and TSV files: separators, quotes, headers and bad lines."""

from __future__ import annotations

import csv
import gzip
import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.delimited import MAX_RECORD_LINES, DelimitedFile, Record, read_records
from heedful.data.header import is_header
from heedful.data.lines import BadLine


def rows(path: Path, **options: str) -> list[list[object]]:
    return [list(record.cells) for record in DelimitedFile(path, **options) if isinstance(record, Record)]


def write_csv(table: list[list[str]], separator: str) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows(table)
    return text.getvalue().encode()


TABLE = [
    ["text", "label"],
    ["fine, really", "good"],
    ['he said "no"', "bad"],
    ["tab\there; and there", "bad"],
    ["two\nlines", "good"],
]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("compressed", [False, True])
def test_csv_is_read_as_it_was_written(tmp_path: Path, separator: str, compressed: bool) -> None:
    content = write_csv(TABLE, separator)
    path = tmp_path / ("a.csv.gz" if compressed else "a.csv")
    path.write_bytes(gzip.compress(content) if compressed else content)
    file = DelimitedFile(path)
    assert file.names == ("text", "label")
    assert rows(path) == [*TABLE[1:-1], ["two lines", "good"]]
    assert [record.line for record in file if isinstance(record, Record)] == [2, 3, 4, 5], "lines, not rows"
    assert {",": "comma", ";": "semicolon", "\t": "tab"}[separator] in file.describe()
    assert "header: text, label" in file.describe()


cell = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff\0"), min_size=1, max_size=12).filter(
    str.strip
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(cell, min_size=3, max_size=3), min_size=1, max_size=8))
def test_every_csv_of_pythons_writer_is_read(tmp_path_factory: pytest.TempPathFactory, table: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("files") / "a.csv"
    path.write_bytes(write_csv(table, ","))
    assert rows(path, header="no", separator=",") == table


def test_quotes_of_a_plain_tsv_are_characters(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    lines = ['"Yes," he said.\t"Oui", dit-il.', '"Run!"\t"Cours !"', 'a "b" c\td', '"open\tx']
    path.write_text("\n".join(lines))
    assert rows(path) == [line.split("\t") for line in lines]


@pytest.mark.parametrize("contradiction", ['"open', 'a "b" c', '"Run" and "stop"'])
def test_one_cell_that_no_writer_would_write_makes_all_quotes_characters(tmp_path: Path, contradiction: str) -> None:
    path = tmp_path / "a.tsv"
    lines = ['"he said ""no"""\tx', f"{contradiction}\ty"]
    path.write_text("\n".join(lines))
    assert rows(path) == [line.split("\t") for line in lines]


def test_quotes_that_a_writer_of_tsv_set_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(write_csv([["source", "target"], ["plain", "x"], ['he said "no"', "y"]], "\t"))
    assert rows(path) == [["plain", "x"], ['he said "no"', "y"]]


@pytest.mark.parametrize(
    ("name", "text", "separator"),
    [
        ("a.csv", "a;b\n1,5;2\n2,5;3\n", ";"),
        ("a.csv", "a\tb\n1,5\t2\n", "\t"),
        ("a.csv", "only one column\n", ","),
        ("a.tsv", "one, two\nthree, four\n", "\t"),
        ("a.txt", 'image,caption\n1.jpg,a dog\n2.jpg,"a dog, a cat"\n', ","),
        ("a.txt", "Hello, world\nno comma here\n", "\t"),
        ("a", "a, b\tc\n", "\t"),
    ],
)
def test_the_separator_is_found(tmp_path: Path, name: str, text: str, separator: str) -> None:
    (tmp_path / name).write_text(text)
    assert DelimitedFile(tmp_path / name).dialect.separator == separator


@pytest.mark.parametrize(
    "table",
    [
        [["text", "category"], ["my card is lost", "card"]],
        [["userId", "movieId", "rating", "timestamp"], ["1", "2", "3.5", "1"]],
        [["nr", "deu", "hsb"], *([str(n), f"Satz {n}", f"Sada {n}"] for n in range(12))],
        [["en", "vi"], ["Hi.", "Chào."]],
        [["sentence1", "sentence2", "gold_label"], ["a b", "c d", "neutral"]],
        [["English", "Vietnamese"], ["Hi.", "Chào."]],
        [["id", "Review Text", "stars"], ["1", "fine", "5"]],
        [["text", "label"]],  # and no rows
        [["", "text", "label"], *([str(n), f"text {n} is here", "good"] for n in range(5))],  # the index of pandas
        [["", "0", "1"], *([str(n), "1", "2"] for n in range(5))],
    ],
)
def test_a_header_is_found(table: list[list[str]]) -> None:
    assert is_header(table)
    assert not table[1:] or not is_header(table[1:])


@pytest.mark.parametrize(
    "table",
    [
        [["a dull evening", "label"]],  # the only row
        [["Hi.", "Chào."], ["Run!", "Chạy!"]],
        [["the cat", "le chat"], ["the dog", "le chien"]],
        [["good", "a fine film"], ["bad", "dull"], ["good", "nice"]],
        [["source 1", "target 1"], ["source 2", "target 2"]],
        [["label", "text"], ["label", "another text"]],
        [["1", "25"], ["1", "30"]],
        [["", "text"], ["a", "b"]],
    ],
)
def test_data_is_not_taken_for_a_header(table: list[list[str]]) -> None:
    assert not is_header(table)


def test_a_header_is_found_by_what_the_columns_are_for() -> None:
    ratings = [["u", "v"], ["1", "2"], ["3", "4"]]
    assert is_header(ratings, ("user", "item", "time"))
    assert not is_header(ratings, ("text", "label")), "two rows of numbers are too few"
    assert not is_header([["A", "B"], *([str(n), str(n)] for n in range(90))], ("source", "target"))
    messages = [["ham" if n % 4 else "spam", f"message {n} is here", "", ""] for n in range(60)]
    assert is_header([["v1", "v2", "", ""], *messages], ("text", "label")), "all other labels occur often"
    assert not is_header([["ham", "v2", "", ""], *messages], ("text", "label"))
    assert not is_header([["v1", "v2", "", ""], *messages], ("source", "target"))
    assert is_header([["x", "y"], *([f"text {n} is here", "0"] for n in range(12))], ("text", "label"))
    assert not is_header([["Title", "Titre"], ["Date of birth", "Date de naissance"]], ("source", "target"))
    assert is_header([["English", "French"], ["Date of birth", "Date de naissance"]], ("source", "target"))
    assert is_header([["id", "english", "french", "x"], ["a1", "Hi.", "Salut.", "y"]], ("source", "target"))


def test_the_setting_decides_against_the_guess(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\ngood,1\n")
    assert rows(path, header="no") == [["text", "label"], ["good", "1"]]
    path.write_text("foo,bar\nlorem,ipsum\n")
    assert rows(path) == [["foo", "bar"], ["lorem", "ipsum"]]
    assert rows(path, header="yes") == [["lorem", "ipsum"]]


def test_a_header_below_blank_or_bad_lines_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\n\xff\ntext,label\ngood,1\n")
    file = DelimitedFile(path)
    assert file.names == ("text", "label")
    records = list(file)
    assert [record.line for record in records] == [1, 2, 4]
    assert isinstance(records[1], BadLine)


@pytest.mark.parametrize("n_lines", [3, 3 * MAX_RECORD_LINES])
def test_a_quote_that_is_not_closed_costs_one_line(tmp_path: Path, n_lines: int) -> None:
    path = tmp_path / "a.csv"
    path.write_text('text,label\na,1\n"never closed,1\n' + "b,2\n" * n_lines)
    records = list(DelimitedFile(path))
    bad = [record for record in records if isinstance(record, BadLine)]
    assert [(line.line, line.reason) for line in bad] == [(3, "a quote is not closed")]
    assert [record.line for record in records] == list(range(2, n_lines + 4))


def test_few_lines_are_read_in_search_of_a_closing_quote() -> None:
    n_read = 0

    def lines() -> Iterator[str]:
        nonlocal n_read
        for n_read in range(1_000_000):
            yield "a,1" if n_read else '"never closed,1'

    first = next(read_records(Path("a.csv"), lines(), ",", quoted=True))
    assert first == BadLine(Path("a.csv"), 1, "a quote is not closed")
    assert n_read <= MAX_RECORD_LINES


def test_a_cell_that_is_too_long_is_a_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,1\n" + "9" * 200_000 + ",1\nb,2\n")
    reasons = [record.reason for record in DelimitedFile(path) if isinstance(record, BadLine)]
    assert reasons == ["not CSV: field larger than field limit (131072)"]


def test_a_large_file_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("text,label\n" + '"a word, and more words of a long text",yes\n' * 100_000)  # 4 MB
    tracemalloc.start()
    assert sum(1 for _ in DelimitedFile(path)) == 100_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
