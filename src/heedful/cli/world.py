"""`heedful world`: write generated data to disk, in the formats of real data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

worlds = typer.Typer(
    help="Generate synthetic data with known gold attention.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Count = Annotated[int, typer.Option("--n", metavar="N", help="Number of examples over all splits.", show_default=False)]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random seed.")]
Out = Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder to write.", show_default=False)]
Valid = Annotated[
    int | None, typer.Option(metavar="N", help="How many of the n examples are for validation.", show_default="a tenth")
]
Test = Annotated[
    int | None, typer.Option(metavar="N", help="How many of the n examples are for testing.", show_default="a tenth")
]


def _write(name: str, out: Path, n: int, seed: int, **options: object) -> None:
    from heedful.data.worlds import WORLDS

    counts = WORLDS[name](out, n, seed, **options)
    print(f"{out}: " + ", ".join(f"{count:,} {unit}" for unit, count in counts.items()))


@worlds.command()
def phrases(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    languages: Annotated[
        str, typer.Option(metavar="SRC-TGT", help="Source and target language: two of en, fr, vi.")
    ] = "en-fr",
    min_words: Annotated[int, typer.Option(metavar="N", help="Minimum source length, in words.")] = 3,
    max_words: Annotated[int, typer.Option(metavar="N", help="Maximum source length, in words.")] = 14,
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Sentence pairs of a synchronous grammar, with gold alignments."""
    limits = {"min_words": min_words, "max_words": max_words}
    _write("phrases", out, n, seed, languages=languages, **limits, valid=valid, test=test)


@worlds.command()
def scenes(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    size: Annotated[int, typer.Option(metavar="N", help="Width and height of an image, in pixels.")] = 112,
    captions: Annotated[int, typer.Option(metavar="N", help="Captions per image.")] = 5,
    order: Annotated[
        str, typer.Option(metavar="ORDER", help="Order of objects in a caption: any, or left (to right).")
    ] = "any",
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Drawn images with captions and the gold regions of their words."""
    _write("scenes", out, n, seed, size=size, captions=captions, order=order, valid=valid, test=test)


@worlds.command()
def tastes(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    items: Annotated[int, typer.Option(metavar="N", help="Number of items.")] = 300,
    genres: Annotated[int, typer.Option(metavar="N", help="Number of genres.")] = 12,
) -> None:
    """Users with known tastes and the gold items of their histories."""
    _write("tastes", out, n, seed, items=items, genres=genres)


@worlds.command()
def moods(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    classes: Annotated[int, typer.Option(metavar="N", help="Number of labels: 2, or 3 with neutral.")] = 2,
    min_words: Annotated[int, typer.Option(metavar="N", help="Minimum sentence length, in words.")] = 5,
    max_words: Annotated[int, typer.Option(metavar="N", help="Maximum sentence length, in words.")] = 30,
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Sentences with sentiment labels and the gold words of each."""
    limits = {"min_words": min_words, "max_words": max_words}
    _write("moods", out, n, seed, classes=classes, **limits, valid=valid, test=test)
