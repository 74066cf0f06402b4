"""A page of captions, good and bad: images, attention for each word, references and scores."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.viz.document import html_document
from heedful.viz.image import overlay_weights, shrink, to_data_uri
from heedful.viz.page import write_html

if TYPE_CHECKING:
    from PIL.Image import Image

N_PER_GROUP = 12  # captions
PANEL_PIXELS = 112
STYLE = """
body { max-width: 70rem; }
article { display: grid; grid-template-columns: 15rem 1fr; gap: 1.2rem; margin: 1.6rem 0; padding-top: 1.2rem;
  border-top: 1px solid #ccc; }
article > img { width: 15rem; height: auto; border-radius: 4px; }
.caption { font-size: 1.15rem; font-weight: 600; margin: 0; }
.score { color: #555; margin: 0 0 .4rem; }
ul { margin: .3rem 0 .6rem; padding-left: 1.1rem; color: #444; }
.panels { display: flex; flex-wrap: wrap; gap: .5rem; }
figure { margin: 0; width: 112px; }
figure img { width: 112px; height: auto; border-radius: 3px; display: block; }
figcaption { text-align: center; font-size: .85rem; }
@media (max-width: 40rem) { article { grid-template-columns: 1fr; } }
@media (prefers-color-scheme: dark) {
  .score, ul { color: #b5b5b0; } article { border-color: #444; } }
"""


class CaptionEntry(NamedTuple):
    """One caption of the gallery."""

    group: str  # "best", "typical" or "worst"
    name: str
    image: Image
    tokens: Sequence[str]
    caption: str
    references: Sequence[str]
    score: float
    weights: npt.NDArray[np.floating] | None  # (token, region)
    grid: tuple[int, int]


def choose_examples(scores: Sequence[float], n: int = N_PER_GROUP) -> list[tuple[str, int]]:
    """Return the indices of the best, of some typical and of the worst captions, none twice.

    >>> choose_examples([0.1, 0.9, 0.5], 1)
    [('best', 1), ('typical', 2), ('worst', 0)]
    """
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    middle = max(0, len(order) // 2 - n // 2)
    groups = (("best", order[:n]), ("typical", order[middle : middle + n]), ("worst", order[-n:]))
    examples: list[tuple[str, int]] = []
    for group, indices in groups:
        taken = {index for _, index in examples}
        examples += [(group, index) for index in indices if index not in taken]
    return examples


def gallery_html(name: str, entries: Sequence[CaptionEntry]) -> str:
    """Return the page as text."""
    title = f"Captions by {name}"
    parts = [
        f"<h1>{html.escape(title)}</h1>\n<p>Best, typical and worst by CIDEr-D. Below each caption: the attention for"
        " each word, bright where the weight is large. Weights show where the model attended, not why it chose a"
        " word.</p>"
    ]
    group = ""
    for entry in entries:
        if entry.group != group:
            group = entry.group
            parts.append(f"<h2>{group.capitalize()}</h2>")
        parts.append(_article(entry))
    return html_document(title, STYLE, "\n".join(parts), images=True)


def _article(entry: CaptionEntry) -> str:
    caption, name = html.escape(entry.caption), html.escape(entry.name)
    references = "".join(f"<li>{html.escape(text)}</li>" for text in entry.references)
    return (
        f'<article><img src="{to_data_uri(shrink(entry.image))}" alt="{name}"><div>'
        f'<p class="caption">{caption}</p><p class="score">CIDEr-D {entry.score:.2f} · {name}</p>'
        f"<ul>{references}</ul>{_panels(entry)}</div></article>"
    )


def _panels(entry: CaptionEntry) -> str:
    if entry.weights is None:
        return ""
    image = shrink(entry.image, PANEL_PIXELS)
    figures = []
    for token, row in zip(entry.tokens, entry.weights, strict=True):
        word = html.escape(token)
        panel = to_data_uri(overlay_weights(image, row.reshape(entry.grid)), 70)
        figures.append(f'<figure><img src="{panel}" alt=""><figcaption>{word}</figcaption></figure>')
    return f'<div class="panels">{"".join(figures)}</div>'


def write_gallery(path: Path, name: str, entries: Sequence[CaptionEntry]) -> None:
    """Write the page; the file is written atomically."""
    write_html(gallery_html(name, entries), path)
