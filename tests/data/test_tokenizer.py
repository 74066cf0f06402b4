"""Tokenisers: nothing lost on the way there and back, words found again, special names only text."""

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
from heedful.data.readers import TextPair
from heedful.data.tokenizer import END, NO_WORD, PAD, SPECIALS, START, UNK, Tokenizer, learn_both
from heedful.errors import ModelError

LINES = [
    "the black cat sees the cats, don't it?",
    "Con mèo đen thấy 12 con mèo.",
    "le chat noir voit <s> les chats </s>",
    "a<s>b a<s>b a<s>b </s></s> <pad> <unk>",
    "日本語 の テキスト  and\ttabs\u3000too",
] * 3
KINDS = ("word", "character", "bpe", "unigram")
PIECES = ("bpe", "unigram")


@cache
def learnt(kind: str, lowercase: bool = False, size: int = 400) -> Tokenizer:
    config = TokenizerConfig.model_validate({"kind": kind, "lowercase": lowercase, "size": size})
    return Tokenizer.learn(LINES, config)


typed = st.one_of(
    st.text(),
    st.text("abc ▁Ġ<s>/\t\u3000\x1c\x85\u200b\ufeff\u0301é日", max_size=30),
    st.lists(st.sampled_from([*SPECIALS, "the", "mèo", " ", "  ", "0x41", "<0x41>", "👩‍👩‍👧"])).map("".join),
)
few = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("kind", PIECES)
@few
@given(typed)
def test_pieces_write_what_was_typed(kind: str, line: str) -> None:
    tokenizer = learnt(kind)
    ids = tokenizer.encode(line)
    assert ids[-1] == END
    assert min(ids[:-1], default=4) >= 4, "nothing is unknown and nothing special"
    assert tokenizer.decode(ids) == line
    assert tokenizer.encode_all([line, "the cat"]) == [ids, tokenizer.encode("the cat")]


@few
@given(typed)
def test_characters_write_what_was_typed_where_they_are_known(line: str) -> None:
    tokenizer = learnt("character")
    ids = tokenizer.encode(line)
    known = set("".join(LINES))
    wanted = [" " if c.isspace() else c if c in known else "<unk>" for c in line]
    assert tokenizer.decode(ids) == "".join(wanted)
    assert len(ids) == len(line) + 1


@few
@given(typed)
def test_words_write_what_was_typed_where_they_are_known(line: str) -> None:
    tokenizer = learnt("word")
    known = set(" ".join(LINES).split())
    wanted = [word if word in known else "<unk>" for word in line.split()]
    assert tokenizer.decode(tokenizer.encode(line)) == " ".join(wanted)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@few
@given(typed)
def test_every_token_knows_its_word(kind: str, lowercase: bool, line: str) -> None:
    tokenizer = learnt(kind, lowercase)
    ids = tokenizer.encode(line)
    *words, last = tokenizer.words(ids)
    assert last == NO_WORD
    assert words == sorted(words)
    assert len(words) == len(ids) - 1
    assert sorted(set(words) - {NO_WORD}) == list(range(len(line.split())))
    texts = tokenizer.word_texts(ids)
    assert len(texts) == len(line.split())
    if kind in PIECES and not lowercase:
        assert texts == line.split()
        for number, text in enumerate(texts):  # the pieces of a word write that word
            own = [i for i, word in zip(ids, words, strict=False) if word == number]
            assert tokenizer.decode(own).strip() == text


@pytest.mark.parametrize("kind", KINDS)
@few
@given(st.lists(st.integers(0, 450)))
def test_anything_a_model_writes_can_be_read(kind: str, ids: list[int]) -> None:
    tokenizer = learnt(kind)
    assert len(tokenizer.tokens(ids)) == len(tokenizer.words(ids)) == len(ids)
    assert len(tokenizer.word_texts(ids)) == max(tokenizer.words(ids), default=NO_WORD) + 1
    assert isinstance(tokenizer.decode(ids), str)
    for i, word in zip(ids, tokenizer.words(ids), strict=True):
        assert word == NO_WORD or i not in (PAD, START, END)


