"""User-item interactions, held-out items and titles, from files or from the world "tastes".

- interactions: a table with one user and one item per row, with or without a time (data.columns);
- held-out items, in the leave-one-out format of He et al. 2017: `user<TAB>item...` (test.rating) and, in a second
  file, the negatives that each is ranked among: `(user,item)<TAB>item<TAB>item...` (test.negative).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.config import DataConfig, RatingsConfig, WorldConfig
from heedful.data.catalog import Catalog
from heedful.data.histories import Histories, Ints
from heedful.data.lines import EXCERPT_LENGTH, BadLine, BadLines, read_lines
from heedful.data.paths import locate
from heedful.data.rng import seeded_rng
from heedful.data.tables import RATING_ROLES, Row, Table
from heedful.data.worlds.tastes import draw_tastes
from heedful.errors import DataError

MIN_HISTORY = 3  # no item is held out of a shorter history
USER_AND_ITEM = re.compile(r"\((.*),(.*)\)")


class HeldOut(NamedTuple):
    """Held-out items: `items[i]` of user `users[i]` is to be ranked above the items `negatives[i]`."""

    users: Ints
    items: Ints
    negatives: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.users)

    def first(self, count: int) -> HeldOut:
        """Return the first `count` held-out items; 0: all of them."""
        return HeldOut(self.users[:count], self.items[:count], self.negatives[:count]) if count else self


class Ratings(NamedTuple):
    """A catalog with the training histories, the held-out items of each split, and notes about the files.

    `gold` maps a user to the items of the history that explain the held-out item, if they are known.
    """

    catalog: Catalog
    held_out: Mapping[str, HeldOut]
    notes: Sequence[str] = ()
    gold: Mapping[int, Ints] = {}


class _Numbering:
    """Numbers the ids of users or items in the order of their first occurrence."""

    def __init__(self, numbers: Mapping[str, int] | None = None) -> None:
        self.numbers = dict(numbers or {})

    def number(self, name: str) -> int:
        """Return the number of an id; a new id gets the next number."""
        return self.numbers.setdefault(name, len(self.numbers))

    def __len__(self) -> int:
        return len(self.numbers)


def open_ratings(data: DataConfig, base: Path) -> Ratings:
    """Return the interactions and held-out items of a recipe's section [data]."""
    if data.world is not None:
        return world_ratings(data.world)
    settings = data.ratings or RatingsConfig()
    users, items = _Numbering(), _Numbering()
    path = locate(data.train[0], base)
    table = Table(path, RATING_ROLES, data, required=2)
    pairs, notes = _read_interactions(table, data, users, items)
    if settings.hold_out == "last" and len(table.columns) < len(RATING_ROLES):
        raise DataError(f'{path}: data.ratings.hold_out = "last" needs the time, the third of data.columns')
    from_files = {
        split: _read_held_out([locate(name, base) for name in names], users, items)
        for split, names in (("valid", data.valid), ("test", data.test))
        if names
    }
    histories = Histories.from_pairs(*pairs, len(users))
    titles = _read_titles(locate(settings.titles, base), data, items) if settings.titles else {}
    held_out: dict[str, HeldOut] = {}
    for split in ("test", "valid"):
        chosen = from_files[split] if split in from_files else _choose_held_out(histories, settings.hold_out, split)
        held_out[split] = _with_negatives(chosen, histories, len(items), settings, split)
        if split == "test" and split not in from_files:  # training excludes validation items; the catalog keeps them
            histories = histories.without(held_out[split].users, held_out[split].items)
    item_titles = [titles.get(item, "") for item in items.numbers]
    return Ratings(Catalog(list(users.numbers), list(items.numbers), item_titles, histories), held_out, notes)


def read_held_out(files: Sequence[str], settings: RatingsConfig, catalog: Catalog) -> HeldOut:
    """Read held-out items for a trained model; all users and items must be in its catalog."""
    users, items = _Numbering(catalog.user_numbers), _Numbering(catalog.item_numbers)
    held_out = _read_held_out([locate(name, Path()) for name in files], users, items)
    for kind, numbering, n_known in (("user", users, len(catalog.users)), ("item", items, len(catalog.items))):
        unknown = list(numbering.numbers)[n_known:]
        if unknown:
            raise DataError(f"{files[0]}: {len(unknown):,} {kind}(s) unknown to the model, such as {unknown[0]}")
    return _with_negatives(held_out, catalog.histories, len(catalog.items), settings, "test")


def world_ratings(world: WorldConfig) -> Ratings:
    """Return the world "tastes"; the held-out items of its first users are for validation, of its last for testing."""
    generated = draw_tastes(world.train, world.seed, world.items, world.genres)
    users = generated.users
    histories = Histories.from_pairs(
        np.repeat(np.arange(len(users)), [len(user.history) for user in users]),
        np.array([item for user in users for item in user.history], dtype=np.int64),
        len(users),
    )
    item_ids = [str(item) for item in range(world.items)]
    catalog = Catalog([str(user.user) for user in users], item_ids, generated.titles, histories)
    splits = {"valid": users[: world.valid], "test": users[len(users) - world.test :]}
    held_out = {
        split: HeldOut(
            np.array([user.user for user in members], dtype=np.int64),
            np.array([user.positive for user in members], dtype=np.int64),
            [np.array(user.negatives, dtype=np.int64) for user in members],
        )
        for split, members in splits.items()
    }
    gold = {u.user: np.array([u.history[i] for i in u.gold], dtype=np.int64) for u in users}
    return Ratings(catalog, held_out, gold=gold)


