"""One reader of tables for all tasks: columns by name or number, nested fields, and errors that list what is there."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from heedful.config import DataConfig
from heedful.data.captions import CaptionedImage, read_captions
from heedful.data.line_file import LineFile
from heedful.data.pairs import LABEL_ROLES, PairFiles, TextPair, open_pairs, read_pairs
from heedful.data.ratings import open_ratings
from heedful.data.tables import Row, Table, find_roles
from heedful.errors import DataError

ROWS = [{"id": 1, "en": "tea, please", "vi": "trà"}, {"id": 2, "en": "the cat", "vi": "con mèo"}]
PAIRS = [TextPair("tea, please", "trà"), TextPair("the cat", "con mèo")]


def data(**settings: object) -> DataConfig:
    return DataConfig.model_validate({"train": ["t"], "valid": ["v"], **settings})


def texts(table: Table) -> list[tuple[str, ...]]:
    return [row.texts for row in table if isinstance(row, Row)]


def write_all(folder: Path) -> list[str]:
    """Write the same rows in every format and return the names of the files."""
    lines = ["id,en,vi", *(f'{row["id"]},"{row["en"]}",{row["vi"]}' for row in ROWS)]
    files = {
        "a.csv": "\n".join(lines),
        "a.tsv": "\n".join("\t".join(map(str, row)) for row in [["id", "en", "vi"], *map(dict.values, ROWS)]),
        "a.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS),
        "a.json": json.dumps(ROWS),
        "wrapped.json": json.dumps({"version": "1", "data": ROWS}),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return [*files, *(f"{name}.gz" for name in files)]


@pytest.mark.parametrize("columns", [["en", "vi"], [2, 3], [2, "vi"]])
def test_every_format_gives_the_same_pairs(tmp_path: Path, columns: list[object]) -> None:
    for name in write_all(tmp_path):
        assert read_pairs([name], tmp_path, data(columns=columns)) == PAIRS, name
        assert read_pairs([name], tmp_path, data(columns=columns, where=["id=2"])) == PAIRS[1:], name


def test_parquet_gives_the_same_pairs(tmp_path: Path) -> None:
    nested = [{"translation": {"en": row["en"], "vi": row["vi"]}, "id": row["id"]} for row in ROWS]
    parquet.write_table(pyarrow.Table.from_pylist(nested), tmp_path / "a.parquet")
    columns = data(columns=["translation.en", "translation.vi"], where=["id=1"])
    assert read_pairs(["a.parquet"], tmp_path, columns) == PAIRS[:1]
    (tmp_path / "b.parquet").write_bytes(b"text")
    with pytest.raises(DataError, match=r"b\.parquet: not a Parquet file"):
        read_pairs(["b.parquet"], tmp_path)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"pip install 'heedful\[parquet\]'"):
        read_pairs(["a.parquet"], tmp_path)


def test_nested_fields_are_named_with_dots(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"translation": {"en": "a", "vi": "b"}}\n{"translation": {"en": "c"}}\n')
    nested = data(columns=["translation.en", "translation.vi"], on_error="skip")
    pairs = PairFiles(["a.jsonl"], tmp_path, nested)
    assert list(pairs) == [TextPair("a", "b")]
    assert 'line 2: no column "translation.vi"; the columns are: translation' in str(pairs.bad_lines)


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,category,text\n1,card,my card is lost\n")
    pairs = PairFiles(["a.csv"], tmp_path, roles=LABEL_ROLES)
    assert list(pairs) == [TextPair("my card is lost", "card")]
    (line,) = pairs.describe()
    assert line == (
        "a.csv: comma-separated, header: id, category, text (data.separator, data.header);"
        " text: column text, label: column category (data.columns)"
    )
    assert find_roles(["Sentence", "Sentiment"], LABEL_ROLES) == {"text": "Sentence", "label": "Sentiment"}
    assert find_roles(["title", "label"], LABEL_ROLES) == {"text": "title", "label": "label"}
    assert find_roles(["label", "target"], ("source", "target")) == {"target": "target"}


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("a,text\nx y,1\n", {"columns": ["txet", "a"]}, '"txet": no such column; did you mean "text"'),
        ("a,text\nx y,1\n", {"columns": ["txet", "a"]}, "data.columns = .*\nits columns are: a, text"),
        ("a,text\nx y,1\n", {"columns": ["text", 3]}, "data.columns = 3: there are only 2 columns\nits columns are"),
        ("x,y\nz,w\n", {"columns": ["text", 1]}, "no such name in the first line\nit has no header; give numbers"),
        ("id,text,a,b\n1,2,3,4\n", {}, "set data.columns .* of source and target; its columns are: id, text, a, b"),
        ("a,text\nx y,1\n", {"columns": "text"}, r"data.columns: expected 2 \(source and target\), got 1"),
        ("id,text\n1,x\n", {"where": ["txt=1"]}, 'data.where = "txt": no such column; did you mean "text"'),
    ],
)
def test_an_error_about_columns_names_the_setting_and_lists_the_columns(
    tmp_path: Path, text: str, settings: dict[str, object], message: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_pairs(["a.csv"], tmp_path, data(**settings))


def test_a_column_that_no_row_of_json_or_parquet_has_is_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.json", "a.parquet"):
        with pytest.raises(DataError) as error:
            read_pairs([name], tmp_path, data(columns=["enn", "vi"], on_error="skip"))
        assert str(error.value).splitlines() == [
            f'{tmp_path / name}: data.columns = "enn": no such column; did you mean "en"?',
            "its columns are: id, en, vi",
        ]
    (tmp_path / "a.jsonl").write_text('{"en": "a"}\n{"en": "b", "vi": "c"}\n')  # a field that some rows have
    assert read_pairs(["a.jsonl"], tmp_path, data(columns=["en", "vi"], on_error="skip")) == [TextPair("b", "c")]


def test_all_wrong_columns_and_all_missing_files_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("en,text\nx y,1\n")
    with pytest.raises(DataError, match=r'(?s)"src": no such column.*"tgt": no such column.*"lang": no such column'):
        read_pairs(["a.csv"], tmp_path, data(columns=["src", "tgt"], where=["lang=vi"]))
    missing = DataConfig.model_validate({"train": "x.csv", "valid": "y.csv", "test": "a.csv", "columns": ["en", "z"]})
    with pytest.raises(DataError, match=r'(?s)x\.csv does not exist.*y\.csv does not exist.*"z": no such column'):
        open_pairs(missing, tmp_path)


def test_several_bad_lines_are_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"a\tb\nc\n\xff\td\ne\t\nf\tg\n" + b"h\n" * 9)
    with pytest.raises(DataError) as error:
        read_pairs(["a.tsv"], tmp_path)
    lines = str(error.value).splitlines()
    assert lines[0] == "5 bad lines:"
    assert [line.split(", line ")[1].split(":")[0] for line in lines[1:6]] == ["2", "3", "4", "6", "7"]
    assert "data.on_error" in lines[6]


def test_a_list_of_300_columns_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",".join(f"text{n}x" for n in range(300)) + "\n" + ",".join(["1"] * 300) + "\n")
    with pytest.raises(DataError, match=r"text19x and 280 more") as error:
        read_pairs(["a.csv"], tmp_path, data(columns=["a", "b"]))
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_names_of_fields_in_the_log_are_cut(name: str, tmp_path: Path) -> None:
    long, many = "s" * 50_000, [f"text{n}" for n in range(300)]
    row = {"source": "a", "target": "b", long: "c", **dict.fromkeys(many, "d")}
    if name.endswith("parquet"):
        parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / name)
    else:
        (tmp_path / name).write_text(json.dumps(row) + "\n")
    (line,) = PairFiles([name], tmp_path, data(columns=["source", long])).describe()
    assert len(line) < 1_500
    assert "source, target" in line


def test_numbers_are_texts_and_missing_values_are_blank(tmp_path: Path) -> None:
    rows = [("good", 1), ("bad", 0), ("fine", 2.0), ("none", None), ("yes", True)]
    (tmp_path / "a.json").write_text(json.dumps([{"text": text, "label": label} for text, label in rows]))
    pairs = PairFiles(["a.json"], tmp_path, data(on_error="skip"), roles=LABEL_ROLES)
    assert [pair.target for pair in pairs] == ["1", "0", "2", "true"]
    assert 'line 4: column "label" is blank' in str(pairs.bad_lines)


def test_lists_of_cells_have_numbered_columns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('["a", "b", 1]\n["c", "d", 2]\n{"source": "e", "target": "f"}\n')
    pairs = PairFiles(["a.jsonl"], tmp_path, data(columns=[2, 1], where=["3=2"], on_error="skip"))
    assert list(pairs) == [TextPair("d", "c")]
    assert "line 3: expected a list of cells" in str(pairs.bad_lines)


def test_ratings_have_columns_by_name_and_times_as_dates(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "rating,userId,movieId,date\n5,u,m,2024-02-01\n4,u,n,2024-01-01\n3,u,o,2024-01-01T10:00\n2,u,p,2023-12-31\n"
    )
    (tmp_path / "t.csv").write_text('movieId,title\nm,"Matrix, The"\nn,Heat\n')
    config = DataConfig.model_validate(
        {"train": "r.csv", "ratings": {"hold_out": "last", "titles": "t.csv"}, "columns": ["userId", "movieId", "date"]}
    )
    ratings = open_ratings(config, tmp_path)
    held_out = {split: ratings.catalog.items[items.items[0]] for split, items in ratings.held_out.items()}
    assert held_out == {"test": "m", "valid": "o"}
    assert dict(zip(ratings.catalog.items, ratings.catalog.titles, strict=True))["m"] == "Matrix, The"
    found = open_ratings(config.model_copy(update={"columns": ()}), tmp_path)
    assert found.catalog.items == ratings.catalog.items
    assert "user: column userId, item: column movieId, time: column date (data.columns)" in found.notes[0]


def test_captions_have_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text('image,caption\na.jpg,"a dog, a cat"\na.jpg,a pet\nb.jpg,a tree\n')
    expected = [CaptionedImage("a.jpg", ("a dog, a cat", "a pet")), CaptionedImage("b.jpg", ("a tree",))]
    assert read_captions(tmp_path / "captions.txt").images == expected
    rows = [{"photo": "a.jpg", "alt": ["a dog, a cat", "a pet"]}, {"photo": "b.jpg", "alt": "a tree"}]
    (tmp_path / "c.json").write_text(json.dumps(rows))
    assert read_captions(tmp_path / "c.json", data(columns=["photo", "alt"])).images == expected


def test_a_language_model_reads_one_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text\n1,"one, two"\n2,three\n')
    assert list(LineFile(tmp_path / "a.csv")) == ["one, two", "three"]
    (tmp_path / "a.txt").write_text("one\ttwo\n")
    assert list(LineFile(tmp_path / "a.txt")) == ["one\ttwo"]
    assert list(LineFile(tmp_path / "a.txt", data(columns=2))) == ["two"]


def test_json_lines_are_read_whatever_the_file_is_named(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.json"):
        (tmp_path / name).write_text('\n{"text": "fine", "label": 1}\n{"text": "dull", "label": 0}\n')
        rows = [row for row in Table(tmp_path / name, ("text", "label")) if isinstance(row, Row)]
        assert [row.texts for row in rows] == [("fine", "1"), ("dull", "0")], name
    (tmp_path / "a.json").write_text('{"rows": [\n[1, 2],\n[3, 4]\n]}')
    first = next(iter(Table(tmp_path / "a.json", ("text", "label"))))
    assert isinstance(first, Row)
    assert first.texts == ("1", "2")


def test_an_unusual_separator_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text|label\na fine film|1\n")
    with pytest.raises(
        DataError, match=r"its columns are: text\|label; if \"\|\" divides the columns, set data.separator"
    ):
        Table(tmp_path / "a.csv", ("text", "label"))