@pytest.mark.parametrize("kind", KINDS)
def test_a_special_name_is_only_text(kind: str) -> None:
    tokenizer = learnt(kind)
    assert tokenizer.tokens(range(4)) == list(SPECIALS)
    for line in ("</s>", "a <s> b", "a<s>b", " </s>", "les </s></s>"):
        assert not set(tokenizer.encode(line)[:-1]) & {PAD, START, END}
    assert tokenizer.decode(tokenizer.encode("les chats </s>")) == "les chats </s>", "learnt as a word"


def test_pieces_are_shown_so_that_people_can_read_them() -> None:
    tokenizer = learnt("bpe", size=300)
    assert tokenizer.tokens(tokenizer.encode("mè ß"))[-3:] == ["<C3>", "<9F>", "</s>"]
    assert tokenizer.tokens(tokenizer.encode("the"))[0].startswith("▁")
    assert tokenizer.decode([UNK, END]) == "<unk>"
    characters = learnt("character")
    assert characters.tokens(characters.encode("a b")) == ["a", "▁", "b", "</s>"]


def test_pieces_of_one_word_stay_together_and_punctuation_apart() -> None:
    tokenizer = Tokenizer.learn(["cats. cats, cats! 12cats"] * 50, TokenizerConfig(kind="bpe", size=500))
    assert tokenizer.tokens(tokenizer.encode("cats. 12cats")) == ["▁cats", ".", "▁12", "cats", "</s>"]
    assert tokenizer.words(tokenizer.encode("cats. 12cats")) == [0, 0, 1, 1, NO_WORD]


def test_capitals_are_kept_or_lost_as_asked() -> None:
    for kind in KINDS:
        lower = learnt(kind, lowercase=True)
        assert lower.decode(lower.encode("THE Cat".replace("C", "c"))) in ("the cat", "the <unk>")
        assert lower.encode("THE") == lower.encode("the")
        assert learnt(kind).encode("THE") != learnt(kind).encode("the")