def _read_interactions(
    table: Table, data: DataConfig, users: _Numbering, items: _Numbering
) -> tuple[tuple[Ints, Ints], list[str]]:
    """Return the users and items of all lines, each pair once, ordered by time where it is known; and notes."""
    has_time = len(table.columns) > 2
    times: dict[tuple[int, int], float] = {}
    bad_lines = BadLines(data.on_error)
    n_lines = 0
    rows = _with_times(table, has_time)
    for row in rows:
        if isinstance(row, BadLine):
            bad_lines.add(row, rows)
            continue
        user, item, time = row
        times.setdefault((users.number(user), items.number(item)), time)
        n_lines += 1
    if not times:
        message = f"{table.path}: contains no interactions; see data.columns, data.where and data.separator"
        raise DataError("\n".join(filter(None, [message, str(bad_lines)])))
    pairs = np.array(list(times), dtype=np.int64)
    if has_time:
        pairs = pairs[np.argsort(np.array(list(times.values())), kind="stable")]
    n_repeated = n_lines - len(times)
    notes = [table.describe()]
    notes += [f"{table.path}: {n_repeated:,} repeated interaction(s) count once"] if n_repeated else []
    notes += [str(bad_lines)] if bad_lines.count else []
    return (pairs[:, 0], pairs[:, 1]), notes


def _with_times(table: Table, has_time: bool) -> Iterator[tuple[str, str, float] | BadLine]:
    """Yield user, item and time (0 where it is not known) of every row that is not blank."""
    for row in table:
        if isinstance(row, BadLine) and row.reason != "blank":
            yield row
        if row is None or isinstance(row, BadLine):
            continue
        texts = [text.strip() for text in row.texts]
        time = _parse_time(texts[2]) if has_time else 0.0
        if math.isfinite(time):  # NaN has no place in an order
            yield texts[0], texts[1], time
        else:
            reason = f"the time in column {table.columns[2]} is not a number or a date: {texts[2][:EXCERPT_LENGTH]!r}"
            yield BadLine(table.path, row.line, reason)


def _parse_time(text: str) -> float:
    """Return a number of seconds, or the seconds of a date such as 2024-05-31 or 2024-05-31T12:00; else NaN."""
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.nan


def _read_held_out(paths: Sequence[Path], users: _Numbering, items: _Numbering) -> HeldOut:
    """Read held-out items from the first file, and their negatives from the second if there is one."""
    table = Table(paths[0], ("user", "item"), columns=())
    pairs = [(users.number(row.texts[0].strip()), items.number(row.texts[1].strip())) for row in _good_rows(table)]
    if not pairs:
        raise DataError(f"{paths[0]}: contains no interactions")
    negatives: list[Ints] = []
    if len(paths) > 1:
        by_pair = dict(_read_negatives(paths[1], users, items))
        missing = [pair for pair in pairs if pair not in by_pair]
        if missing:
            user = list(users.numbers)[missing[0][0]]
            raise DataError(f"{paths[1]}: no negatives for {len(missing):,} held-out item(s), such as user {user}'s")
        negatives = [by_pair[pair] for pair in pairs]
    columns = np.array(pairs, dtype=np.int64)
    return HeldOut(columns[:, 0], columns[:, 1], negatives)


def _good_rows(table: Table) -> Iterator[Row]:
    """Yield the rows of a table; bad lines that are not blank are errors."""
    rows = iter(table)
    for row in rows:
        if isinstance(row, Row):
            yield row
        elif row is not None and row.reason != "blank":
            raise DataError(str(row))


def _read_negatives(path: Path, users: _Numbering, items: _Numbering) -> Iterator[tuple[tuple[int, int], Ints]]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        first, *cells = line.split("\t")
        pair = USER_AND_ITEM.fullmatch(first.strip())
        negatives = [items.number(cell.strip()) for cell in cells if cell.strip()]
        if pair is None or not negatives:
            raise DataError(f"{path}, line {number}: expected (user,item), tab, and the items it is ranked among")
        user, item = users.number(pair[1].strip()), items.number(pair[2].strip())
        yield (user, item), np.array(negatives, dtype=np.int64)


def _choose_held_out(histories: Histories, hold_out: str, split: str) -> HeldOut:
    """Choose one item of every user with at least `MIN_HISTORY` items: the last one, or a random one."""
    users = np.flatnonzero(histories.lengths >= MIN_HISTORY)
    last = histories.lengths[users] - 1
    positions = last if hold_out == "last" else seeded_rng("held out", split).integers(last + 1)
    return HeldOut(users, histories.items[histories.bounds[users] + positions], [])


def _with_negatives(
    held_out: HeldOut, histories: Histories, n_items: int, settings: RatingsConfig, split: str
) -> HeldOut:
    """Return the held-out items with negatives: those of the file, else drawn from items not in the history."""
    if len(held_out.negatives) or not len(held_out):
        return held_out
    rng = seeded_rng("negatives", split)
    negatives = []
    for user, item in zip(held_out.users.tolist(), held_out.items.tolist(), strict=True):
        is_candidate = np.ones(n_items, bool)
        is_candidate[histories.items_of(user)] = is_candidate[item] = False
        candidates = np.flatnonzero(is_candidate)
        negatives.append(rng.choice(candidates, min(settings.negatives, len(candidates)), replace=False))
    return HeldOut(held_out.users, held_out.items, negatives)


def _read_titles(path: Path, data: DataConfig, items: _Numbering) -> dict[str, str]:
    """Return the titles of known items by id; other lines are ignored, and so are items without a title."""
    settings = data.ratings or RatingsConfig()
    reading = data.model_copy(update={"header": "auto"})
    table = Table(path, ("item", "title"), reading, settings.title_columns, setting="data.ratings.title_columns")
    titles = {}
    for row in table:
        if isinstance(row, Row) and row.texts[0].strip() in items.numbers:
            titles[row.texts[0].strip()] = " ".join(row.texts[1].split())
    return titles
