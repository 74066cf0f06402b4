"""Files: the formats that are read, and what is said of those that cannot be."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heedful.config import TokenizerConfig
from heedful.data.paths import data_folder, locate
from heedful.data.readers import TextPair, read_lines, read_pairs
from heedful.data.tokenizer import END, SPECIALS, UNK, Tokenizer
from heedful.errors import DataError, ModelError


def test_parallel_tsv_and_gz_give_the_same_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.en").write_text("the cat\nthe tea\n", encoding="utf-8")
    (tmp_path / "a.vi").write_bytes("con mèo\r\ntrà\r\n".encode())
    with gzip.open(tmp_path / "a.tsv.gz", "wt", encoding="utf-8") as file:
        file.write("the cat\tcon mèo\nthe tea\ttrà\tthird column\n")
    wanted = [TextPair("the cat", "con mèo"), TextPair("the tea", "trà")]
    assert read_pairs(["a.en", "a.vi"], tmp_path) == wanted
    assert read_pairs(["a.tsv.gz"], tmp_path) == wanted


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.tsv", b"one\ttwo\nthree\n", r"a.tsv, line 2: expected source, tab, target; found 1 column"),
        ("a.tsv", b"one\ttwo\n\xff\tx\n", r"a.tsv, line 2: not UTF-8 \(byte 0"),
        ("a.tsv", b"", r"a.tsv: no pairs in it"),
        ("a.tsv", b"one\t \n", r"a.tsv, line 1: expected source, tab, target"),
        ("a.tsv.gz", b"plain text", r"a.tsv.gz, after line 0: cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        read_pairs([name], tmp_path)


def test_parallel_files_must_agree(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("un\n")
    with pytest.raises(DataError, match=r"a has 2 lines, but .*b has 1: they must agree"):
        read_pairs(["a", "b"], tmp_path)
    (tmp_path / "b").write_text("un\n\n")
    with pytest.raises(DataError, match=r"b, line 2: blank"):
        read_pairs(["a", "b"], tmp_path)


def test_a_truncated_gz_is_said(tmp_path: Path) -> None:
    whole = gzip.compress(b"line of text\n" * 5000)
    (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a.gz, after line \d+: cannot be read"):
        list(read_lines(tmp_path / "a.gz"))


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


def test_a_tokeniser_reads_back_as_saved_and_special_words_are_only_text(tmp_path: Path) -> None:
    tokenizer = Tokenizer.learn(["un chat noir", "un chien"], TokenizerConfig())
    ids = tokenizer.encode("un chat </s> bleu")
    assert ids[2:] == [UNK, UNK, END]
    assert tokenizer.decode(ids) == "un chat <unk> <unk>"
    tokenizer.save(tmp_path / "t.json")
    again = Tokenizer.load(tmp_path / "t.json")
    assert again.encode("un chien noir") == tokenizer.encode("un chien noir")
    assert again.tokens(range(4)) == list(SPECIALS)
    assert len(again) == len(tokenizer) == 8
    (tmp_path / "t.json").write_text("{}")
    with pytest.raises(ModelError, match=r"t.json: not a tokeniser"):
        Tokenizer.load(tmp_path / "t.json")


def test_a_vocabulary_is_as_small_as_asked() -> None:
    lines = ["a b c", "a b", "a"]
    assert len(Tokenizer.learn(lines, TokenizerConfig(size=6))) == 6
    assert len(Tokenizer.learn(lines, TokenizerConfig(min_count=2))) == 6
