"""The assets of a recommender: users with their histories, items and their titles."""

from __future__ import annotations

import difflib
import re
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.asset_files import asset_file, is_unicode
from heedful.data.histories import Histories
from heedful.errors import DataError, ModelError

HEADER_ERRORS = (tokenize.TokenError, SyntaxError)  # of NumPy, which reads an array's header as Python
FILE_NAME = "catalog.npz"
N_SUGGESTIONS = 3  # similar names that an error suggests
TEXTS, NUMBERS = ("users", "items", "titles"), ("bounds", "history")  # the arrays of the file
MAX_TEXTS, MAX_NUMBERS, MAX_BYTES = 2_000_000, 50_000_000, 200_000_000  # per array
ARTICLES = r"(the|a|an|la|le|les|l'|il|das|der|die|el|los|las)"


def normalize_title(title: str) -> str:
    """Return a title as people type it: lower case, without the year, the article in front.

    >>> normalize_title("Matrix, The (1999)"), normalize_title("  The  Matrix ")
    ('the matrix', 'the matrix')
    """
    text = re.sub(r"\s*\(\d{4}\)\s*$", "", " ".join(title.lower().split()))
    return re.sub(rf"^(.*), {ARTICLES}$", r"\2 \1", text)


class Catalog:
    """Users, items, titles and histories. Users and items are numbered from 0; a missing title is ""."""

    def __init__(self, users: Sequence[str], items: Sequence[str], titles: Sequence[str], histories: Histories) -> None:
        self.users, self.items, self.titles = tuple(users), tuple(items), tuple(titles)
        self.histories = histories

    def save(self, folder: Path) -> None:
        """Write the catalog; one that `load` would refuse as too large raises DataError."""
        arrays: dict[str, Any] = {name: np.array(getattr(self, name), dtype=np.str_) for name in TEXTS}
        arrays |= {"bounds": self.histories.bounds, "history": self.histories.items.astype(np.int32)}
        for name, array in arrays.items():
            _check_size(name, array.dtype, len(array))
        with (folder / FILE_NAME).open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, folder: Path) -> Catalog:
        """Load the catalog of a model folder, and check that its arrays fit together."""
        path = asset_file(folder, FILE_NAME)
        try:
            with path.open("rb") as file, zipfile.ZipFile(file) as archive:
                users, items, titles = (_read_array(archive, name).tolist() for name in TEXTS)
                bounds, history = (_read_array(archive, name).astype(np.int64) for name in NUMBERS)
        except DataError as error:
            raise ModelError(f"{path}: {error}") from None
        except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, *HEADER_ERRORS):
            raise ModelError(f"{path}: damaged: not a catalog") from None
        if not all(map(is_unicode, (*users, *items, *titles))):
            raise ModelError(f"{path}: damaged: a name is not Unicode text")
        ordered = len(bounds) == len(users) + 1 and bounds[0] == 0 and bool((np.diff(bounds) >= 0).all())
        in_range = ordered and bounds[-1] == len(history) and bool(((history >= 0) & (history < len(items))).all())
        if not in_range or len(titles) != len(items):
            raise ModelError(f"{path}: damaged: its histories do not fit its users and items")
        return cls(users, items, titles, Histories(bounds, history))

    def sizes(self) -> dict[str, int]:
        return {"users": len(self.users), "items": len(self.items), "interactions": len(self.histories.items)}

    def name(self, item: int) -> str:
        """Return the title of an item, or its id where there is none."""
        return self.titles[item] or self.items[item]

    @cached_property
    def user_numbers(self) -> dict[str, int]:
        return {user: number for number, user in enumerate(self.users)}

    @cached_property
    def item_numbers(self) -> dict[str, int]:
        return {item: number for number, item in enumerate(self.items)}

    @cached_property
    def _items_by_title(self) -> dict[str, list[int]]:
        """Items by their lower-case titles and by their normalized ones."""
        by_title: dict[str, list[int]] = {}
        for number, title in enumerate(self.titles):
            if title:
                for form in {title.lower(), normalize_title(title)}:
                    by_title.setdefault(form, []).append(number)
        return by_title

    def find_user(self, name: str) -> int:
        """Return the number of a user; an unknown one is an error that suggests similar names."""
        if name in self.user_numbers:
            return self.user_numbers[name]
        similar = difflib.get_close_matches(name, self.users, n=N_SUGGESTIONS)
        suggestion = f"did you mean {_either(similar)}? " if similar else ""
        examples = ", ".join(self.users[:N_SUGGESTIONS])
        raise DataError(f'no user "{name}"; {suggestion}there are {len(self.users):,} users, such as {examples}')

    def find_item(self, name: str) -> int:
        """Return the number of an item by its title, exact or normalized, or by its id.

        A name that is the title of one item and the id of another is an error: `id:300` and `title:300` say which.
        """
        typed = " ".join(name.split())
        if typed.startswith("id:") and typed.removeprefix("id:") in self.item_numbers:
            return self.item_numbers[typed.removeprefix("id:")]
        titled = self._find_titled(typed.removeprefix("title:").strip())
        by_id = None if typed.startswith("title:") else self.item_numbers.get(typed)
        if titled is not None and by_id is not None and titled != by_id:
            raise DataError(
                f'"{typed}" is the title of one item and the id of another ({self.name(by_id)});'
                f" write title:{typed} or id:{typed}"
            )
        number = by_id if titled is None else titled
        if number is not None:
            return number
        similar = difflib.get_close_matches(normalize_title(typed), self._items_by_title, n=N_SUGGESTIONS)
        names = list(dict.fromkeys(self.name(self._items_by_title[form][0]) for form in similar))
        if not any(self.titles):
            names = difflib.get_close_matches(typed, self.items, n=N_SUGGESTIONS)
        suggestion = f"; did you mean {_either(names)}?" if names else ""
        raise DataError(f'no item has the title "{typed}"{suggestion}')

    def _find_titled(self, title: str) -> int | None:
        """Return the item with a title, exact or normalized; several are an error."""
        for form in (title.lower(), normalize_title(title)):
            items = self._items_by_title.get(form, [])
            if len(items) == 1:
                return items[0]
            if items:
                examples = ", ".join(f"{self.titles[item]} (id:{self.items[item]})" for item in items[:N_SUGGESTIONS])
                raise DataError(f'{len(items)} items have the title "{title}", such as {examples}; give the id')
        return None


def _read_array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Read one array; its type and size are checked before anything is decompressed.

    Raises one of the errors that `Catalog.load` explains.
    """
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("another compression")
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = read_header[version](file)
        if len(shape) != 1 or shape[0] < 0 or dtype.kind not in ("U" if name in TEXTS else "iu"):
            raise ValueError("another type or shape")
        _check_size(name, dtype, shape[0])
        size = shape[0] * dtype.itemsize
        raw = file.read(size)
        if len(raw) != size or file.read(1):
            raise ValueError("another size")
    return np.frombuffer(raw, dtype)


def _check_size(name: str, dtype: np.dtype[Any], length: int) -> None:
    limit = MAX_TEXTS if name in TEXTS else MAX_NUMBERS
    if length > limit or length * dtype.itemsize > MAX_BYTES:
        raise DataError(f"the catalog has {length:,} {name}: at most {limit:,}, and {MAX_BYTES:,} bytes, are possible")


def _either(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