def test_a_vocabulary_is_as_small_as_asked() -> None:
    lines = ["a b c", "a b", "a"]
    assert len(Tokenizer.learn(lines, TokenizerConfig(size=6))) == 6
    assert len(Tokenizer.learn(lines, TokenizerConfig(min_count=2))) == 6
    assert len(Tokenizer.learn(lines, TokenizerConfig(kind="character", size=6))) == 6
    assert len(Tokenizer.learn(LINES, TokenizerConfig(kind="bpe", size=300))) == 300
    assert len(Tokenizer.learn(LINES * 20, TokenizerConfig(kind="unigram", size=300))) <= 300
    rare = Tokenizer.learn(LINES, TokenizerConfig(kind="bpe", size=2_000, min_count=10))
    assert len(rare) < len(learnt("bpe", size=2_000))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_learn_from_gives_the_smallest_vocabulary(kind: str) -> None:
    for lines in ([], [""], ["   "]):
        tokenizer = Tokenizer.learn(lines, TokenizerConfig.model_validate({"kind": kind}))
        assert tokenizer.encode("") == [END]
        if kind in PIECES:
            assert tokenizer.decode(tokenizer.encode("anything ▁")) == "anything ▁"


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"kind": "bpe", "size": 259}, "bpe and unigram need 300 or more"),
        ({"target_kind": "unigram", "size": 259}, "bpe and unigram need 300 or more"),
        ({"size": 4}, "at least 5"),
        ({"shared": True, "target_kind": "bpe"}, 'needs one kind, not "word" and "bpe"'),
        ({"shared": True, "decompose": True}, "shared must be false"),
        ({"kind": "wrod"}, "kind"),
    ],
)
def test_settings_that_cannot_be_are_refused(given_: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        TokenizerConfig.model_validate(given_)


def test_both_sides_share_a_vocabulary_or_have_their_own() -> None:
    pairs = [TextPair("cat", "m è o"), TextPair("tea", "t r à")]
    source, target = learn_both(pairs, TokenizerConfig(shared=True))
    assert source is target
    assert len(source) == 4 + 2 + 6
    source, target = learn_both(pairs, TokenizerConfig(kind="character", target_kind="word"))
    assert source.tokens(source.encode("tea")) == ["t", "e", "a", "</s>"]
    assert target.tokens(target.encode("t r à")) == ["t", "r", "à", "</s>"]
    assert (source.kind, target.kind) == ("character", "word")


def test_sources_are_taken_apart_and_targets_stay_whole() -> None:
    pairs = [TextPair("\ud55c\uae00", "\u00e9 \ud55c"), TextPair("\u00e9", "a")]  # composed
    config = TokenizerConfig(kind="character", target_kind="word", decompose=True)
    source, target = learn_both(pairs, config)
    apart = ["\u1112", "\u1161", "\u11ab", "\u1100", "\u1173", "\u11af", "</s>"]
    assert source.tokens(source.encode("\ud55c\uae00")) == apart
    assert source.tokens(source.encode("\uae4c"))[1:] == ["\u1161", "</s>"]  # its vowel is known from another
    assert source.words(source.encode("\ud55c \u00e9")) == [0, 0, 0, 1, 1, 1, NO_WORD]
    assert target.decode(target.encode("\u00e9 \ud55c")) == "\u00e9 \ud55c"


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokeniser_reads_back_as_saved(kind: str, tmp_path: Path) -> None:
    tokenizer = learnt(kind, lowercase=True)
    tokenizer.save(tmp_path / "t.json")
    again = Tokenizer.load(tmp_path / "t.json")
    assert again.to_json() == tokenizer.to_json()
    assert (again.kind, len(again)) == (tokenizer.kind, len(tokenizer))
    for line in [*LINES, "Something </s> else"]:
        assert again.encode(line) == tokenizer.encode(line)
        assert again.words(again.encode(line)) == tokenizer.words(tokenizer.encode(line))


def test_a_file_that_is_no_tokeniser_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(ModelError, match=r"t.json: not a tokeniser"):
        Tokenizer.load(path)
    path.write_text("{}")
    with pytest.raises(ModelError, match=r"t.json: not a tokeniser"):
        Tokenizer.load(path)
    tree = json.loads(learnt("bpe").to_json())
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
    tokenizer = Tokenizer.learn(iter(lines), TokenizerConfig(kind=kind, size=400))
    print(hashlib.sha256(tokenizer.to_json().encode()).hexdigest())
if os.fork():
    os.wait()
else:  # a child of a process that has used several threads
    tokenizer.encode_all(lines)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="asks what a fork says")
def test_a_vocabulary_is_the_same_in_every_process_and_forking_is_silent() -> None:
    program = PROGRAM.format(package=str(Path(heedful.__file__).parent.parent))
    seen = set()
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
        seen.add(done.stdout)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_very_long_line_is_no_trouble(kind: str) -> None:
    tokenizer = learnt(kind)
    line = "the cats " * 50_000 if kind == "word" else "the cats " * 20_000
    ids = tokenizer.encode(line)
    assert max(tokenizer.words(ids)) == len(line.split()) - 1
    solid = "x" * 100_000
    assert len(tokenizer.word_texts(tokenizer.encode(solid))) == 1


def test_the_users_word_about_threads_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    learnt("word").encode_all(["the cat"])
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"


@pytest.mark.parametrize("kind", ["word", "character", "bpe", "unigram"])
def test_it_says_whether_it_knows_capitals(kind: str) -> None:
    assert [learnt(kind, lowercase).small for lowercase in (False, True)] == [False, True]
