"""`heedful recommend` on the terminal: items for a user or a history, and what spoke for them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from heedful.data.histories import Ints
from heedful.errors import DataError
from heedful.models import Popularity
from heedful.tasks.bundled import find
from heedful.tasks.folder import open_for
from heedful.tasks.licence import say_once
from heedful.tasks.recommend import RecommenderModel
from heedful.tasks.recommend_trace import split_titles
from heedful.tasks.recommend_use import Advice, Weighed, advise, effects, history_of, weighed


class Asked(NamedTuple):
    user: str | None
    items: str | None
    top: int
    reasons: int
    about: str | None
    out: Path | None
    as_json: bool


def run(asked: Asked, model: Path | None) -> None:
    (folder,) = find([] if model is None else [model], "recommend")
    opened: RecommenderModel = open_for(folder, "recommend")
    say_once(opened)
    history = history_of(opened, asked.user, split_titles(asked.items or ""))
    if asked.about is not None and asked.out is None:
        raise DataError("--about: names the item that -o draws; give -o bars.png")
    found = advise(opened, history, asked.top, asked.reasons)
    if asked.as_json:
        print(json.dumps(_plain(opened, asked, history, found), ensure_ascii=False))
    else:
        _print(opened, asked, history, found)
    if asked.out is not None:
        _draw(opened, asked, history, found[0].item)


def _whose(asked: Asked, history: Ints) -> str:
    who = "somebody new" if asked.user is None else f"user {asked.user}"
    return f"{who}, who took {len(history):,} {'item' if len(history) == 1 else 'items'}"


def _print(opened: RecommenderModel, asked: Asked, history: Ints, found: list[Advice]) -> None:
    """A table for people; for a pipe a line an item: place, title, score, reasons, with tabs between."""
    known = opened.words
    counting = isinstance(opened.model, Popularity)
    print(f"for {_whose(asked, history)}:", file=sys.stderr)
    rows = []
    for place, advice in enumerate(found, 1):
        told = "; ".join(f"{known.name(r.item)} ({r.weight:.2f})" for r in advice.reasons)
        score = f"{advice.score:,.0f}" if counting else f"{advice.score:.2f}"
        rows.append([str(place), known.name(advice.item), score, *([] if counting else [told])])
    if not sys.stdout.isatty():
        print("\n".join("\t".join(row) for row in rows))
        return
    heads = ("", "item", "taken by") if counting else ("", "item", "score", "what spoke for it (weight)")
    table = Table(*heads, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(cell.replace("[", r"\[") for cell in row))
    Console(highlight=False).print(table)


def _plain(opened: RecommenderModel, asked: Asked, history: Ints, found: list[Advice]) -> dict[str, Any]:
    known = opened.words

    def item(number: int) -> dict[str, str]:
        return {"id": known.items[number], "title": known.titles[number]}

    return {
        "user": asked.user,
        "history": [item(number) for number in history.tolist()],
        "items": [
            {
                **item(advice.item),
                "score": advice.score,
                "because": [{**item(r.item), "weight": r.weight, "effect": r.effect} for r in advice.reasons],
            }
            for advice in found
        ],
    }


def _draw(opened: RecommenderModel, asked: Asked, history: Ints, first: int) -> None:
    """Bars over the history for the best item, or for the one asked about."""
    from heedful.view.history import BARS, Bar, draw_history

    if isinstance(opened.model, Popularity):
        raise DataError(f"{opened.name} looks at no history: there are no weights to draw")
    assert asked.out is not None
    known = opened.words
    item = first if asked.about is None else known.item(asked.about)
    if asked.out.suffix == ".html":
        _page(opened, asked, known.name(item))
        return
    (found,) = weighed(opened, history, [item])
    places = _strongest(found, history, item)[:BARS]
    lost = effects(opened, history, item, places)
    bars = [
        Bar(known.name(int(history[at])), float(found.weights[at]), effect)
        for at, effect in zip(places, lost, strict=True)
    ]
    bars.sort(key=lambda bar: -abs(bar.effect))  # as in traces: by what leaving it out changes
    left = len(history) - len(bars) - int(item in history)
    draw_history(bars, f"{known.name(item)}\nfor {_whose(asked, history)}", left, asked.out)


def _page(opened: RecommenderModel, asked: Asked, first: str) -> None:
    """The History view of all that is recommended, or of the one asked about."""
    from heedful.tasks.recommend_trace import ITEMS, USER, traced
    from heedful.tasks.tracing import Wanted
    from heedful.view.page import link, write_page

    assert asked.out is not None
    line = f"{ITEMS}{asked.items}" if asked.user is None else f"{USER}{asked.user}"
    made = traced(opened, Wanted(line, target=None if asked.about is None else first))
    write_page(made, asked.out, link("history"))


def _strongest(found: Weighed, history: Ints, item: int) -> list[int]:
    order = sorted(range(len(history)), key=lambda at: -abs(found.adds[at]))
    return [at for at in order if history[at] != item]
