"""Tokenizer files: what heedful writes is accepted, everything else of the library's format is refused unread."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from heedful.config import TokenizerConfig
from heedful.data.asset_files import MAX_JSON_BYTES
from heedful.data.tokenizer import Tokenizer
from heedful.errors import ModelError

ROOT = Path(__file__).parent.parent.parent
STORED = [*ROOT.glob("tests/stored/**/*.tokenizer.json"), *ROOT.glob("src/heedful/bundled/*/*.tokenizer.json")]
KINDS = ("word", "character", "bpe", "unigram")
Change = Callable[[dict[str, Any]], object]


@cache
def trained(kind: str, lowercase: bool = False, decompose: bool = False) -> str:
    settings = {"kind": kind, "lowercase": lowercase, "decompose": decompose, "vocab_size": 320}
    return Tokenizer.train(["a cat sees a dog", "Élan 12"], TokenizerConfig.model_validate(settings)).to_json()


@pytest.mark.parametrize(("kind", "lowercase", "decompose"), [*product(KINDS, (False, True), (False, True))])
def test_every_trained_tokenizer_is_accepted(kind: str, lowercase: bool, decompose: bool, tmp_path: Path) -> None:
    text = trained(kind, lowercase, decompose)
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    assert Tokenizer.load(tmp_path / "t.json").to_json() == text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_tokenizer_without_training_text_is_accepted(kind: str, tmp_path: Path) -> None:
    Tokenizer.train([], TokenizerConfig.model_validate({"kind": kind})).save(tmp_path / "t.json")
    Tokenizer.load(tmp_path / "t.json")


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_stored_tokenizers_are_accepted(path: Path) -> None:
    assert Tokenizer.load(path).encode("a cat")


def test_merges_of_older_versions_of_the_library_are_accepted(tmp_path: Path) -> None:
    tree = json.loads(trained("bpe"))
    tree["model"]["merges"] = [" ".join(pair) for pair in tree["model"]["merges"]]
    del tree["model"]["ignore_merges"]
    (tmp_path / "t.json").write_text(json.dumps(tree))
    assert Tokenizer.load(tmp_path / "t.json").to_json() == trained("bpe")


def set_part(key: str, value: object) -> Change:
    return lambda tree: tree.update({key: value})


def set_model(key: str, value: object) -> Change:
    return lambda tree: tree["model"].update({key: value})


PADDING = {
    "strategy": {"Fixed": 300_000_000},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "x",
}
REPLACE = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}
HOSTILE: dict[str, tuple[str, Change]] = {
    "padding": ("word", set_part("padding", PADDING)),
    "truncation": ("word", set_part("truncation", {"max_length": 0, "strategy": "LongestFirst", "stride": 5})),
    "replacements": ("word", set_part("normalizer", {"type": "Sequence", "normalizers": [REPLACE] * 5})),
    "regex": ("word", set_part("pre_tokenizer", {"type": "Split", "pattern": {"Regex": "(a+)+$"}})),
    "pattern": ("word", lambda tree: tree["pre_tokenizer"]["pattern"].update(Regex="(?:(?:x*)*)*y")),
    "prepend": ("bpe", lambda tree: tree["normalizer"]["normalizers"][0].update(prepend="y" * 10_000)),
    "added": ("word", set_part("added_tokens", [{"id": 9, "content": "a", "special": True}])),
    "decoder": ("bpe", set_part("decoder", {"type": "ByteLevel"})),
    "no pre-tokenizer": ("word", lambda tree: tree.pop("pre_tokenizer")),
    "of another kind": ("bpe", lambda tree: tree.update(pre_tokenizer=json.loads(trained("word"))["pre_tokenizer"])),
    "other part": ("word", set_part("more", 1)),
    "model": ("word", set_part("model", None)),
    "model type": ("word", set_model("type", "WordPiece")),
    "model types": ("word", set_model("type", ["BPE"])),
    "dropout": ("bpe", set_model("dropout", 0.5)),
    "number for false": ("bpe", set_model("fuse_unk", 0)),
    "suffix": ("bpe", set_model("end_of_word_suffix", "</w>")),
    "unknown id": ("unigram", set_model("unk_id", 10**9)),
    "vocabulary": ("word", set_model("vocab", [1, 2])),
    "id outside": ("word", lambda tree: tree["model"]["vocab"].update(cat=10**9)),
    "negative id": ("word", lambda tree: tree["model"]["vocab"].update(cat=-1)),
    "id of a wrong type": ("word", lambda tree: tree["model"]["vocab"].update(cat=5.0)),
    "specials": ("word", lambda tree: tree["model"]["vocab"].update({" <pad>": 1, " <unk>": 0})),
    "empty token": ("word", lambda tree: tree["model"]["vocab"].update({"": len(tree["model"]["vocab"])})),
    "scores": ("unigram", lambda tree: tree["model"]["vocab"][9].__setitem__(1, float("nan"))),
    "score of a wrong type": ("unigram", lambda tree: tree["model"]["vocab"][9].__setitem__(1, "1")),
    "twice": ("unigram", lambda tree: tree["model"]["vocab"].append(tree["model"]["vocab"][9])),
    "bytes": ("unigram", lambda tree: tree["model"]["vocab"].pop()),
    "merges": ("bpe", set_model("merges", {})),
    "merge": ("bpe", lambda tree: tree["model"]["merges"].append(["a"])),
    "merge of unknown parts": ("bpe", lambda tree: tree["model"]["merges"].append(["qq", "zz"])),
    "no merges": ("bpe", lambda tree: tree["model"].pop("merges")),
    "merges of words": ("word", set_model("merges", [])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_everything_else_is_refused_before_the_library_reads_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, change = HOSTILE[name]
    tree = json.loads(trained(kind))
    change(tree)
    (tmp_path / "t.json").write_text(json.dumps(tree))

    def read(_text: str) -> None:
        raise AssertionError("the library was called")

    monkeypatch.setattr(tokenizers.Tokenizer, "from_str", read)
    with pytest.raises(ModelError, match=r"t\.json: not a tokenizer of heedful: "):
        Tokenizer.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 100_000, "1" * 5_000, " " * (MAX_JSON_BYTES + 1), "\udcff"], ids=range(6)
)
def test_what_is_not_json_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(text.encode("utf-8", errors="surrogateescape"))
    with pytest.raises(ModelError, match=r"t\.json: not a tokenizer"):
        Tokenizer.load(tmp_path / "t.json")


def test_a_panic_of_the_library_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicError(BaseException):
        pass

    def read(_text: str) -> None:
        raise PanicError("called `Option::unwrap()` on a `None` value")

    (tmp_path / "t.json").write_text(trained("word"))
    monkeypatch.setattr(tokenizers.Tokenizer, "from_str", read)
    with pytest.raises(ModelError, match=r"t\.json: not a tokenizer: called"):
        Tokenizer.load(tmp_path / "t.json")
