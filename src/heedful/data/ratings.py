"""Reading who took what: user-item files, leave-one-out files as those of He 2017, titles; or a world.

- interactions: a user and an item a line, in any columns, with or without a time; TSV, CSV or what separates;
- held-out items: `user<TAB>item...` (test.rating) and, as a second file, what each is ranked among:
  `(user,item)<TAB>item<TAB>item...` (test.negative).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from heedful.config import DataConfig, RatingsConfig, WorldConfig
from heedful.data.catalogue import Catalogue
from heedful.data.histories import Histories, Ints, generator
from heedful.data.paths import locate
from heedful.data.readers import text_lines
from heedful.errors import DataError

LEAST = 3  # items a user must have for one of them to be held out
HELD = re.compile(r"\((.*),(.*)\)")
Line = tuple[int, list[str]]


class Held(NamedTuple):
    """Held-out items: users[i] took items[i], which is ranked among others[i]."""

    users: Ints
    items: Ints
    others: Sequence[Ints]

    def __len__(self) -> int:
        return len(self.users)

    def first(self, count: int) -> Held:
        """The first so many; 0: all."""
        return Held(self.users[:count], self.items[:count], self.others[:count]) if count else self


class Ratings(NamedTuple):
    """A catalogue with everybody's known items; what was held out; what is to be said; and gold, if known.

    `gold` are the history's items that are the reason for a held-out one, by user.
    """

    catalogue: Catalogue
    held: Mapping[str, Held]
    notes: Sequence[str] = ()
    gold: Mapping[int, Ints] = {}


class _Names:
    """Numbers for names, in the order they come."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def open_ratings(data: DataConfig, base: Path) -> Ratings:
    """All that a recipe's data section names."""
    if data.world is not None:
        return world_ratings(data.world)
    settings = data.ratings or RatingsConfig()
    users, items = _Names(), _Names()
    path = locate(data.train[0], base)
    pairs, notes = _interactions(path, data, settings, users, items)
    files = {"valid": data.valid, "test": data.test}
    named = {
        split: _held_file([locate(name, base) for name in names], users, items)
        for split, names in files.items()
        if names
    }
    histories = Histories.of_pairs(*pairs, len(users.numbers))
    titles = _titles(locate(settings.titles, base), settings, items) if settings.titles else {}
    held: dict[str, Held] = {}
    for split in ("test", "valid"):
        if split in named:
            held[split] = _ranked(named[split], histories, len(items.numbers), settings, split)
            continue
        chosen = _held_out(histories, settings.hold_out, split)
        held[split] = _ranked(chosen, histories, len(items.numbers), settings, split)
        if split == "test":  # nobody may know of it; what is only validated on is known when it is over
            histories = histories.without(held[split].users, held[split].items)
    known = Catalogue(
        list(users.numbers), list(items.numbers), [titles.get(i, "") for i in items.numbers], histories
    )
    return Ratings(known, held, notes)


def read_held(files: Sequence[str], settings: RatingsConfig, known: Catalogue) -> Held:
    """Held-out items of other files, among the users and items that a model knows."""
    users, items = _Names(), _Names()
    users.numbers, items.numbers = dict(known.user_numbers), dict(known.item_numbers)
    found = _held_file([locate(name, Path()) for name in files], users, items)
    for what, names, count in (("user", users, len(known.users)), ("item", items, len(known.items))):
        new = list(names.numbers)[count:]
        if new:
            raise DataError(
                f"{files[0]}: {len(new):,} {what}s that the model does not know, such as {new[0]}"
            )
    return _ranked(found, known.histories, len(known.items), settings, "test")


def world_ratings(world: WorldConfig) -> Ratings:
    """The tastes: the first users' held-out items are to validate on, the last ones' to test on."""
    from heedful.data.worlds.tastes import tastes

    made = tastes(world.train, world.seed, world.items, world.genres)
    everybody = made.users
    sizes = [len(user.history) for user in everybody]
    histories = Histories.of_pairs(
        np.repeat(np.arange(len(everybody)), sizes),
        np.array([item for user in everybody for item in user.history], dtype=np.int64),
        len(everybody),
    )
    ids = [str(item) for item in range(world.items)]
    known = Catalogue([str(user.user) for user in everybody], ids, made.titles, histories)
    parts = {"valid": everybody[: world.valid], "test": everybody[len(everybody) - world.test :]}
    held = {
        split: Held(
            np.array([user.user for user in some], dtype=np.int64),
            np.array([user.positive for user in some], dtype=np.int64),
            [np.array(user.negatives, dtype=np.int64) for user in some],
        )
        for split, some in parts.items()
    }
    gold = {u.user: np.array([u.history[at] for at in u.gold], dtype=np.int64) for u in everybody}
    return Ratings(known, held, gold=gold)


def _rows(path: Path, separator: str = "", header: bool = False) -> Iterator[Line]:
    """Cells of each line that is not blank, and its number."""
    separator = separator or ("," if ".csv" in path.suffixes else "\t")
    lines = enumerate(text_lines(path), 1)
    full = (
        (number, line) for number, line in lines if not line.isspace() and line and (number > 1 or not header)
    )
    if separator == ",":
        return ((number, next(csv.reader([line]))) for number, line in full)
    return ((number, line.split(separator)) for number, line in full)


