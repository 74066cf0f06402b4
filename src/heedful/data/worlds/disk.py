"""What every world does alike when it goes to disk: whole files or none, split sizes, a README."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from heedful.errors import WorldError
from heedful.whole import whole

SPLITS = ("train", "valid", "test")


def write_text(path: Path, lines: Iterable[str]) -> None:
    """Write the lines whole or not at all; UTF-8 and "\\n" whatever the locale and the platform say."""
    with (
        whole(path, WorldError, parents=True) as draft,
        draft.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{line}\n" for line in lines)


def in_range(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuse a number that is no whole number, is below `low` or is above `high`."""
    if type(value) is not int or value < low or (high is not None and value > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise WorldError(f"{name} is {value!r}: it must be a whole number {bounds}")


def split_sizes(n: int, valid: int | None = None, test: int | None = None) -> dict[str, int]:
    """Share `n` items, the whole world, among the splits; what is not held out is for training.

    >>> split_sizes(100)
    {'train': 80, 'valid': 10, 'test': 10}
    """
    in_range("n", n, 3)
    usual = min(1000, max(1, n // 10))
    held = {"valid": usual if valid is None else valid, "test": usual if test is None else test}
    for name, size in held.items():
        in_range(name, size, 0)
    train = n - sum(held.values())
    if train < 1:
        raise WorldError(
            f"valid={held['valid']} and test={held['test']} leave nothing to train on: n is {n}, "
            f"it must be at least {n - train + 1}"
        )
    return {"train": train, **held}


def title(name: str) -> str:
    """The README's first line, by which a world knows its own folder again."""
    return f"# heedful world: {name}"


def claim(out: Path, name: str) -> None:
    """Refuse a folder that is somebody else's: its README.md would be lost, and worlds would mix."""
    if out.is_file():
        raise WorldError(f"{out} is a file; --out names a folder")
    readme = out / "README.md"
    if not readme.exists():
        return
    try:
        with readme.open(encoding="utf-8", errors="replace") as file:
            first = file.readline().rstrip("\r\n")
    except OSError as error:
        raise WorldError(f"{readme}: {error.strerror}: give another folder") from None
    if first != title(name):
        raise WorldError(
            f"{out} holds a README.md that is not of the world {name} ({first!r}): give another folder"
        )


def write_readme(out: Path, name: str, options: Mapping[str, object], about: str) -> None:
    """Say what lies here and which command makes it again; `about` describes the files.

    Call it last: a folder with a README.md is complete.
    """
    flags = " ".join(
        f"--{key.replace('_', '-')} {value}" for key, value in options.items() if value is not None
    )
    write_text(
        out / "README.md",
        [
            title(name),
            "",
            "Made-up data whose right attention is known exactly. It is for first runs, teaching and tests;",
            "it is no evidence that a model is good. Free to use for anything: nothing in it was taken from",
            "anywhere.",
            "",
            "Made by:",
            "",
            f"    heedful world {name} {flags} --out DIR",
            "",
            "The same options give the same data on any machine.",
            "",
            *about.strip().splitlines(),
        ],
    )
