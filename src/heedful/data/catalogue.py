"""What a recommender knows beside its weights: users with their histories, items and their titles."""

from __future__ import annotations

import difflib
import re
import zipfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from heedful.data.histories import Histories
from heedful.errors import DataError, ModelError

FILE = "catalogue.npz"
CLOSE = 3  # names that a mistake is answered with
ARTICLES = r"(the|a|an|la|le|les|l'|il|das|der|die|el|los|las)"


def plain(title: str) -> str:
    """A title as people type it: small letters, no year, no article put behind.

    >>> plain("Matrix, The (1999)"), plain("  The  Matrix ")
    ('the matrix', 'the matrix')
    """
    text = re.sub(r"\s*\(\d{4}\)\s*$", "", " ".join(title.lower().split()))
    return re.sub(rf"^(.*), {ARTICLES}$", r"\2 \1", text)


class Catalogue:
    """The task's assets. Users and items have numbers from 0; titles may be missing ("")."""

    def __init__(
        self, users: Sequence[str], items: Sequence[str], titles: Sequence[str], histories: Histories
    ) -> None:
        self.users, self.items, self.titles = tuple(users), tuple(items), tuple(titles)
        self.histories = histories

    def save(self, folder: Path) -> None:
        with (folder / FILE).open("wb") as file:
            np.savez_compressed(
                file,
                users=np.array(self.users, dtype=np.str_),
                items=np.array(self.items, dtype=np.str_),
                titles=np.array(self.titles, dtype=np.str_),
                bounds=self.histories.bounds,
                history=self.histories.items.astype(np.int32),
            )

    @classmethod
    def load(cls, folder: Path) -> Catalogue:
        try:
            with (folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as found:
                names = [found[name].tolist() for name in ("users", "items", "titles")]
                bounds, history = (found[name].astype(np.int64) for name in ("bounds", "history"))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            raise ModelError(f"{folder / FILE}: damaged") from None
        users, items, titles = names
        rising = len(bounds) == len(users) + 1 and bounds[0] == 0 and bool((np.diff(bounds) >= 0).all())
        within = (
            rising and bounds[-1] == len(history) and bool(((history >= 0) & (history < len(items))).all())
        )
        if not within or len(titles) != len(items):
            raise ModelError(f"{folder / FILE}: damaged")
        return cls(users, items, titles, Histories(bounds, history))

    def sizes(self) -> dict[str, int]:
        return {"users": len(self.users), "items": len(self.items), "interactions": len(self.histories.items)}

    def name(self, item: int) -> str:
        """The title, or else the id."""
        return self.titles[item] or self.items[item]

    @cached_property
    def user_numbers(self) -> dict[str, int]:
        return {user: number for number, user in enumerate(self.users)}

    @cached_property
    def item_numbers(self) -> dict[str, int]:
        return {item: number for number, item in enumerate(self.items)}

    @cached_property
    def _by_title(self) -> dict[str, list[int]]:
        """Items by their exact titles, and by what people type."""
        found: dict[str, list[int]] = {}
        for number, title in enumerate(self.titles):
            if title:
                for form in {title.lower(), plain(title)}:
                    found.setdefault(form, []).append(number)
        return found

    def user(self, name: str) -> int:
        """The number of a user; one who is not there is an error that says who is close."""
        if name in self.user_numbers:
            return self.user_numbers[name]
        close = difflib.get_close_matches(name, self.users, n=CLOSE)
        meant = f"did you mean {_listed(close)}? " if close else ""
        some = ", ".join(self.users[:CLOSE])
        raise DataError(f'no user "{name}"; {meant}there are {len(self.users):,}, such as {some}')

    def item(self, name: str) -> int:
        """The number of an item by its title, whole or as people type it, or by its id (`id:12`, or `12`)."""
        typed = " ".join(name.split())
        if typed.removeprefix("id:") in self.item_numbers and typed.startswith("id:"):
            return self.item_numbers[typed.removeprefix("id:")]
        for found in (self._by_title.get(typed.lower(), []), self._by_title.get(plain(typed), [])):
            if len(found) == 1:
                return found[0]
            if found:
                listed = ", ".join(f"{self.titles[item]} (id:{self.items[item]})" for item in found[:CLOSE])
                raise DataError(f'"{typed}": {len(found)} items are called so, such as {listed}; give the id')
        if typed in self.item_numbers:
            return self.item_numbers[typed]
        close = difflib.get_close_matches(plain(typed), self._by_title, n=CLOSE)
        names = list(dict.fromkeys(self.name(self._by_title[form][0]) for form in close))
        close_ids = difflib.get_close_matches(typed, self.items, n=CLOSE) if not any(self.titles) else []
        meant = f"; did you mean {_listed(names or close_ids)}?" if names or close_ids else ""
        raise DataError(f'no item is called "{typed}"{meant}')


def _listed(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
