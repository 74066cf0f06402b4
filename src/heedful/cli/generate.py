"""`heedful translate`, `summarize`, `reply` and `transduce`: one line in, one line out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from heedful.cli.console import print_json
from heedful.cli.lines import CHUNK, InputLines, check_files, count_lines, report_timeout
from heedful.cli.options import (
    InputFiles,
    Int8,
    JsonLines,
    Models,
    OnTooLong,
    OnTooLongChoice,
    Threads,
    parse_decoding,
    warn_if_int8_is_slow,
    with_decoding,
)
from heedful.errors import ModelError

COMMANDS: Mapping[str, str] = {  # task -> help
    "translate": "Translate text. One line in, one line out; blank lines stay blank.",
    "summarize": "Summarize text. One text per line in, one headline per line out.",
    "reply": "Reply to utterances. One line in, one line out.",
    "transduce": "Rewrite strings, such as spelling to pronunciation. One line in, one line out.",
}


def make_command(task: str) -> Callable[..., None]:
    """Return the command that generates an output line for each input line."""

    @with_decoding()
    def command(
        files: InputFiles = None,
        *,
        model: Models = None,
        int8: Int8 = False,
        threads: Threads = 0,
        on_too_long: OnTooLong = OnTooLongChoice.CUT,
        json: JsonLines = False,
        **decoding: Any,
    ) -> None:
        options, max_seconds = parse_decoding(decoding), decoding["max_seconds"]
        check_files(files or [])
        from heedful.cli.progress import lines_progress
        from heedful.decoding import StopCondition
        from heedful.tasks.bundled import find_models
        from heedful.tasks.generation_result import UnlikeNotes
        from heedful.tasks.seq2seq.predict import generate_records, generate_texts, load_predictor

        warn_if_int8_is_slow(int8)
        predictor = load_predictor(find_models(model or [], task), int8, threads)
        if predictor.task != task:
            raise ModelError(f"{predictor.name} was trained for {predictor.task}; use heedful {predictor.task}")
        options = predictor.decoding.override(options)
        # with a time limit fewer lines at a time, so that those that are done are printed when it ends
        inputs = InputLines(files or [], options.batch_size if max_seconds is not None else CHUNK)
        stop, notes = StopCondition(max_seconds), UnlikeNotes()
        with lines_progress(count_lines(files or [])) as on_progress, report_timeout(inputs):
            for lines in inputs:
                first = inputs.count - len(lines) + 1
                if json:
                    records = generate_records(
                        predictor, lines, options, on_progress, first, on_too_long.value, stop, notes
                    )
                    for number, record in enumerate(records, first):
                        print_json(inputs.add_error(number, record))
                else:
                    texts = generate_texts(
                        predictor, lines, options, on_progress, first, on_too_long.value, stop, notes
                    )
                    for outputs in texts:
                        print("\n".join(outputs))
                sys.stdout.flush()
                inputs.done += len(lines)
        notes.finish()
        inputs.exit_if_failed()

    return command
