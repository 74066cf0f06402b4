"""`heedful classify` on the terminal: a text a line in, its label out."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from heedful.cli.progress import writing
from heedful.cli.write import chunks, count
from heedful.data.readers import must_be_file


def run(files: Sequence[Path], model: Path | None, as_json: bool, threads: int = 0) -> None:
    """Write the label of each line and how probable it is, in order; a blank line stays blank."""
    for file in files:
        must_be_file(file)
    from heedful.tasks.bundled import find
    from heedful.tasks.classify_use import classified
    from heedful.tasks.folder import open_for
    from heedful.tasks.licence import say_once

    (folder,) = find([] if model is None else [model], "classify")
    opened = open_for(folder, "classify")
    say_once(opened)
    with writing(count(files)) as tick:
        first = 1
        for lines in chunks(files):
            for line, found in zip(
                lines, classified(opened, lines, weights=as_json, threads=threads, first=first), strict=True
            ):
                if as_json:
                    plain = {"text": line, "label": None} if found is None else found.plain()
                    print(json.dumps(plain, ensure_ascii=False))
                else:
                    print("" if found is None else f"{found.label}\t{found.p:.4f}")
            sys.stdout.flush()
            tick(len(lines))
            first += len(lines)
