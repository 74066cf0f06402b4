"""`heedful translate`, `summarize`, `reply` and `transduce`: one line in, one line out."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Callable, Mapping
from typing import Any

from heedful.cli.lines import check_files, count_lines, read_chunks
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
        options = parse_decoding(decoding)
        check_files(files or [])
        from heedful.cli.progress import lines_progress
        from heedful.tasks.bundled import find_models
        from heedful.tasks.seq2seq.predict import generate_records, generate_texts, load_predictor

        warn_if_int8_is_slow(int8)
        predictor = load_predictor(find_models(model or [], task), int8, threads)
        if predictor.task != task:
            raise ModelError(f"{predictor.name} was trained for {predictor.task}; use heedful {predictor.task}")
        options = predictor.decoding.override(options)
        with lines_progress(count_lines(files or [])) as on_progress:
            first_line = 1
            for lines in read_chunks(files or []):
                if json:
                    records = generate_records(predictor, lines, options, on_progress, first_line, on_too_long.value)
                    for record in records:
                        print(json_format.dumps(record, ensure_ascii=False))
                else:
                    texts = generate_texts(predictor, lines, options, on_progress, first_line, on_too_long.value)
                    for outputs in texts:
                        print("\n".join(outputs))
                sys.stdout.flush()
                first_line += len(lines)

    return command
