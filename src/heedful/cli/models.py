"""`heedful models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.console import print_json


def list_models(
    json: Annotated[bool, typer.Option("--json", help="Print the model cards as one JSON object.")] = False,
) -> None:
    """List the bundled models: what they do, test metrics, limits, size and license."""
    from heedful.tasks.bundled import bundled_models
    from heedful.tasks.model_card import read_card

    cards = {name: {**read_card(folder), "bytes": _size(folder)} for name, folder in bundled_models().items()}
    if json:
        print_json(cards)
        return
    if not cards:
        print("This installation has no bundled models; train one with heedful train.")
        return
    for name, card in cards.items():
        print(f"{name}: {card.get('about', 'no description')}")
        size = f"{card['parameters'] / 1e6:.1f} million parameters, {card['bytes'] / 1e6:.1f} MB"
        print("    " + "; ".join([f"heedful {card['task']} -m {name}", size, card.get("license", "no license stated")]))
        metrics = [(metric, value) for metric, value in card.get("test", {}).items() if not metric.endswith("-raw")]
        if metrics:
            values = ", ".join(f"{metric} {value:.3g}" for metric, value in metrics)
            print(f"    {values} on {card.get('test_on', 'its test data')}")
        if "limits" in card:
            print(f"    limits: {card['limits']}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