def _cell(path: Path, line: Line, column: int, what: str) -> str:
    cells = line[1]
    found = cells[column - 1].strip() if len(cells) >= column else ""
    if found:
        return found
    raise DataError(f"{path}, line {line[0]}: no {what} in column {column}: {' | '.join(cells)[:60]!r}")


def _interactions(
    path: Path, data: DataConfig, settings: RatingsConfig, users: _Names, items: _Names
) -> tuple[tuple[Ints, Ints], list[str]]:
    """Users and items of every line, each pair once; in the order of time where it is known."""
    conditions = [_condition(text, path) for text in data.where]
    left, right = data.columns
    found: dict[tuple[int, int], float] = {}
    lines = broken = 0
    for line in _rows(path, settings.separator, settings.header):
        try:
            if conditions and any(
                _cell(path, line, column, "value") != value for column, value in conditions
            ):
                continue
            user, item = _cell(path, line, left, "user"), _cell(path, line, right, "item")
            time = _time(path, line, settings.time) if settings.time else 0.0
        except DataError as error:
            if data.broken == "refuse":
                raise DataError(f'{error} (data.broken = "skip" goes on without such lines)') from None
            broken += 1
            continue
        found.setdefault((users(user), items(item)), time)
        lines += 1
    if not found:
        raise DataError(f"{path}: no user and item in it")
    pairs = np.array(list(found), dtype=np.int64)
    if settings.time:
        pairs = pairs[np.argsort(np.array(list(found.values())), kind="stable")]
    again = lines - len(found)
    notes = [f"{path}: {again:,} interactions came again and count once"] if again else []
    notes += [f"{path}: {broken:,} broken lines left out"] if broken else []
    return (pairs[:, 0], pairs[:, 1]), notes


def _condition(text: str, path: Path) -> tuple[int, str]:
    name, _, value = text.partition("=")
    if not name.strip().isdecimal() or int(name) < 1:
        raise DataError(f'data.where = "{text}": the columns of {path} have numbers, from 1')
    return int(name), value


def _time(path: Path, line: Line, column: int) -> float:
    text = _cell(path, line, column, "time")
    try:
        return float(text)
    except ValueError:
        raise DataError(
            f"{path}, line {line[0]}: the time in column {column} is no number: {text!r}"
        ) from None


def _held_file(paths: Sequence[Path], users: _Names, items: _Names) -> Held:
    """What a file holds out; with a second file, among what."""
    rows = [
        (users(_cell(paths[0], line, 1, "user")), items(_cell(paths[0], line, 2, "item")))
        for line in _rows(paths[0])
    ]
    if not rows:
        raise DataError(f"{paths[0]}: no user and item in it")
    others: list[Ints] = []
    if len(paths) > 1:
        listed = dict(_negatives(paths[1], users, items))
        missing = [row for row in rows if row not in listed]
        if missing:
            user = list(users.numbers)[missing[0][0]]
            raise DataError(
                f"{paths[1]}: {len(missing):,} held-out items are not in it, such as user {user}'s"
            )
        others = [listed[row] for row in rows]
    pairs = np.array(rows, dtype=np.int64)
    return Held(pairs[:, 0], pairs[:, 1], others)


def _negatives(path: Path, users: _Names, items: _Names) -> Iterator[tuple[tuple[int, int], Ints]]:
    for number, cells in _rows(path):
        held = HELD.fullmatch(cells[0].strip())
        others = [items(cell.strip()) for cell in cells[1:] if cell.strip()]
        if held is None or not others:
            raise DataError(f"{path}, line {number}: expected (user,item) and the items it is ranked among")
        yield (users(held[1].strip()), items(held[2].strip())), np.array(others, dtype=np.int64)


def _held_out(histories: Histories, how: str, split: str) -> Held:
    """One item of every user who has enough of them."""
    users = np.flatnonzero(histories.lengths >= LEAST)
    last = histories.lengths[users] - 1
    places = last if how == "last" else generator("held out", split).integers(last + 1)
    return Held(users, histories.items[histories.bounds[users] + places], [])


def _ranked(held: Held, histories: Histories, items: int, settings: RatingsConfig, split: str) -> Held:
    """With items to be ranked among: those given, else drawn from what a user has never taken."""
    if len(held.others) or not len(held):
        return held
    rng = generator("negatives", split)
    others = []
    for user, item in zip(held.users.tolist(), held.items.tolist(), strict=True):
        strange = np.ones(items, bool)
        strange[histories.of(user)] = strange[item] = False
        left = np.flatnonzero(strange)
        others.append(rng.choice(left, min(settings.negatives, len(left)), replace=False))
    return Held(held.users, held.items, others)


def _titles(path: Path, settings: RatingsConfig, items: _Names) -> dict[str, str]:
    """The titles of known items; lines about others, such as a line of names, are read over."""
    item, title = settings.title_columns
    found = {}
    for _, cells in _rows(path, settings.separator):
        if len(cells) >= max(item, title) and cells[item - 1].strip() in items.numbers:
            found[cells[item - 1].strip()] = " ".join(cells[title - 1].split())
    return found
