"""`heedful models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.console import print_json


def list_models(
    json: Annotated[bool, typer.Option("--json", help="Print the model cards as one JSON object.")] = False,
) -> None:
    """List the bundled models: task, test metrics, size and license."""
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
        print(f"{name}  ({card['task']}: {card.get('about', 'no description')})")
        metrics = ", ".join(f"{metric} {value:.3g}" for metric, value in card.get("test", {}).items())
        if metrics:
            print(f"    test     {metrics} ({card.get('test_on', 'its test data')})")
        print(f"    size     {card['parameters']:,} parameters, {card['bytes'] / 1e6:.1f} MB")
        if "license" in card:
            print(f"    license  {card['license']}")
        print(f"    usage    heedful {card['task']} -m {name}")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
