"""The tastes world: planted gold items, the files of a leave-one-out benchmark."""

import hashlib
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fresh_python import run_python
from heedful.data.worlds.tastes import GENRES, Tastes, draw_tastes, write
from heedful.errors import WorldError


def digest(world: Tastes) -> str:
    content = (world.titles, world.genres, [tuple(user) for user in world.users])
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


@given(
    seed=st.integers(0, 10**9),
    genres=st.integers(2, len(GENRES)),
    genre_items=st.integers(4, 30),
    extra=st.integers(0, 7),
    negatives=st.integers(1, 20),
)
@settings(max_examples=60, deadline=None)
def test_gold_items_share_the_genre_of_the_positive(
    seed: int, genres: int, genre_items: int, extra: int, negatives: int
) -> None:
    items = genres * genre_items + extra
    try:
        world = draw_tastes(15, seed, items, genres, negatives)
    except WorldError as error:
        assert "negatives is" in str(error)  # noqa: PT017
        assert items - 3 * (genre_items + 1) - 4 - extra < negatives
        return
    assert len(world.titles) == len(set(world.titles)) == len(world.genres) == items
    assert set(world.genres) == set(range(genres))
    assert [user.user for user in world.users] == list(range(15))
    for user in world.users:
        history_genres = [world.genres[item] for item in user.history]
        target_genre = world.genres[user.positive]
        assert user.gold == tuple(i for i, genre in enumerate(history_genres) if genre == target_genre)
        assert len({*user.history, user.positive, *user.negatives}) == len(user.history) + 1 + negatives
        assert all(0 <= item < items for item in (*user.history, user.positive, *user.negatives))
        counts = Counter(history_genres)
        liked = {genre for genre, count in counts.items() if count > 1}
        assert target_genre in liked
        assert 1 <= len(liked) <= 3
        assert min(counts[genre] for genre in liked) >= 3
        # Counting genres ranks the positive alone first.
        assert all(counts[world.genres[item]] <= 1 < counts[target_genre] for item in user.negatives)


def test_users_and_items_are_varied() -> None:
    world = draw_tastes(1500)
    genre_counts = [Counter(world.genres[item] for item in user.history) for user in world.users]
    n_tastes = Counter(sum(count > 1 for count in counts.values()) for counts in genre_counts)
    noise = Counter(sum(count == 1 for count in counts.values()) for counts in genre_counts)
    assert set(n_tastes) == {1, 2, 3}
    assert min(n_tastes.values()) > 400
    assert set(noise) == {0, 1, 2, 3, 4}
    assert max(Counter(world.genres).values()) == 25
    positives = Counter(world.genres[user.positive] for user in world.users)
    assert set(positives) == set(range(12))
    assert max(positives.values()) < 1.6 * min(positives.values())
    first = sum(0 in user.gold for user in world.users) / 1500
    last = sum(len(user.history) - 1 in user.gold for user in world.users) / 1500
    assert abs(first - last) < 0.06, "the position in the history must not tell the gold items"
    # Within a genre no item is more popular: 1500 users take each of 300 items about 70 times.
    taken = Counter(item for user in world.users for item in (*user.history, user.positive))
    assert max(taken.values()) < 2.5 * min(taken.values())
    for title, genre in zip(world.titles, world.genres, strict=True):
        assert title.split()[2] in list(GENRES.values())[genre].split()


def test_the_same_seed_gives_the_same_world_in_every_process() -> None:
    world = draw_tastes(80, seed=5)
    assert world == draw_tastes(80, seed=5)
    assert world.users == draw_tastes(120, seed=5).users[:80]
    assert world.users != draw_tastes(80, seed=6).users
    code = (
        "import hashlib; from heedful.data.worlds.tastes import draw_tastes\n"
        "w = draw_tastes(80, seed=5); content = (w.titles, w.genres, [tuple(u) for u in w.users])\n"
        "print(hashlib.sha256(repr(content).encode()).hexdigest()[:16])"
    )
    for hash_seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=hash_seed).stdout.strip() == digest(world)
    assert digest(world) == "ab11be6c03525748", "the world changed: note it in CHANGELOG.md and update this digest"


def lines(path: Path) -> list[str]:
    return path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")


def test_files_have_the_formats_of_the_benchmark(tmp_path: Path) -> None:
    counts = write(tmp_path, 40, 2, items=330, genres=13)
    world = draw_tastes(40, 2, 330, 13)
    assert {path.name for path in tmp_path.iterdir()} == {
        *("README.md", "items.tsv", "train.tsv", "test.rating", "test.negative", "gold.tsv")
    }
    header, *items = lines(tmp_path / "items.tsv")
    assert header == "ncf_item\tmovielens_id\ttitle\tgenres\tinteractions\torder_certain"
    taken = Counter(item for user in world.users for item in (*user.history, user.positive))
    for number, row in enumerate(items):
        genre = list(GENRES)[world.genres[number]]
        assert row.split("\t") == [
            *(str(number), str(number), world.titles[number]),
            *(genre, str(taken[number]), "1"),
        ]
    train = [tuple(map(int, row.split("\t"))) for row in lines(tmp_path / "train.tsv")]
    assert train == [(user.user, item) for user in world.users for item in user.history]
    assert counts == {"train": len(train), "test": 40}
    assert len(items) == 330
    tests, negatives, golds = (lines(tmp_path / name) for name in ("test.rating", "test.negative", "gold.tsv"))
    for user, test, negative, gold in zip(world.users, tests, negatives, golds, strict=True):
        assert test.split("\t") == [str(user.user), str(user.positive), "5", str(len(user.history))]
        pair, *candidates = negative.split("\t")
        assert pair == f"({user.user},{user.positive})"
        assert tuple(map(int, candidates)) == user.negatives
        assert len(candidates) == 99
        user_id, item_id, gold_items = gold.split("\t")
        assert (int(user_id), int(item_id)) == (user.user, user.positive)
        assert [int(item) for item in gold_items.split(" ")] == [user.history[place] for place in user.gold]
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "heedful world tastes --n 40 --seed 2 --items 330 --genres 13 --out DIR\n" in readme


def test_the_locale_changes_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from heedful.data.worlds import tastes\n"
        "tastes.write(pathlib.Path(sys.argv[1]), 10, items=400, genres=20)"
    )
    done = run_python(code, str(tmp_path / "c"), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    write(tmp_path / "here", 10, items=400, genres=20)
    for path in (tmp_path / "here").iterdir():
        assert (tmp_path / "c" / path.name).read_bytes() == path.read_bytes()
    assert "Soufflé".encode() in (tmp_path / "c" / "items.tsv").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n is 0: it must be an integer of at least 1"),
        ({"seed": -3}, "seed is -3"),
        ({"genres": 1}, "genres is 1: it must be an integer from 2 to 20"),
        ({"genres": 21}, "genres is 21"),
        ({"items": 40}, "items is 40: .* at least 48"),
        ({"negatives": 0}, "negatives is 0"),
        ({"items": 120}, "negatives is 99: 120 items in 12 genres leave 86 outside"),
    ],
)
def test_wrong_arguments_are_an_error(options: dict[str, int], message: str) -> None:
    with pytest.raises(WorldError, match=message):
        draw_tastes(**{"n": 5, **options})
