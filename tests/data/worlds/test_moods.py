"""The moods world: the voting rule, fillers without information, files."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fresh_python import run_python
from heedful.data.worlds.moods import LABELS, NEGATIVE, POSITIVE, Mood, draw_moods, write
from heedful.errors import WorldError


def apply_rule(words: Sequence[str]) -> tuple[str, tuple[int, ...]]:
    """Return label and gold positions by the documented rule, from the words alone."""
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


def digest(sentences: Sequence[Mood]) -> str:
    return hashlib.sha256(repr([tuple(mood) for mood in sentences]).encode()).hexdigest()[:16]


@given(
    seed=st.integers(0, 10**9),
    classes=st.sampled_from([2, 3]),
    shortest=st.integers(5, 40),
    more=st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_the_rule_gives_label_and_gold(seed: int, classes: int, shortest: int, more: int) -> None:
    for mood in draw_moods(20, seed, classes, shortest, shortest + more):
        assert shortest <= len(mood.words) <= shortest + more
        assert (mood.label, mood.gold) == apply_rule(mood.words)
        assert mood.label in LABELS[classes]
        assert mood.gold
        assert not {"not", "never"} & {word for i, word in enumerate(mood.words) if i not in mood.gold}


def test_every_kind_of_sentence_occurs() -> None:
    for classes in (2, 3):
        drawn = list(draw_moods(2000, classes=classes))
        assert len({mood.words for mood in drawn}) == 2000
        labels = Counter(mood.label for mood in drawn)
        assert set(labels) == set(LABELS[classes])
        assert max(labels.values()) - min(labels.values()) < 200
        assert {len(mood.words) for mood in drawn} == set(range(5, 31))
        planted = {mood.words[i] for mood in drawn for i in mood.gold}
        assert planted == {*POSITIVE, *NEGATIVE, "not", "never"}
        mixed = [mood for mood in drawn if {*POSITIVE} & {*mood.words} and {*NEGATIVE} & {*mood.words}]
        assert len(mixed) > 200, "one word must not always decide"
    assert not {*POSITIVE} & {*NEGATIVE}
    assert len(POSITIVE) == len(NEGATIVE) == len({*POSITIVE}) == len({*NEGATIVE})


@pytest.mark.parametrize("classes", [2, 3])
def test_filler_carries_no_information_about_the_label(classes: int) -> None:
    """Counts of a word in two classes differ like two draws of the same chance: z**2 is about 1."""
    counts = {label: Counter[str]() for label in LABELS[classes]}
    sentences: Counter[str] = Counter()
    for mood in draw_moods(20_000, seed=3, classes=classes):
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


def test_the_same_seed_gives_the_same_sentences_in_every_process() -> None:
    first = list(draw_moods(300, seed=7))
    assert first == list(draw_moods(300, seed=7)) == list(islice(draw_moods(500, seed=7), 300))
    assert first != list(draw_moods(300, seed=8))
    code = (
        "import hashlib; from heedful.data.worlds.moods import draw_moods\n"
        "print(hashlib.sha256(repr([tuple(m) for m in draw_moods(300, seed=7)]).encode()).hexdigest()[:16])"
    )
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed).stdout.strip() == digest(first)
    assert digest(first) == "ed120237d7d83fea", "the sentences changed: note it in CHANGELOG.md and update this digest"


@pytest.mark.parametrize("classes", [2, 3])
def test_files_hold_what_is_drawn(tmp_path: Path, classes: int) -> None:
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
    assert read == list(draw_moods(60, 4, classes, 5, 12))
    readme = (out / "README.md").read_text(encoding="utf-8")
    command = f"heedful world moods --n 60 --seed 4 --classes {classes} --min-words 5 --max-words 12"
    assert f"{command} --valid 7 --test 5 --out DIR\n" in readme
    assert ("2 = positive" if classes == 3 else "1 = positive") in readme


def test_the_locale_changes_nothing(tmp_path: Path) -> None:
    code = "import sys, pathlib; from heedful.data.worlds.moods import write; write(pathlib.Path(sys.argv[1]), 30)"
    done = run_python(code, str(tmp_path / "c"), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    write(tmp_path / "here", 30)
    for path in (tmp_path / "here").iterdir():
        assert (tmp_path / "c" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0: it must be an integer of at least 1"),
        ({"n": 2.5}, "n is 2.5: it must be an integer"),
        ({"n": True}, "n is True"),
        ({"seed": -1}, "seed is -1"),
        ({"classes": 4}, r"classes is 4: it must be 2 \(negative, positive\) or 3"),
        ({"min_words": 4}, "min_words is 4: .* at least 5"),
        ({"min_words": 9, "max_words": 8}, "max_words is 8: .* at least 9"),
    ],
)
def test_wrong_arguments_are_an_error_at_the_call(options: dict[str, int], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        draw_moods(**{"n": 5, **options})


def test_too_many_sentences_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.data.worlds.moods.SUBJECTS", ("soup",))
    monkeypatch.setattr("heedful.data.worlds.moods.VERBS", ("was",))
    with pytest.raises(WorldError, match=r"n is too large: there are only about \d+ different sentences of 5 to 5"):
        list(draw_moods(10**6, max_words=5))
