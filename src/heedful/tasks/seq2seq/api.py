"""Sequence-to-sequence models in Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, overload

from heedful.arguments import as_texts, python_errors
from heedful.tasks.api import Model
from heedful.tasks.generation_result import Generation, UnlikeNotes
from heedful.tasks.limits import OnTooLong
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq
from heedful.tasks.seq2seq.predict import generate_records, generate_texts, make_predictor


class TextGenerator(Model):
    """Lines to lines: translations, summaries, replies."""

    def __init__(self, loaded: LoadedSeq2Seq) -> None:
        super().__init__(loaded)
        self.predictor = make_predictor([loaded])

    @overload
    def __call__(self, inputs: str, *, on_too_long: OnTooLong = "cut", **options: Any) -> str: ...
    @overload
    def __call__(self, inputs: Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> list[str]: ...
    def __call__(self, inputs: str | Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> Any:
        """Return the best output of a line, or of each of several lines; with `n_best`, so many of each, best first.

        `options` are those of decoding: `beam=5`, `method="sample"`, `n_best=3`, `max_length=50`, `seed=1`, ...
        `max_seconds` and `should_stop` end the call early. `on_too_long` says what becomes of a line with more tokens
        than the model reads: "cut", "skip" or "error".

        >>> import heedful
        >>> model = heedful.load("en-fr")
        >>> model("I am happy.", n_best=2)
        ['Je suis heureux.', 'Je suis heureuse.']
        """
        lines, stop = as_texts(inputs), self._stop_condition(options)
        self._check_count(len(lines))
        decoding = self._decoding(options)
        notes = UnlikeNotes()
        with python_errors():
            outputs = generate_texts(self.predictor, lines, decoding, on_too_long=on_too_long, stop=stop, notes=notes)
        notes.finish()
        answers = outputs if decoding.n_best > 1 else [best[0] for best in outputs]
        return answers[0] if isinstance(inputs, str) else answers

    @overload
    def explain(self, inputs: str, *, on_too_long: OnTooLong = "cut", **options: Any) -> Generation: ...
    @overload
    def explain(self, inputs: Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> list[Generation]: ...
    def explain(self, inputs: str | Iterable[str], *, on_too_long: OnTooLong = "cut", **options: Any) -> Any:
        """Return the output of a line, or of each of several, with its confidence and what `--json` prints.

        `unlike_training` says whether the line is unlike the text that the model was trained on, such as a line in
        another language; None if the model folder has no statistics of it.

        >>> import heedful
        >>> result = heedful.load("en-fr").explain("The cat sleeps.")
        >>> result.text, result.unlike_training
        ('Le chat dort.', False)
        """
        lines, stop = as_texts(inputs), self._stop_condition(options)
        self._check_count(len(lines))
        decoding = self._decoding(options)
        with python_errors():
            records = generate_records(self.predictor, lines, decoding, on_too_long=on_too_long, stop=stop)
        results = [Generation.from_record(record) for record in records]
        return results[0] if isinstance(inputs, str) else results
