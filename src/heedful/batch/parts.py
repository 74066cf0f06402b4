"""The parts of a batch job: input files, or ranges of their lines; each becomes one output file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.images.files import IMAGE_SUFFIXES
from heedful.data.lines import BadLine, iter_lines, require_file
from heedful.data.tables import TABLE_SUFFIXES, Row, Table, is_table
from heedful.errors import DataError
from heedful.section import Column

TEXT_SUFFIXES = (".txt", ".txt.gz", *(f"{suffix}.gz" for suffix in (".jsonl", ".json")), *TABLE_SUFFIXES)
ROLES = {"classify": ("text",), "read": ("text",), "recommend": ("user",), "caption": ("image",)}


class Part(NamedTuple):
    """A file, or the rows `start` up to `stop` of it (counted from 0; None: to the end), and its output's name."""

    path: Path
    name: str
    start: int = 0
    stop: int | None = None

    def fingerprint(self) -> list[int]:
        """Return size and time of the file, by which a changed input is noticed; of a folder, those of its files."""
        files = [self.path] if self.path.is_file() else sorted(self.path.iterdir())
        stats = [file.stat() for file in files]
        return [len(files), sum(stat.st_size for stat in stats), max((stat.st_mtime_ns for stat in stats), default=0)]


def find_parts(inputs: Sequence[Path], verb: str, part_lines: int = 0) -> list[Part]:
    """Return the parts of input files and folders; `part_lines` divides files, 0 leaves them whole.

    A folder stands for the files in it; a folder of images is one part.
    """
    files = [file for path in inputs for file in _files(path, verb)]
    names = [_stem(file) for file in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        first, second = [file for file, name in zip(files, names, strict=True) if name == twice[0]][:2]
        raise DataError(f"{first} and {second} would have the same output file; rename one, or give each its own --out")
    parts = []
    for file, name in zip(files, names, strict=True):
        if not part_lines or file.is_dir():
            parts.append(Part(file, name))
            continue
        count = sum(1 for _ in iter_rows(Part(file, name), verb))
        ranges = range(0, max(count, 1), part_lines)
        parts += [Part(file, f"{name}-{i:05d}", start, start + part_lines) for i, start in enumerate(ranges)]
    return parts


def iter_rows(part: Part, verb: str, column: Column | None = None) -> Iterator[str | BadLine]:
    """Yield the text of each row of a part; rows that cannot be read as `BadLine`, so that numbers stay in step."""
    return islice(_iter_file(part.path, verb, column), part.start, part.stop)


def _iter_file(path: Path, verb: str, column: Column | None) -> Iterator[str | BadLine]:
    if path.is_dir():
        yield from map(str, _images(path))
        return
    if not is_table(path) and column is None:
        yield from iter_lines(path)
        return
    table = Table(path, ROLES.get(verb, ("source",)), columns=() if column is None else (column,), setting="--column")
    for row in table:
        if isinstance(row, Row):
            text = row.texts[0]
            yield str(path.parent / text) if verb == "caption" else text
        elif row is not None:
            yield row


def _files(path: Path, verb: str) -> list[Path]:
    if not path.is_dir():
        require_file(path)
        return [path]
    if verb == "caption" and _images(path):
        return [path]
    files = sorted(file for file in path.iterdir() if file.name.lower().endswith(TEXT_SUFFIXES))
    if not files:
        expected = IMAGE_SUFFIXES if verb == "caption" else TEXT_SUFFIXES
        raise DataError(f"{path}: none of its files can be an input ({', '.join(expected)})")
    return files


def _images(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES)


def _stem(path: Path) -> str:
    """Return the name of a file without what says its format.

    >>> _stem(Path("a/lines-3.tsv.gz")), _stem(Path("v1.2"))
    ('lines-3', 'v1.2')
    """
    name = path.name.removesuffix(".gz")
    known = next((suffix for suffix in TEXT_SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(known)] or path.name
