"""`heedful translate`, `summarize`, `reply` and `transduce`: one line in, one line out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from heedful.config import DecodingOptions

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
        from heedful.tasks.open_model import is_from_elsewhere, load_from_elsewhere
        from heedful.tasks.seq2seq.predict import generate_records, generate_texts, load_predictor

        if any(map(is_from_elsewhere, model or [])):
            _generate_elsewhere(load_from_elsewhere, model or [], files or [], options, max_seconds, json)
            return
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


def _generate_elsewhere(
    load: Callable[[str], Any],
    models: Sequence[str],
    files: Sequence[Path],
    options: DecodingOptions,
    max_seconds: float | None,
    json: bool,
) -> None:
    """Generate with a model of another library, by its own settings and search."""
    from heedful.decoding import StopCondition

    if len(models) > 1:
        raise ModelError(f"{', '.join(models)}: models of other libraries cannot form an ensemble")
    loaded = load(models[0])
    inputs, stop = InputLines(list(files)), StopCondition(max_seconds)
    with report_timeout(inputs):
        for lines in inputs:
            first = inputs.count - len(lines) + 1
            for number, (line, outputs) in enumerate(
                zip(lines, loaded.task.generate(loaded, lines, options, stop), strict=True), first
            ):
                if json:
                    record = {"source": line, "outputs": [{"text": text} for text in outputs]}
                    print_json(inputs.add_error(number, record))
                else:
                    print("\n".join(outputs))
            sys.stdout.flush()
            inputs.done += len(lines)
    inputs.exit_if_failed()
