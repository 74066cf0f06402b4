"""`heedful models` on the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from heedful.tasks.bundled import bundled
from heedful.tasks.folder import read_card


def run(as_json: bool) -> None:
    cards = {name: {**read_card(folder), "bytes": _size(folder)} for name, folder in bundled().items()}
    if as_json:
        print(json.dumps(cards, ensure_ascii=False))
        return
    if not cards:
        print("no models come with this heedful; heedful train makes one")
        return
    for name, card in cards.items():
        print(f"{name}  ({card['task']}: {card.get('about', 'no more is said of it')})")
        figures = ", ".join(f"{metric} {value:.3g}" for metric, value in card.get("test", {}).items())
        if figures:
            print(f"    reaches    {figures} ({card.get('test_on', 'its test data')})")
        print(f"    size       {card['parameters']:,} parameters, {card['bytes'] / 1e6:.1f} MB")
        if "licence" in card:
            print(f"    licence    {card['licence']}")
        command = f"heedful {card['task']}"
        print(f"    to use it  {command} -m {name}, or {command} alone where it is the only one")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
