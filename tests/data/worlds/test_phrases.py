"""The phrases world: lengths, variety, splits and files."""

import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fresh_python import run_python
from heedful.data.worlds.phrases import DIRECTIONS, Pair, draw_phrases, draw_splits, write
from heedful.data.worlds.phrases import lexicon as lex
from heedful.data.worlds.phrases.sentences import MAX_CLAUSE, MIN_CLAUSE, sentences
from heedful.errors import WorldError

WORDS = lex.lexicon()
in_all_directions = pytest.mark.parametrize("languages", DIRECTIONS)


@given(
    languages=st.sampled_from(DIRECTIONS),
    seed=st.integers(0, 10**9),
    shortest=st.integers(3, 60),
    more=st.integers(0, 57),
)
@settings(max_examples=60, deadline=None)
def test_lengths_stay_in_range_and_draws_repeat(languages: str, seed: int, shortest: int, more: int) -> None:
    longest = min(60, shortest + more)
    pairs = list(draw_phrases(20, seed, languages, shortest, longest))
    assert all(shortest <= len(pair.source) <= longest for pair in pairs)
    assert all(word == word.lower() and word and " " not in word for pair in pairs for word in pair[0] + pair[1])
    assert pairs == list(draw_phrases(20, seed, languages, shortest, longest))
    assert pairs[:7] == list(draw_phrases(7, seed, languages, shortest, longest))


@in_all_directions
def test_all_lengths_are_about_equally_frequent(languages: str) -> None:
    counts = Counter(len(pair.source) for pair in draw_phrases(58 * 40, 2, languages, 3, 60))
    assert set(counts) == set(range(3, 61))
    assert min(counts.values()) > 10  # of 40 expected; the standard deviation is 6
    assert max(counts.values()) < 70
    stock = sentences(*languages.split("-"))
    assert all(len(plans) >= 10 for plans in stock.first[MIN_CLAUSE : MAX_CLAUSE + 1])
    assert all(plans for later in stock.later for plans in later[MIN_CLAUSE : MAX_CLAUSE + 1])


def test_long_sentences_are_varied() -> None:
    pairs = list(draw_phrases(500, 5, "en-fr", 50, 60))
    assert min(len(set(pair.source)) for pair in pairs) > 25
    runs = [list(zip(*(pair.source[i:] for i in range(5)), strict=False)) for pair in pairs]
    assert sum(len(set(run)) < len(run) for run in runs) < 10, "five words in a row are hardly ever repeated"
    assert len({pair.source for pair in draw_phrases(2000, 5, "en-fr", 12, 60)}) == 2000


def test_clauses_are_varied() -> None:
    pairs = list(draw_phrases(1000, 5, "en-fr", 8, 8))
    assert len({pair.links for pair in pairs}) > 200
    assert len({pair.source for pair in pairs}) > 990


def test_every_word_occurs() -> None:
    for language, other, known in (("en", "fr", 600), ("fr", "vi", 1000), ("vi", "en", 400)):
        words = {word for pair in draw_phrases(12_000, 1, f"{language}-{other}") for word in pair.source}
        assert len(words) > known
        if language == "en":
            assert words >= {form for noun in WORDS.nouns for form in noun.en}
            assert words >= {word.en for word in WORDS.adjectives}
            assert all(words & set(verb.en) for verb in WORDS.verbs)


def test_seeds_and_directions_differ() -> None:
    draws = {tuple(draw_phrases(5, seed, languages)) for seed in range(3) for languages in DIRECTIONS}
    assert len(draws) == 18


@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_other_processes_and_locales_write_the_same(hash_seed: str, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from heedful.data.worlds.phrases import write;"
        f"write(Path({str(tmp_path / 'there')!r}), 200, 9, languages='vi-fr', max_words=30)"
    )
    done = run_python(code, PYTHONHASHSEED=hash_seed, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    write(tmp_path / "here", 200, 9, languages="vi-fr", max_words=30)
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "there").iterdir())
    assert len(names) == 10
    for name in names:
        data = (tmp_path / "here" / name).read_bytes()
        assert data == (tmp_path / "there" / name).read_bytes()
        assert b"\r" not in data


