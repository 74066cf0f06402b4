"""`heedful world NAME`: write generated data, in the formats of real data, to disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

worlds = typer.Typer(
    help="Write a generated world, whose right attention is known, to disk.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Count = Annotated[int, typer.Option("--n", help="How many examples in all.", show_default=False)]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same world.")]
Out = Annotated[Path, typer.Option("-o", "--out", help="The folder to write.", show_default=False)]
Valid = Annotated[int | None, typer.Option(help="Of these, to validate on.", show_default="a tenth")]
Test = Annotated[int | None, typer.Option(help="Of these, to test on.", show_default="a tenth")]


def _write(name: str, out: Path, n: int, seed: int, **options: object) -> None:
    from heedful.data.worlds import WORLDS

    counts = WORLDS[name](out, n, seed, **options)
    print(f"{out}: " + ", ".join(f"{count:,} {what}" for what, count in counts.items()))


@worlds.command()
def phrases(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    languages: Annotated[str, typer.Option(help="Source-target: two of en, fr, vi.")] = "en-fr",
    min_words: Annotated[int, typer.Option(help="Shortest source sentence.")] = 3,
    max_words: Annotated[int, typer.Option(help="Longest source sentence.")] = 14,
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Sentence pairs of a synchronous grammar with gold word alignments."""
    _write(
        "phrases",
        out,
        n,
        seed,
        languages=languages,
        min_words=min_words,
        max_words=max_words,
        valid=valid,
        test=test,
    )


@worlds.command()
def scenes(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    size: Annotated[int, typer.Option(help="Width and height of a picture.")] = 112,
    captions: Annotated[int, typer.Option(help="Captions of each picture.")] = 5,
    order: Annotated[
        str, typer.Option(help="any, or left: things are spoken of from left to right.")
    ] = "any",
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Drawn pictures with captions and the gold region of every word."""
    _write("scenes", out, n, seed, size=size, captions=captions, order=order, valid=valid, test=test)


@worlds.command()
def tastes(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    items: Annotated[int, typer.Option(help="Items to choose from.")] = 300,
    genres: Annotated[int, typer.Option(help="Kinds of items.")] = 12,
) -> None:
    """Users with planted tastes and the gold items of their histories."""
    _write("tastes", out, n, seed, items=items, genres=genres)


@worlds.command()
def moods(
    *,
    n: Count,
    seed: Seed = 1,
    out: Out,
    classes: Annotated[int, typer.Option(help="2, or 3 with neutral.")] = 2,
    min_words: Annotated[int, typer.Option(help="Shortest sentence.")] = 5,
    max_words: Annotated[int, typer.Option(help="Longest sentence.")] = 30,
    valid: Valid = None,
    test: Test = None,
) -> None:
    """Sentences with planted sentiment words."""
    _write(
        "moods",
        out,
        n,
        seed,
        classes=classes,
        min_words=min_words,
        max_words=max_words,
        valid=valid,
        test=test,
    )
