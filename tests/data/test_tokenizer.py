"""Tokenizers: text is decoded as it was encoded, tokens know their words, special names are only text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import heedful
from heedful.config import TokenizerConfig
from heedful.data.pairs import TextPair
from heedful.data.tokenizer import END, NO_WORD, PAD, SPECIALS, START, UNK, Tokenizer, train_tokenizers
from heedful.errors import ModelError

LINES = [
    "the black cat sees the cats, don't it?",
    "Con mèo đen thấy 12 con mèo.",
    "le chat noir voit <s> les chats </s>",
    "a<s>b a<s>b a<s>b </s></s> <pad> <unk>",
    "日本語 の テキスト  and\ttabs\u3000too",
] * 3
KINDS = ("word", "character", "bpe", "unigram")
SUBWORDS = ("bpe", "unigram")


@cache
def trained(kind: str, lowercase: bool = False, size: int = 400) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "lowercase": lowercase, "vocab_size": size})
    return Tokenizer.train(LINES, config)


lines = st.one_of(
    st.text(),
    st.text("abc ▁Ġ<s>/\t\u3000\x1c\x85\u200b\ufeff\u0301é日", max_size=30),
    st.lists(st.sampled_from([*SPECIALS, "the", "mèo", " ", "  ", "0x41", "<0x41>", "👩‍👩‍👧"])).map("".join),
)
few_examples = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("kind", SUBWORDS)
@few_examples
@given(lines)
def test_subwords_decode_to_the_line(kind: str, line: str) -> None:
    tokenizer = trained(kind)
    ids = tokenizer.encode(line)
    assert ids[-1] == END
    assert min(ids[:-1], default=4) >= 4, "nothing is unknown or special"
    assert tokenizer.decode(ids) == line
    assert tokenizer.encode_all([line, "the cat"]) == [ids, tokenizer.encode("the cat")]


@few_examples
@given(lines)
def test_known_characters_decode_to_the_line(line: str) -> None:
    tokenizer = trained("character")
    ids = tokenizer.encode(line)
    known = set("".join(LINES))
    expected = [" " if c.isspace() else c if c in known else "<unk>" for c in line]
    assert tokenizer.decode(ids) == "".join(expected)
    assert len(ids) == len(line) + 1


@few_examples
@given(lines)
def test_known_words_decode_to_the_line(line: str) -> None:
    tokenizer = trained("word")
    known = set(" ".join(LINES).split())
    expected = [word if word in known else "<unk>" for word in line.split()]
    assert tokenizer.decode(tokenizer.encode(line)) == " ".join(expected)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@few_examples
@given(lines)
def test_every_token_has_its_word(kind: str, lowercase: bool, line: str) -> None:
    tokenizer = trained(kind, lowercase)
    ids = tokenizer.encode(line)
    *words, last = tokenizer.word_ids(ids)
    assert last == NO_WORD
    assert words == sorted(words)
    assert len(words) == len(ids) - 1
    assert sorted(set(words) - {NO_WORD}) == list(range(len(line.split())))
    texts = tokenizer.word_texts(ids)
    assert len(texts) == len(line.split())
    if kind in SUBWORDS and not lowercase:
        assert texts == line.split()
        for number, text in enumerate(texts):  # the subwords of a word decode to that word
            own = [i for i, word in zip(ids, words, strict=False) if word == number]
            assert tokenizer.decode(own).strip() == text


@pytest.mark.parametrize("kind", KINDS)
@few_examples
@given(st.lists(st.integers(0, 450)))
def test_any_ids_can_be_decoded(kind: str, ids: list[int]) -> None:
    tokenizer = trained(kind)
    assert len(tokenizer.tokens(ids)) == len(tokenizer.word_ids(ids)) == len(ids)
    assert len(tokenizer.word_texts(ids)) == max(tokenizer.word_ids(ids), default=NO_WORD) + 1
    assert isinstance(tokenizer.decode(ids), str)
    for i, word in zip(ids, tokenizer.word_ids(ids), strict=True):
        assert word == NO_WORD or i not in (PAD, START, END)


@pytest.mark.parametrize("kind", KINDS)
def test_a_special_name_is_only_text(kind: str) -> None:
    tokenizer = trained(kind)
    assert tokenizer.tokens(range(4)) == list(SPECIALS)
    for line in ("</s>", "a <s> b", "a<s>b", " </s>", "les </s></s>"):
        assert not set(tokenizer.encode(line)[:-1]) & {PAD, START, END}
    assert tokenizer.decode(tokenizer.encode("les chats </s>")) == "les chats </s>", "trained as a word"


def test_the_unit_of_a_vocabulary_is_named() -> None:
    assert [trained(kind).unit for kind in KINDS] == ["words", "characters", "subwords", "subwords"]


def test_tokens_are_readable_text() -> None:
    tokenizer = trained("bpe", size=300)
    assert tokenizer.tokens(tokenizer.encode("mè ß"))[-3:] == ["<C3>", "<9F>", "</s>"]
    assert tokenizer.tokens(tokenizer.encode("the"))[0].startswith("▁")
    assert tokenizer.decode([UNK, END]) == "<unk>"
    characters = trained("character")
    assert characters.tokens(characters.encode("a b")) == ["a", "▁", "b", "</s>"]


def test_punctuation_is_a_subword_of_its_own() -> None:
    tokenizer = Tokenizer.train(["cats. cats, cats! 12cats"] * 50, TokenizerConfig(kind="bpe", vocab_size=500))
    assert tokenizer.tokens(tokenizer.encode("cats. 12cats")) == ["▁cats", ".", "▁12", "cats", "</s>"]
    assert tokenizer.word_ids(tokenizer.encode("cats. 12cats")) == [0, 0, 1, 1, NO_WORD]


def test_lowercase_is_a_setting() -> None:
    for kind in KINDS:
        lower = trained(kind, lowercase=True)
        assert lower.decode(lower.encode("THE Cat".replace("C", "c"))) in ("the cat", "the <unk>")
        assert lower.encode("THE") == lower.encode("the")
        assert trained(kind).encode("THE") != trained(kind).encode("the")


def test_vocab_size_and_min_count_limit_the_vocabulary() -> None:
    lines = ["a b c", "a b", "a"]
    assert len(Tokenizer.train(lines, TokenizerConfig(vocab_size=6))) == 6
    assert len(Tokenizer.train(lines, TokenizerConfig(min_count=2))) == 6
    assert len(Tokenizer.train(lines, TokenizerConfig(kind="character", vocab_size=6))) == 6
    assert len(Tokenizer.train(LINES, TokenizerConfig(kind="bpe", vocab_size=300))) == 300
    assert len(Tokenizer.train(LINES * 20, TokenizerConfig(kind="unigram", vocab_size=300))) <= 300
    rare = Tokenizer.train(LINES, TokenizerConfig(kind="bpe", vocab_size=2_000, min_count=10))
    assert len(rare) < len(trained("bpe", size=2_000))


@pytest.mark.parametrize("kind", KINDS)
def test_empty_training_text_gives_the_smallest_vocabulary(kind: str) -> None:
    for lines in ([], [""], ["   "]):
        tokenizer = Tokenizer.train(lines, TokenizerConfig.model_validate({"kind": kind}))
        assert tokenizer.encode("") == [END]
        if kind in SUBWORDS:
            assert tokenizer.decode(tokenizer.encode("anything ▁")) == "anything ▁"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "bpe", "vocab_size": 259}, "bpe and unigram need at least 300"),
        ({"target_kind": "unigram", "vocab_size": 259}, "bpe and unigram need at least 300"),
        ({"vocab_size": 4}, "at least 5"),
        ({"shared": True, "target_kind": "bpe"}, 'needs one tokenizer kind, not "word" and "bpe"'),
        ({"shared": True, "decompose": True}, "shared must be false"),
        ({"kind": "wrod"}, "kind"),
    ],
)
def test_impossible_settings_are_an_error(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TokenizerConfig.model_validate(settings)


def test_both_sides_share_a_vocabulary_or_have_one_each() -> None:
    pairs = [TextPair("cat", "m è o"), TextPair("tea", "t r à")]
    source, target = train_tokenizers(pairs, TokenizerConfig(shared=True))
    assert source is target
    assert len(source) == 4 + 2 + 6
    source, target = train_tokenizers(pairs, TokenizerConfig(kind="character", target_kind="word"))
    assert source.tokens(source.encode("tea")) == ["t", "e", "a", "</s>"]
    assert target.tokens(target.encode("t r à")) == ["t", "r", "à", "</s>"]
    assert (source.kind, target.kind) == ("character", "word")


def test_only_sources_are_decomposed() -> None:
    pairs = [TextPair("\ud55c\uae00", "\u00e9 \ud55c"), TextPair("\u00e9", "a")]  # composed
    config = TokenizerConfig(kind="character", target_kind="word", decompose=True)
    source, target = train_tokenizers(pairs, config)
    letters = ["\u1112", "\u1161", "\u11ab", "\u1100", "\u1173", "\u11af", "</s>"]
    assert source.tokens(source.encode("\ud55c\uae00")) == letters
    assert source.tokens(source.encode("\uae4c"))[1:] == ["\u1161", "</s>"]  # its vowel is known from another
    assert source.word_ids(source.encode("\ud55c \u00e9")) == [0, 0, 0, 1, 1, 1, NO_WORD]
    assert target.decode(target.encode("\u00e9 \ud55c")) == "\u00e9 \ud55c"


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokenizer_is_loaded_as_it_was_saved(kind: str, tmp_path: Path) -> None:
    tokenizer = trained(kind, lowercase=True)
    tokenizer.save(tmp_path / "t.json")
    again = Tokenizer.load(tmp_path / "t.json")
    assert again.to_json() == tokenizer.to_json()
    assert (again.kind, len(again)) == (tokenizer.kind, len(tokenizer))
    for line in [*LINES, "Something </s> else"]:
        assert again.encode(line) == tokenizer.encode(line)
        assert again.word_ids(again.encode(line)) == tokenizer.word_ids(tokenizer.encode(line))


def test_a_file_that_is_not_a_tokenizer_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(ModelError, match=r"t.json: not a tokenizer"):
        Tokenizer.load(path)
    path.write_text("{}")
    with pytest.raises(ModelError, match=r"t.json: not a tokenizer"):
        Tokenizer.load(path)
    tree = json.loads(trained("bpe").to_json())
    tree["model"]["vocab"] = {f"x{name}": i for name, i in tree["model"]["vocab"].items()}
    tree["model"]["merges"] = []
    path.write_text(json.dumps(tree))
    with pytest.raises(ModelError, match=r"its first ids are not <pad> <unk> <s> </s>"):
        Tokenizer.load(path)


PROGRAM = """
import hashlib, os, sys
sys.path[:0] = [{package!r}]
from heedful.config import TokenizerConfig
from heedful.data.tokenizer import Tokenizer
rare = ["q quiz % ¼ unique{{}}".format(n) for n in range(40)]
lines = rare + [f"the cat number {{n % 97}} sees tea and mèo {{n * n % 89}}" for n in range(800)]
for kind in ("word", "character", "bpe", "unigram"):
    tokenizer = Tokenizer.train(iter(lines), TokenizerConfig(kind=kind, vocab_size=400))
    print(hashlib.sha256(tokenizer.to_json().encode()).hexdigest())
if os.fork():
    os.wait()
else:  # a child of a process that has used several threads
    tokenizer.encode_all(lines)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_training_is_reproducible_and_forking_prints_no_warning() -> None:
    program = PROGRAM.format(package=str(Path(heedful.__file__).parent.parent))
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        environment.pop("TOKENIZERS_PARALLELISM", None)
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == ""
        outputs.add(done.stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_very_long_line_is_encoded(kind: str) -> None:
    tokenizer = trained(kind)
    line = "the cats " * 50_000 if kind == "word" else "the cats " * 20_000
    ids = tokenizer.encode(line)
    assert max(tokenizer.word_ids(ids)) == len(line.split()) - 1
    solid = "x" * 100_000
    assert len(tokenizer.word_texts(tokenizer.encode(solid))) == 1


def test_the_users_setting_of_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    trained("word").encode_all(["the cat"])
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "unigram"])
def test_a_tokenizer_knows_whether_it_lowercases(kind: str) -> None:
    assert [trained(kind, lowercase).lowercases for lowercase in (False, True)] == [False, True]
