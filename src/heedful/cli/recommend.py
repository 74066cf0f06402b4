"""`heedful recommend`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.console import print_json
from heedful.cli.options import Figure, JsonReport, Model
from heedful.errors import DataError

if TYPE_CHECKING:
    from heedful.data.histories import Ints
    from heedful.tasks.recommend.assets import LoadedRecommender
    from heedful.tasks.recommend.predict import Recommendation


def recommend(
    *,
    model: Model = None,
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="User id in the training data.", show_default=False)
    ] = None,
    items: Annotated[
        str | None,
        typer.Option(metavar="TITLES", help='History of a new user: "Title A; Title B".', show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Number of items to recommend.")] = 10,
    reasons: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of history items listed as reasons per recommended item.")
    ] = 3,
    explain: Annotated[
        str | None, typer.Option(metavar="TITLE", help="Item that -o explains (default: the first recommended item).")
    ] = None,
    out: Figure = None,
    json: JsonReport = False,
) -> None:
    """Recommend items to a user. Lists the history items that contributed most to each."""
    from heedful.tasks.bundled import find_models
    from heedful.tasks.license_notice import show_license_once
    from heedful.tasks.model_folder import load_model_for
    from heedful.tasks.recommend.predict import find_history
    from heedful.tasks.recommend.predict import recommend as recommend_items
    from heedful.tasks.recommend.trace import split_titles

    (folder,) = find_models([] if model is None else [model], "recommend")
    loaded: LoadedRecommender = load_model_for(folder, "recommend")
    show_license_once(loaded)
    history = find_history(loaded, user, split_titles(items or ""))
    if explain is not None and out is None:
        raise DataError("--explain: needs -o, the file to draw to")
    recommendations = recommend_items(loaded, history, top, reasons)
    if json:
        print_json(_record(loaded, user, history, recommendations))
    else:
        print(f"for {_describe(user, history)}:", file=sys.stderr)
        _print_table(loaded, recommendations)
    if out is not None:
        item = recommendations[0].item if explain is None else loaded.assets.find_item(explain)
        if out.suffix == ".html":
            _write_page(loaded, user, items, None if explain is None else loaded.assets.name(item), out)
        else:
            _draw_bars(loaded, history, item, _describe(user, history), out)


def _describe(user: str | None, history: Ints) -> str:
    name = "a new user" if user is None else f"user {user}"
    return f"{name} with {len(history):,} {'item' if len(history) == 1 else 'items'}"


def _print_table(loaded: LoadedRecommender, recommendations: list[Recommendation]) -> None:
    """Print a table; to a pipe one line per item: rank, title, score and reasons, separated by tabs."""
    from rich.table import Table

    from heedful.cli.console import make_console
    from heedful.models import Popularity

    popularity = isinstance(loaded.model, Popularity)
    rows = []
    for rank, recommendation in enumerate(recommendations, 1):
        reasons = "; ".join(f"{reason.title} ({reason.weight:.2f})" for reason in recommendation.reasons)
        score = f"{recommendation.score:,.0f}" if popularity else f"{recommendation.score:.2f}"
        rows.append([str(rank), recommendation.title, score, *([] if popularity else [reasons])])
    columns = ("rank", "item", "users") if popularity else ("rank", "item", "score", "reasons (weight)")
    if not sys.stdout.isatty():
        print(f"columns: {', '.join(columns)}", file=sys.stderr)  # lines for programs stay without a header
        print("\n".join("\t".join(row) for row in rows))
        return
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    make_console().print(table)


def _record(
    loaded: LoadedRecommender, user: str | None, history: Ints, recommendations: list[Recommendation]
) -> dict[str, Any]:
    assets = loaded.assets

    def item(number: int) -> dict[str, str]:
        return {"id": assets.items[number], "title": assets.titles[number]}

    return {
        "user": user,
        "history": [item(number) for number in history.tolist()],
        "items": [
            {
                **item(recommendation.item),
                "score": recommendation.score,
                "reasons": [{**item(r.item), "weight": r.weight, "effect": r.effect} for r in recommendation.reasons],
            }
            for recommendation in recommendations
        ],
    }


def _draw_bars(loaded: LoadedRecommender, history: Ints, item: int, user: str, out: Path) -> None:
    """Draw the contribution of each history item to the score of one item."""
    from heedful.models import Popularity
    from heedful.tasks.recommend.predict import leave_one_out, weigh_history
    from heedful.viz.figure import save_figure
    from heedful.viz.history import MAX_BARS, HistoryItem, history_bars

    if isinstance(loaded.model, Popularity):
        raise DataError(f"{loaded.name} does not use the history, so there are no weights to draw")
    name = loaded.assets.name
    (item_weights,) = weigh_history(loaded, history, [item])
    by_contribution = sorted(range(len(history)), key=lambda position: -abs(item_weights.contributions[position]))
    positions = [position for position in by_contribution if history[position] != item][:MAX_BARS]
    effects = leave_one_out(loaded, history, item, positions)
    bars = [
        HistoryItem(name(int(history[position])), float(item_weights.weights[position]), effect)
        for position, effect in zip(positions, effects, strict=True)
    ]
    bars.sort(key=lambda bar: -abs(bar.effect))  # as in traces: by the change without the item
    left_out = len(history) - len(bars) - int(item in history)
    title = f"{name(item)}\nfor {user}"
    save_figure(lambda: history_bars(bars, title, left_out), [*(bar.name for bar in bars), title], out)


def _write_page(loaded: LoadedRecommender, user: str | None, items: str | None, target: str | None, out: Path) -> None:
    """Write the History view of all recommended items, or of one."""
    from heedful.models import Popularity
    from heedful.tasks.base import TraceRequest
    from heedful.tasks.recommend.trace import ITEMS, USER, trace_recommendation
    from heedful.viz.page import page_link, write_page

    if isinstance(loaded.model, Popularity):
        raise DataError(f"{loaded.name} does not use the history, so there are no weights to draw")
    line = f"{ITEMS}{items}" if user is None else f"{USER}{user}"
    trace = trace_recommendation(loaded, TraceRequest(line, target=target))
    write_page(trace, out, page_link("history"))
