"""The world of moods, and what all worlds share on disk."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.worlds import disk
from heedful.data.worlds.moods import LABELS, NEGATIVE, POSITIVE, Mood, moods, write
from heedful.errors import WorldError


def judged(words: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """The stated rule again, from the words alone."""
    votes, gold = 0, []
    for i, word in enumerate(words):
        if word not in (*POSITIVE, *NEGATIVE):
            continue
        vote = 1 if word in POSITIVE else -1
        if i and words[i - 1] in ("not", "never"):
            vote = -vote
            gold.append(i - 1)
        votes += vote
        gold.append(i)
    return ("neutral" if not votes else "positive" if votes > 0 else "negative"), tuple(gold)


def digest(drawn: Sequence[Mood]) -> str:
    return hashlib.sha256(repr([tuple(mood) for mood in drawn]).encode()).hexdigest()[:16]


def python(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that sees the same packages."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, check=False
    )


@given(
    seed=st.integers(0, 10**9),
    classes=st.sampled_from([2, 3]),
    shortest=st.integers(5, 40),
    more=st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_the_rule_gives_label_and_gold(seed: int, classes: int, shortest: int, more: int) -> None:
    for mood in moods(20, seed, classes, shortest, shortest + more):
        assert shortest <= len(mood.words) <= shortest + more
        assert (mood.label, mood.gold) == judged(mood.words)
        assert mood.label in LABELS[classes]
        assert mood.gold
        assert not {"not", "never"} & {word for i, word in enumerate(mood.words) if i not in mood.gold}


def test_every_kind_of_sentence_occurs() -> None:
    for classes in (2, 3):
        drawn = list(moods(2000, classes=classes))
        assert len({mood.words for mood in drawn}) == 2000
        labels = Counter(mood.label for mood in drawn)
        assert set(labels) == set(LABELS[classes])
        assert max(labels.values()) - min(labels.values()) < 200
        assert {len(mood.words) for mood in drawn} == set(range(5, 31))
        planted = {mood.words[i] for mood in drawn for i in mood.gold}
        assert planted == {*POSITIVE, *NEGATIVE, "not", "never"}
        mixed = [mood for mood in drawn if {*POSITIVE} & {*mood.words} and {*NEGATIVE} & {*mood.words}]
        assert len(mixed) > 200, "a single word must not always decide"
    assert not {*POSITIVE} & {*NEGATIVE}
    assert len(POSITIVE) == len(NEGATIVE) == len({*POSITIVE}) == len({*NEGATIVE})


@pytest.mark.parametrize("classes", [2, 3])
def test_filler_does_not_tell_the_label(classes: int) -> None:
    """Counts of a word in two classes differ like two draws of the same chance: z**2 is about 1."""
    counts = {label: Counter[str]() for label in LABELS[classes]}
    sentences: Counter[str] = Counter()
    for mood in moods(20_000, seed=3, classes=classes):
        fillers = {word for i, word in enumerate(mood.words) if i not in mood.gold}
        shape = {f"length {len(mood.words)}", f"gold {len(mood.gold)}", f"first gold {mood.gold[0]}"}
        counts[mood.label].update(fillers | shape)
        sentences[mood.label] += 1
    for one, other in combinations(LABELS[classes], 2):
        size, rest = sentences[one], sentences[other]
        squares = []
        for word in counts[one] | counts[other]:
            a, b = counts[one][word], counts[other][word]
            share = (a + b) / (size + rest)
            if a + b > 50 and share < 0.99:
                spread = share * (1 - share) * (1 / size + 1 / rest)
                squares.append((a / size - b / rest) ** 2 / spread)
        assert len(squares) > 100
        assert max(squares) < 25  # chance exceeds it once in a million words
        assert sum(squares) / len(squares) < 1.6


def test_same_seed_same_sentences_in_any_process() -> None:
    first = list(moods(300, seed=7))
    assert first == list(moods(300, seed=7)) == list(islice(moods(500, seed=7), 300))
    assert first != list(moods(300, seed=8))
    code = (
        "import hashlib; from heedful.data.worlds.moods import moods\n"
        "print(hashlib.sha256(repr([tuple(m) for m in moods(300, seed=7)]).encode()).hexdigest()[:16])"
    )
    for hash_seed in ("1", "2"):
        assert python(code, PYTHONHASHSEED=hash_seed).stdout.strip() == digest(first)
    assert digest(first) == "ed120237d7d83fea", "the sentences changed: say so in CHANGELOG.md and renew this"


@pytest.mark.parametrize("classes", [2, 3])
def test_files_can_be_read_back(tmp_path: Path, classes: int) -> None:
    out = tmp_path / "new" / "folder"
    sizes = write(out, 60, 4, classes=classes, max_words=12, valid=7, test=5)
    assert sizes == {"train": 48, "valid": 7, "test": 5}
    assert {path.name for path in out.iterdir()} == {
        "README.md",
        *(f"{split}.{kind}" for split in sizes for kind in ("tsv", "gold")),
    }
    read = []
    for split, size in sizes.items():
        rows = (out / f"{split}.tsv").read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        golds = (out / f"{split}.gold").read_bytes().decode("utf-8").removesuffix("\n").split("\n")
        assert len(rows) == len(golds) == size
        for row, gold in zip(rows, golds, strict=True):
            number, text = row.split("\t")
            places = tuple(int(place) for place in gold.split(" "))
            read.append(Mood(tuple(text.split(" ")), LABELS[classes][int(number)], places))
    assert read == list(moods(60, 4, classes, 5, 12))
    readme = (out / "README.md").read_text(encoding="utf-8")
    command = f"heedful world moods --n 60 --seed 4 --classes {classes} --min-words 5 --max-words 12"
    assert f"{command} --valid 7 --test 5 --out DIR\n" in readme
    assert ("2 = positive" if classes == 3 else "1 = positive") in readme


def test_a_poor_locale_changes_nothing(tmp_path: Path) -> None:
    code = "from heedful.data.worlds.moods import *; import sys; write(Path(sys.argv[1]), 30)"
    done = python(code, str(tmp_path / "c"), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    write(tmp_path / "here", 30)
    for path in (tmp_path / "here").iterdir():
        assert (tmp_path / "c" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0: it must be a whole number of at least 1"),
        ({"n": 2.5}, "n is 2.5: it must be a whole number"),
        ({"n": True}, "n is True"),
        ({"seed": -1}, "seed is -1"),
        ({"classes": 4}, r"classes is 4: it must be 2 \(negative, positive\) or 3"),
        ({"min_words": 4}, "min_words is 4: .* at least 5"),
        ({"min_words": 9, "max_words": 8}, "max_words is 8: .* at least 9"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options: dict[str, int], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        moods(**{"n": 5, **options})


def test_more_sentences_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.data.worlds.moods.SUBJECTS", ("soup",))
    monkeypatch.setattr("heedful.data.worlds.moods.VERBS", ("was",))
    with pytest.raises(
        WorldError, match=r"n is too large: only about \d+ different sentences of 5 to 5 words"
    ):
        list(moods(10**6, max_words=5))


# --- disk --------------------------------------------------------------------------------------------------


def test_split_sizes() -> None:
    assert disk.split_sizes(3, None, None) == {"train": 1, "valid": 1, "test": 1}
    assert disk.split_sizes(19) == {"train": 17, "valid": 1, "test": 1}
    assert disk.split_sizes(50_000) == {"train": 48_000, "valid": 1000, "test": 1000}
    assert disk.split_sizes(10, 0, 4) == {"train": 6, "valid": 0, "test": 4}
    with pytest.raises(WorldError, match=r"n is 2: .* at least 3"):
        disk.split_sizes(2)
    with pytest.raises(
        WorldError, match=r"valid=6 and test=4 leave nothing .* n is 10, it must be at least 11"
    ):
        disk.split_sizes(10, 6, 4)
    with pytest.raises(WorldError, match="valid is -1"):
        disk.split_sizes(10, -1)


def test_text_is_utf8_with_plain_newlines(tmp_path: Path) -> None:
    disk.write_text(tmp_path / "deep" / "er" / "file.txt", ["Soufflé", "nhiệt tình", ""])
    assert (tmp_path / "deep" / "er" / "file.txt").read_bytes() == "Soufflé\nnhiệt tình\n\n".encode()
    assert [path.name for path in (tmp_path / "deep" / "er").iterdir()] == ["file.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    disk.write_text(path, ["old"])

    def lines() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        disk.write_text(path, lines())
    assert path.read_text(encoding="utf-8") == "old\n"
    assert [found.name for found in tmp_path.iterdir()] == ["file.txt"]


def test_a_killed_run_leaves_no_half_file(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib\n"
        "from heedful.data.worlds.disk import write_text\n"
        "def lines():\n"
        "    for i in range(200_000):\n"
        "        yield 'x' * 50\n"
        "    os._exit(9)\n"
        "write_text(pathlib.Path(sys.argv[1]), lines())"
    )
    assert python(code, str(tmp_path / "file.txt")).returncode == 9
    assert [found.name for found in tmp_path.iterdir()] == ["file.tmp.txt"]


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(WorldError, match=r"is a file"):
        write(tmp_path / "file", 10)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "README.md").write_text("# My thesis\n", encoding="utf-8")
    with pytest.raises(
        WorldError, match=r"README.md that is not of the world moods .'# My thesis'.: give another"
    ):
        write(mine, 10)
    assert [path.name for path in mine.iterdir()] == ["README.md"]
    assert write(tmp_path / "twice", 10) == write(tmp_path / "twice", 10)
