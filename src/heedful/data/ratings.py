"""User-item interactions, held-out items and titles, from files or from the world "tastes".

- interactions: one user and one item per line, in any columns, with or without a time; TSV, CSV or any separator;
- held-out items, in the leave-one-out format of He et al. 2017: `user<TAB>item...` (test.rating) and, in a second
  file, the negatives that each is ranked among: `(user,item)<TAB>item<TAB>item...` (test.negative).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.config import DataConfig, RatingsConfig, WorldConfig
from heedful.data.catalog import Catalog
from heedful.data.histories import Histories, Ints
from heedful.data.lines import EXCERPT_LENGTH, BadLine, BadLines, iter_lines, parse_column, require_file
from heedful.data.paths import locate
from heedful.data.rng import seeded_rng
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
    """A catalog with the training histories, the held-out items of each split, and warnings about the files.

    `gold` maps a user to the items of the history that explain the held-out item, if they are known.
    """

    catalog: Catalog
    held_out: Mapping[str, HeldOut]
    warnings: Sequence[str] = ()
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


class _Row(NamedTuple):
    """A line of a file, split into cells."""

    path: Path
    line: int
    cells: list[str]
    problem: str = ""  # why the line could not be split

    def error(self, reason: str) -> _BadRowError:
        return _BadRowError(BadLine(self.path, self.line, reason))

    def cell(self, column: int, content: str) -> str:
        """Return the text of a column, counted from 1; `content` says in errors what it should contain."""
        if self.problem:
            raise self.error(self.problem)
        text = self.cells[column - 1].strip() if len(self.cells) >= column else ""
        if not text:
            raise self.error(f"no {content} in column {column}: {' | '.join(self.cells)[:EXCERPT_LENGTH]!r}")
        return text

    def time(self, column: int) -> float:
        text = self.cell(column, "time")
        try:
            time = float(text)
        except ValueError:
            time = math.nan
        if not math.isfinite(time):  # NaN has no place in an order
            raise self.error(f"the time in column {column} is not a number: {text[:EXCERPT_LENGTH]!r}")
        return time


class _BadRowError(DataError):
    """A line in which a required cell is missing or malformed."""

    def __init__(self, bad_line: BadLine) -> None:
        super().__init__(str(bad_line))
        self.bad_line = bad_line


def open_ratings(data: DataConfig, base: Path) -> Ratings:
    """Return the interactions and held-out items of a recipe's section [data]."""
    if data.world is not None:
        return world_ratings(data.world)
    settings = data.ratings or RatingsConfig()
    users, items = _Numbering(), _Numbering()
    path = locate(data.train[0], base)
    pairs, warnings = _read_interactions(path, data, settings, users, items)
    from_files = {
        split: _read_held_out([locate(name, base) for name in names], users, items)
        for split, names in (("valid", data.valid), ("test", data.test))
        if names
    }
    histories = Histories.from_pairs(*pairs, len(users))
    titles = _read_titles(locate(settings.titles, base), settings, items) if settings.titles else {}
    held_out: dict[str, HeldOut] = {}
    for split in ("test", "valid"):
        chosen = from_files[split] if split in from_files else _choose_held_out(histories, settings.hold_out, split)
        held_out[split] = _with_negatives(chosen, histories, len(items), settings, split)
        if split == "test" and split not in from_files:  # training excludes validation items; the catalog keeps them
            histories = histories.without(held_out[split].users, held_out[split].items)
    item_titles = [titles.get(item, "") for item in items.numbers]
    return Ratings(Catalog(list(users.numbers), list(items.numbers), item_titles, histories), held_out, warnings)


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


def _read_rows(path: Path, separator: str = "", header: bool = False) -> Iterator[_Row]:
    """Yield the cells of every non-blank line after the header; a bad line has no cells."""
    separator = separator or ("," if ".csv" in path.suffixes else "\t")
    require_file(path)
    for number, line in enumerate(iter_lines(path), 1):
        if isinstance(line, BadLine):
            yield _Row(path, number, [], line.reason)
        elif line and not line.isspace() and (number > 1 or not header):
            yield _split_csv(path, number, line) if separator == "," else _Row(path, number, line.split(separator))


def _split_csv(path: Path, number: int, line: str) -> _Row:
    try:
        return _Row(path, number, next(csv.reader([line])))
    except csv.Error as error:  # a carriage return within the line, or a cell of more than 131,072 characters
        return _Row(path, number, [], f"not CSV: {error}")


def _read_interactions(
    path: Path, data: DataConfig, settings: RatingsConfig, users: _Numbering, items: _Numbering
) -> tuple[tuple[Ints, Ints], list[str]]:
    """Return the users and items of all lines, each pair once, ordered by time where it is known; and warnings."""
    conditions = [_parse_condition(text, path) for text in data.where]
    user_column, item_column = data.columns
    times: dict[tuple[int, int], float] = {}
    bad_lines = BadLines(data.on_error)
    n_lines = 0
    for row in _read_rows(path, settings.separator, settings.header):
        try:
            if any(row.cell(column, "value") != value for column, value in conditions):
                continue
            user, item = row.cell(user_column, "user"), row.cell(item_column, "item")
            time = row.time(settings.time_column) if settings.time_column else 0.0
        except _BadRowError as error:
            bad_lines.add(error.bad_line)
            continue
        times.setdefault((users.number(user), items.number(item)), time)
        n_lines += 1
    if not times:
        raise DataError(f"{path}: contains no interactions; see data.columns, data.where and data.ratings.separator")
    pairs = np.array(list(times), dtype=np.int64)
    if settings.time_column:
        pairs = pairs[np.argsort(np.array(list(times.values())), kind="stable")]
    n_repeated = n_lines - len(times)
    warnings = [f"{path}: {n_repeated:,} repeated interaction(s) count once"] if n_repeated else []
    warnings += [str(bad_lines)] if bad_lines.count else []
    return (pairs[:, 0], pairs[:, 1]), warnings


def _parse_condition(text: str, path: Path) -> tuple[int, str]:
    name, _, value = text.partition("=")
    column = parse_column(name)
    if column is None:
        raise DataError(f'data.where = "{text}": give the number of a column of {path}, counted from 1')
    return column, value


def _read_held_out(paths: Sequence[Path], users: _Numbering, items: _Numbering) -> HeldOut:
    """Read held-out items from the first file, and their negatives from the second if there is one."""
    pairs = [(users.number(row.cell(1, "user")), items.number(row.cell(2, "item"))) for row in _read_rows(paths[0])]
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


def _read_negatives(path: Path, users: _Numbering, items: _Numbering) -> Iterator[tuple[tuple[int, int], Ints]]:
    for row in _read_rows(path):
        pair = USER_AND_ITEM.fullmatch(row.cell(1, "(user,item)"))
        negatives = [items.number(cell.strip()) for cell in row.cells[1:] if cell.strip()]
        if pair is None or not negatives:
            raise row.error("expected (user,item), tab, and the items it is ranked among")
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


def _read_titles(path: Path, settings: RatingsConfig, items: _Numbering) -> dict[str, str]:
    """Return the titles of known items by id; other lines, such as a header, are ignored."""
    id_column, title_column = settings.title_columns
    titles = {}
    for row in _read_rows(path, settings.separator):
        if row.problem:
            raise row.error(row.problem)
        if len(row.cells) >= max(id_column, title_column) and row.cells[id_column - 1].strip() in items.numbers:
            titles[row.cells[id_column - 1].strip()] = " ".join(row.cells[title_column - 1].split())
    return titles
