"""`heedful classify`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from heedful.cli.console import print_json
from heedful.cli.lines import InputLines, check_files, count_lines
from heedful.cli.options import InputFiles, Model, OnTooLong, OnTooLongChoice, Threads


def classify(
    files: InputFiles = None,
    *,
    model: Model = None,
    threads: Threads = 0,
    on_too_long: OnTooLong = OnTooLongChoice.CUT,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object per line: all probabilities and the weight of each word."),
    ] = False,
) -> None:
    """Classify text. Prints the label and its probability for each line; blank lines stay blank."""
    check_files(files or [])
    from heedful.cli.progress import lines_progress
    from heedful.tasks.bundled import find_models
    from heedful.tasks.classify.predict import classify_lines
    from heedful.tasks.generation_result import UnlikeNotes
    from heedful.tasks.license_notice import show_license_once
    from heedful.tasks.model_folder import load_model_for

    (folder,) = find_models([] if model is None else [model], "classify")
    loaded = load_model_for(folder, "classify")
    show_license_once(loaded)
    inputs, notes = InputLines(files or []), UnlikeNotes()
    with lines_progress(count_lines(files or [])) as on_progress:
        for lines in inputs:
            first = inputs.count - len(lines) + 1
            results = classify_lines(
                loaded,
                lines,
                weights=json,
                threads=threads,
                first_line=first,
                on_too_long=on_too_long.value,
                notes=notes,
            )
            for number, (line, result) in enumerate(zip(lines, results, strict=True), first):
                if json:
                    record = {"text": line, "label": None} if result is None else result.to_dict()
                    print_json(inputs.add_error(number, record))
                else:
                    print("" if result is None else f"{result.label}\t{result.p:.4f}")
            sys.stdout.flush()
            on_progress(len(lines))
    notes.finish()
    inputs.exit_if_failed()
