"""`heedful caption` on the terminal: pictures in, sentences out, and where the model looked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer

from heedful.cli.progress import writing
from heedful.errors import DataError
from heedful.tasks.bundled import find
from heedful.tasks.caption import Captioner, captions, sighted, traced_picture
from heedful.tasks.folder import open_for
from heedful.tasks.licence import say_once
from heedful.tasks.use import processors
from heedful.vision.pictures import KINDS, BytesPicture, FilePicture, Picture

CHUNK = 64  # pictures opened at once: memory stays flat
PIPE = Path("-")


class Asked(NamedTuple):
    images: Sequence[Path]
    decoding: Mapping[str, Any]
    out: Path | None
    show: bool
    raw: bool
    as_json: bool
    threads: int


def run(asked: Asked, model: Path | None) -> None:
    if asked.as_json and (asked.show or asked.out is not None):
        raise DataError("--json prints, --show and -o draw: ask for one of them")
    (folder,) = find([] if model is None else [model], "caption")
    opened: Captioner = open_for(folder, "caption")
    say_once(opened)
    pictures = list(_pictures(asked.images))
    if asked.out is not None or asked.show:
        _draw(opened, asked, pictures)
        return
    failed = _write(opened, asked, pictures)
    if failed:
        print(f"{failed:,} of {len(pictures):,} pictures could not be captioned", file=sys.stderr)
        raise typer.Exit(1)


def _pictures(images: Sequence[Path]) -> Iterator[Picture]:
    """Files as they are, folders by what is in them, and a picture from a pipe."""
    if not images or images == [PIPE]:
        data = sys.stdin.buffer.read()
        if not data:
            raise DataError("give pictures: files, folders, or one through a pipe")
        yield BytesPicture("stdin", data)
        return
    for path in images:
        if path.is_dir():
            found = sorted(p for p in path.iterdir() if p.suffix.lower() in KINDS)
            if not found:
                raise DataError(f"{path}: no pictures in this folder ({', '.join(KINDS)})")
            yield from map(FilePicture, found)
        else:
            yield FilePicture(path)


def _how(opened: Captioner, asked: Asked) -> Any:
    how = opened.recipe.decoding.model_copy(update=dict(asked.decoding))
    if how.n_best > 1 and how.method == "greedy":
        how = how.model_copy(update={"method": "beam", "beam": max(how.beam, how.n_best)})
    return how


def _write(opened: Captioner, asked: Asked, pictures: Sequence[Picture]) -> int:
    """Caption all that can be; gives how many cannot."""
    how, backbone, failed = _how(opened, asked), sighted(opened), 0
    with writing(len(pictures)) as tick:
        for first in range(0, len(pictures), CHUNK):
            some = []
            for picture in pictures[first : first + CHUNK]:
                try:
                    some.append((picture, picture.open()))
                except DataError as error:
                    failed += 1
                    print(f"error: {error}", file=sys.stderr)
            found = captions(
                opened.model,
                backbone,
                [image for _, image in some],
                how,
                threads=asked.threads or processors(),
            )
            for (picture, _), best in zip(some, found, strict=True):
                texts = [opened.words.target.decode(h.tokens) for h in best]
                if asked.as_json:
                    outputs = [
                        {"text": text, "logp": h.logp, "score": h.score, "finished": h.finished}
                        for text, h in zip(texts, best, strict=True)
                    ]
                    row = {"image": str(getattr(picture, "path", picture.name)), "outputs": outputs}
                    print(json.dumps(row, ensure_ascii=False))
                elif len(pictures) == 1:
                    print("\n".join(texts))
                else:
                    print("\n".join(f"{getattr(picture, 'path', picture.name)}\t{text}" for text in texts))
            sys.stdout.flush()
            tick(len(pictures[first : first + CHUNK]))
    return failed


def _draw(opened: Captioner, asked: Asked, pictures: Sequence[Picture]) -> None:
    """One picture with what was read for each word."""
    if len(pictures) != 1:
        raise DataError(f"--show and -o draw one picture; {len(pictures):,} were given")
    made = traced_picture(opened, pictures[0], _how(opened, asked))
    print(made.target.text)
    out = asked.out or Path(f"{Path(pictures[0].name).stem}-attention.png")
    if out.suffix == ".html":
        from heedful.view.page import link, write_page

        write_page(made, out, link("photo" if made.alignment else "walk"))
    elif out.suffix == ".json":
        made.save(out)
    else:
        from heedful.view.figure import draw

        draw(made, out, "photo", smooth=not asked.raw)
    print(f"where it looked: {out}", file=sys.stderr)
