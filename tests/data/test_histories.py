"""Histories, the lessons of an epoch, and the catalogue that a model folder keeps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from heedful.data.catalogue import FILE, Catalogue
from heedful.data.histories import Histories, HistoryBatch, Lessons, Strangers, generator
from heedful.errors import DataError, ModelError

ITEMS = 40


def some(users: int = 12) -> Histories:
    rng = np.random.default_rng(1)
    rows = [rng.permutation(ITEMS)[: 1 + 2 * user] for user in range(users)]
    owners = np.repeat(np.arange(users), [len(row) for row in rows])
    return Histories.of_pairs(owners, np.concatenate(rows), users)


def epoch(lessons: Lessons, number: int) -> list[HistoryBatch]:
    return [lessons.batch(number, at, slots) for at, slots in enumerate(lessons.plan(number))]


@pytest.mark.parametrize("groups", [0, 3])
def test_every_item_of_every_history_is_a_positive_once(groups: int) -> None:
    histories = some()
    lessons = Lessons(histories, ITEMS, 10, 4, seed=1, groups=groups)
    taken: Counter[tuple[frozenset[int], int]] = Counter()
    for batch in epoch(lessons, 1):
        assert batch.labels is not None
        assert float(batch.labels.mean()) == pytest.approx(0.2)
        for at in range(batch.entries):
            history, targets = (set(part.tolist()) for part in batch.entry(at))
            mine = batch.part(at, at + 1)
            assert mine.labels is not None
            positives = mine.targets[mine.labels == 1].tolist()
            whole = history | set(positives)
            if groups:
                assert not history & set(positives)  # what items say of one another knows no target
            assert not (targets - set(positives)) & whole
            taken.update((frozenset(whole), item) for item in positives)
    most = [user for user in range(len(histories)) if not groups or len(histories.of(user)) > 1]
    wanted = {(frozenset(histories.of(u).tolist()), i) for u in most for i in histories.of(u).tolist()}
    assert set(taken) == wanted
    assert set(taken.values()) == {1}


def test_batches_are_of_about_one_size() -> None:
    lessons = Lessons(some(), ITEMS, 10, 4, seed=1)
    sizes = [len(batch.targets) for batch in epoch(lessons, 1)]
    assert max(sizes) <= 50
    assert len(sizes) < 25


def test_the_order_follows_from_seed_and_epoch() -> None:
    one, other = (Lessons(some(), ITEMS, 10, 4, seed=1) for _ in range(2))
    first = [batch.targets.tolist() for batch in epoch(one, 1)]
    assert first == [batch.targets.tolist() for batch in epoch(other, 1)]
    assert first != [batch.targets.tolist() for batch in epoch(other, 2)]
    assert first != [b.targets.tolist() for b in epoch(Lessons(some(), ITEMS, 10, 4, seed=2), 1)]


def test_strangers_are_drawn_evenly_from_what_was_not_taken() -> None:
    histories = Histories.of_pairs(np.array([0, 0, 1]), np.array([0, 2, 3]), 2)
    strangers = Strangers(histories, 4)
    drawn = strangers.draw(np.repeat([0, 1], 3000), generator("test"))
    counts = [np.bincount(part, minlength=4) for part in (drawn[:3000], drawn[3000:])]
    assert [np.flatnonzero(part).tolist() for part in counts] == [[1, 3], [0, 1, 2]]
    assert counts[0][[1, 3]].min() > 1350
    assert counts[1][:3].min() > 850


def test_who_took_everything_is_refused() -> None:
    with pytest.raises(DataError, match="1 users took every item"):
        Strangers(Histories.of_pairs(np.array([0, 0]), np.array([0, 1]), 1), 2)


def test_a_batch_falls_into_parts() -> None:
    batch = epoch(Lessons(some(), ITEMS, 60, 2, seed=1), 1)[0]
    cut = batch.entries // 2
    parts = [batch.part(0, cut), batch.part(cut, batch.entries)]
    rejoined = [entry for part in parts for entry in map(part.entry, range(part.entries))]
    for at, (history, targets) in enumerate(rejoined):
        assert history.tolist() == batch.entry(at)[0].tolist()
        assert targets.tolist() == batch.entry(at)[1].tolist()


def catalogue() -> Catalogue:
    titles = ["Toy Story (1995)", "Matrix, The (1999)", "", "Heat (1995)", "Heat (1986)"]
    histories = Histories.of_pairs(np.array([0, 0, 1]), np.array([0, 3, 1]), 3)
    return Catalogue(["7", "8", "new"], ["a", "b", "c", "d", "e"], titles, histories)


def test_a_catalogue_is_kept_whole(tmp_path: Path) -> None:
    made = catalogue()
    made.save(tmp_path)
    found = Catalogue.load(tmp_path)
    assert (found.users, found.items, found.titles) == (made.users, made.items, made.titles)
    assert [found.histories.of(user).tolist() for user in range(3)] == [[0, 3], [1], []]
    assert found.sizes() == {"users": 3, "items": 5, "interactions": 3}


@pytest.mark.parametrize("how", ["cut", "empty", "other"])
def test_a_damaged_catalogue_is_named(tmp_path: Path, how: str) -> None:
    catalogue().save(tmp_path)
    path = tmp_path / FILE
    raw = path.read_bytes()
    path.write_bytes({"cut": raw[: len(raw) // 2], "empty": b"", "other": b"hello"}[how])
    with pytest.raises(ModelError, match=rf"{FILE}: damaged"):
        Catalogue.load(tmp_path)


def test_histories_of_items_that_are_not_there_are_damage(tmp_path: Path) -> None:
    made = catalogue()
    Catalogue(made.users, made.items[:2], made.titles[:2], made.histories).save(tmp_path)
    with pytest.raises(ModelError, match="damaged"):
        Catalogue.load(tmp_path)


@pytest.mark.parametrize(
    ("typed", "item"),
    [
        ("Toy Story (1995)", 0),
        ("toy story", 0),
        ("the  matrix", 1),
        ("Matrix, The", 1),
        ("c", 2),
        ("id:e", 4),
    ],
)
def test_items_are_found_as_people_type_them(typed: str, item: int) -> None:
    assert catalogue().item(typed) == item


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("toy stroy", 'no item is called "toy stroy"; did you mean "Toy Story \\(1995\\)"\\?'),
        ("heat", '"heat": 2 items are called so, such as Heat \\(1995\\) \\(id:d\\)'),
        ("zzzz", 'no item is called "zzzz"$'),
    ],
)
def test_an_item_that_is_not_there(typed: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        catalogue().item(typed)


def test_a_user_who_is_not_there() -> None:
    with pytest.raises(
        DataError, match=r'no user "neu"; did you mean "new"\? there are 3, such as 7, 8, new'
    ):
        catalogue().user("neu")
