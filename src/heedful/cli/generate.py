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
    from heedful.tasks.seq2seq.outputs import TextPredictor

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
        from heedful.stopping import StopCondition
        from heedful.tasks.generation_result import UnlikeNotes
        from heedful.tasks.model_names import is_from_elsewhere
        from heedful.tasks.seq2seq.outputs import generate_records, generate_texts

        if any(map(is_from_elsewhere, model or [])):
            _generate_elsewhere(model or [], files or [], options, max_seconds, json)
            return
        warn_if_int8_is_slow(int8)
        models = _Models(model or [], task, options, int8, threads)
        options = models.predictor.decoding.override(options)
        # with a time limit fewer lines at a time, so that those that are done are printed when it ends
        inputs = InputLines(files or [], options.batch_size if max_seconds is not None else CHUNK)
        stop, notes = StopCondition(max_seconds), UnlikeNotes()
        with lines_progress(count_lines(files or [])) as on_progress, report_timeout(inputs):
            for lines in inputs:
                first, predictor = inputs.count - len(lines) + 1, models.predictor_for(len(lines))
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


class _Models:
    """The models of a call: in NumPy for a few lines, so that the first output does not wait for torch, else in torch.

    Both give the same texts; log-probabilities differ by rounding (tests/numpy_backend).
    """

    def __init__(self, names: Sequence[str], task: str, options: DecodingOptions, int8: bool, threads: int) -> None:
        from heedful.tasks.bundled import find_models
        from heedful.tasks.license_notice import show_license_once
        from heedful.tasks.seq2seq.numpy_predict import load_numpy_predictor

        self.folders, self.int8, self.threads = find_models(names, task), int8, threads
        numpy_predictor = None if int8 or len(self.folders) > 1 else load_numpy_predictor(self.folders[0], options)
        self.needs_torch = numpy_predictor is None
        self.predictor: TextPredictor = self._load() if numpy_predictor is None else numpy_predictor
        if numpy_predictor is not None:
            show_license_once(numpy_predictor)
        if self.predictor.task != task:
            name, trained_for = self.predictor.name, self.predictor.task
            raise ModelError(f"{name} was trained for {trained_for}; use heedful {trained_for}")

    def predictor_for(self, lines: int) -> TextPredictor:
        """Return the predictor for so many lines; once torch is needed, it is used for all that follow."""
        from heedful.tasks.seq2seq.numpy_predict import MAX_LINES

        if not self.needs_torch and lines > MAX_LINES:
            self.needs_torch, self.predictor = True, self._load()
        return self.predictor

    def _load(self) -> TextPredictor:
        from heedful.tasks.seq2seq.predict import load_predictor

        return load_predictor(self.folders, self.int8, self.threads)


def _generate_elsewhere(
    models: Sequence[str],
    files: Sequence[Path],
    options: DecodingOptions,
    max_seconds: float | None,
    json: bool,
) -> None:
    """Generate with a model of another library, by its own settings and search."""
    from heedful.stopping import StopCondition
    from heedful.tasks.open_model import load_from_elsewhere

    if len(models) > 1:
        raise ModelError(f"{', '.join(models)}: models of other libraries cannot form an ensemble")
    loaded = load_from_elsewhere(models[0])
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