def read_split(folder: Path, split: str, languages: str) -> list[Pair]:
    """Read the pairs of a split from its files."""
    texts = [(folder / f"{split}.{end}").read_text("utf-8") for end in (*languages.split("-"), "align")]
    rows = zip(*(text.splitlines() for text in texts), strict=True)
    return [
        Pair(
            tuple(a.split(" ")),
            tuple(b.split(" ")),
            tuple((int(i), int(j)) for i, j in (link.split("-") for link in c.split(" "))),
        )
        for a, b, c in rows
    ]


@pytest.mark.parametrize("languages", ["en-fr", "vi-en"])
def test_files_hold_what_is_drawn(languages: str, tmp_path: Path) -> None:
    counts = write(tmp_path, 3420, 5, languages=languages, max_words=5, valid=120, test=300)
    assert counts == {"train": 3000, "valid": 120, "test": 300}
    files = {split: read_split(tmp_path, split, languages) for split in counts}
    assert {split: len(pairs) for split, pairs in files.items()} == counts
    held_out = {pair.source for split in ("test", "valid") for pair in files[split]}
    assert len(held_out) == 420, "no sentence twice"
    assert not held_out & {pair.source for pair in files["train"]}
    stream = draw_phrases(10**6, 5, languages, 3, 5)
    taken: set[tuple[str, ...]] = set()
    skipped = 0
    for split in ("test", "valid", "train"):
        for pair in files[split]:
            while (drawn := next(stream)) != pair:
                assert drawn.source in taken
                skipped += 1
            if split != "train":
                taken.add(pair.source)
    assert skipped, "else the splits were disjoint by chance"
    assert draw_splits(counts, 5, languages=languages, max_words=5) == files
    assert not list(tmp_path.glob("*.tmp"))


def test_the_readme_has_the_command_that_generates_it_again(tmp_path: Path) -> None:
    write(tmp_path, 12, 3, languages="fr-vi", max_words=9)
    readme = (tmp_path / "README.md").read_text("utf-8")
    assert "heedful world phrases --n 12 --seed 3 --languages fr-vi --min-words 3 --max-words 9" in readme
    assert "train.align" in readme
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert write(tmp_path, 12, 3, languages="fr-vi", max_words=9) == {"train": 10, "valid": 1, "test": 1}
    assert first == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_too_few_sentences_is_an_error_not_a_hang(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r"valid=100000.*longer"):
        write(tmp_path, 110_000, languages="vi-en", max_words=3, valid=100_000, test=9)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.align", "test.en", "test.vi"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"min_words": 2}, "min_words is 2"),
        ({"min_words": 9, "max_words": 8}, "max_words is 8"),
        ({"max_words": 61}, "max_words is 61"),
        ({"languages": "en-de"}, r'no such languages: "en-de"; did you mean "en-..".*'),
        ({"languages": "en-en"}, "known: en-fr, en-vi, fr-en, fr-vi, vi-en, vi-fr"),
        ({"languages": "EN-FR"}, 'did you mean "en-fr"'),
    ],
    ids=str,
)
def test_wrong_arguments_are_an_error_at_the_call(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=message):
        draw_phrases(**{"n": 5, **options})
    with pytest.raises(WorldError, match=message):
        write(tmp_path / "new", **{"n": 5, **options})
    assert not (tmp_path / "new").exists()
    with pytest.raises(WorldError, match="valid is -1"):
        write(tmp_path / "new", 5, valid=-1)


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# my notes\n")
    with pytest.raises(WorldError, match="choose another folder"):
        write(tmp_path, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def test_drawing_a_pair_costs_little_more_than_splitting_it() -> None:
    """Measured against other work in the same process, so that the speed of the machine does not matter."""
    next(draw_phrases(1, 1, "en-fr", 3, 21))  # builds the stock of plans

    def seconds(work: Callable[[], object]) -> float:
        times = []
        for _ in range(3):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return min(times)

    pairs = list(draw_phrases(3000, 1, "en-fr", 3, 21))
    lines = [f"{' '.join(p.source)}\t{' '.join(p.target)}\t{p.links}" for p in pairs]
    splitting = seconds(lambda: [re.findall(r"\w+", line) for line in lines])
    drawing = seconds(lambda: list(draw_phrases(3000, 1, "en-fr", 3, 21)))
    assert drawing < 20 * splitting
