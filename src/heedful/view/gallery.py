"""A page of captions, good and bad: pictures with what was read for each word, references and scores."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.errors import DataError
from heedful.view.photo import overlay, packed, small
from heedful.whole import whole

if TYPE_CHECKING:
    from PIL.Image import Image

EACH = 12  # captions of each kind
PANEL = 112  # pixels
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1b1b1b; background: #fdfdfc; }
article { display: grid; grid-template-columns: 15rem 1fr; gap: 1.2rem; margin: 1.6rem 0; padding-top: 1.2rem;
  border-top: 1px solid #ccc; }
article > img { width: 15rem; height: auto; border-radius: 4px; }
.said { font-size: 1.15rem; font-weight: 600; margin: 0; }
.score { color: #555; margin: 0 0 .4rem; }
ul { margin: .3rem 0 .6rem; padding-left: 1.1rem; color: #444; }
.panels { display: flex; flex-wrap: wrap; gap: .5rem; }
figure { margin: 0; width: 112px; }
figure img { width: 112px; height: auto; border-radius: 3px; display: block; }
figcaption { text-align: center; font-size: .85rem; }
@media (max-width: 40rem) { article { grid-template-columns: 1fr; } }
@media (prefers-color-scheme: dark) { body { color: #e8e8e6; background: #17181a; }
  .score, ul { color: #b5b5b0; } article { border-color: #444; } }
"""


class Entry(NamedTuple):
    """One caption to be shown."""

    kind: str
    name: str
    picture: Image
    tokens: Sequence[str]
    caption: str
    references: Sequence[str]
    score: float
    weights: npt.NDArray[np.floating] | None  # (token, region)
    grid: tuple[int, int]


def chosen(scores: Sequence[float], each: int = EACH) -> list[tuple[str, int]]:
    """Numbers of the best, of some around the middle, and of the worst; none twice.

    >>> chosen([0.1, 0.9, 0.5], 1)
    [('best', 1), ('typical', 2), ('worst', 0)]
    """
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    middle = max(0, len(order) // 2 - each // 2)
    parts = (("best", order[:each]), ("typical", order[middle : middle + each]), ("worst", order[-each:]))
    found: list[tuple[str, int]] = []
    for kind, numbers in parts:
        seen = {number for _, number in found}
        found += [(kind, number) for number in numbers if number not in seen]
    return found


def gallery_html(name: str, entries: Sequence[Entry]) -> str:
    """The page as text: nothing is fetched."""
    parts, kind = [], ""
    for entry in entries:
        if entry.kind != kind:
            kind = entry.kind
            parts.append(f"<h2>{kind.capitalize()}</h2>")
        parts.append(_article(entry))
    body = "\n".join(parts)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    title = html.escape(f"Captions by {name}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        "<p>Best, typical and worst by CIDEr-D. Under each caption: what was read for its words, light on"
        " dark. It says where the model read from, not why it said what it said.</p>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _article(entry: Entry) -> str:
    caption, name = html.escape(entry.caption), html.escape(entry.name)
    references = "".join(f"<li>{html.escape(text)}</li>" for text in entry.references)
    return (
        f'<article><img src="{packed(small(entry.picture))}" alt="{name}"><div>'
        f'<p class="said">{caption}</p><p class="score">CIDEr-D {entry.score:.2f} · {name}</p>'
        f"<ul>{references}</ul>{_panels(entry)}</div></article>"
    )


def _panels(entry: Entry) -> str:
    if entry.weights is None:
        return ""
    picture = small(entry.picture, PANEL)
    figures = []
    for token, row in zip(entry.tokens, entry.weights, strict=True):
        word = html.escape(token)
        lit = packed(overlay(picture, row.reshape(entry.grid)), 70)
        figures.append(f'<figure><img src="{lit}" alt=""><figcaption>{word}</figcaption></figure>')
    return f'<div class="panels">{"".join(figures)}</div>'


def write_gallery(path: Path, name: str, entries: Sequence[Entry]) -> None:
    """Write the page. Either all of it is written or nothing."""
    text = gallery_html(name, entries)
    with whole(path, DataError) as draft:
        draft.write_text(text, encoding="utf-8")
