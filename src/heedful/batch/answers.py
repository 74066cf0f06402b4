"""From a list of rows to a record for each: one function per task, and what becomes of a row that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.config import DecodingOptions
from heedful.data.images.files import ImageFile
from heedful.errors import DataError, HeedfulError
from heedful.tasks.caption.predict import caption_records, load_backbone, open_pixels
from heedful.tasks.classify.predict import classify_lines
from heedful.tasks.language_model.predict import read_lines
from heedful.tasks.license_notice import show_license_once
from heedful.tasks.limits import limit_lines
from heedful.tasks.model_folder import load_model, load_model_for
from heedful.tasks.recommend.predict import find_history, recommend
from heedful.tasks.seq2seq.predict import make_predictor, make_records

Record = dict[str, Any]
Answer = Callable[[Sequence[str]], list[Record]]
GENERATING = ("translate", "summarize", "reply", "transduce")
VERBS = (*GENERATING, "classify", "caption", "read", "recommend")
TOP = 10  # items recommended per user


def make_answer(verb: str, folder: Path, options: DecodingOptions, int8: bool = False) -> Answer:
    """Load a model and return the function that answers rows with it, on one thread."""
    if verb in GENERATING:
        return _generator(folder, options, int8)
    return _captioner(folder, options) if verb == "caption" else OTHERS[verb](folder)


def answer_each(answer: Answer, rows: Sequence[str]) -> list[Record]:
    """Return a record per row; one that makes `answer` fail gets an error in its place, the others their answers."""
    try:
        return answer(rows)
    except Exception as error:  # whatever is wrong with one row must not end a job of millions
        if len(rows) > 1:
            half = len(rows) // 2
            return answer_each(answer, rows[:half]) + answer_each(answer, rows[half:])
        text = str(error) if isinstance(error, HeedfulError) else f"{type(error).__name__}: {error}"
        return [{"error": text}]


def plain_text(record: Mapping[str, Any]) -> str:
    """Return the one line that stands for a record in a text file; an error is a blank line."""
    if "items" in record:
        return "; ".join(item["title"] for item in record["items"])
    return str(record.get("text", record.get("label", record.get("bits", ""))) or "")


def _generator(folder: Path, options: DecodingOptions, int8: bool) -> Answer:
    loaded = load_model(folder)
    show_license_once(loaded)
    predictor = make_predictor([loaded], int8, threads=1)
    decoding = predictor.decoding.override(options)

    def answer(rows: Sequence[str]) -> list[Record]:
        lines = limit_lines(rows, predictor.assets.source, predictor.limits.max_source, log=_no_log)
        records = make_records(predictor, lines, predictor.find_unlike(lines), decoding, alignments=False)
        answers = [_generation(record, decoding.n_best) for record in records]
        for record, row, line in zip(answers, rows, lines, strict=True):
            if line != row:
                record["cut"] = True  # the model reads no more of it
        return answers

    return answer


def _generation(record: Mapping[str, Any], n_best: int) -> Record:
    outputs = [{key: output[key] for key in ("text", "score", "confidence")} for output in record["outputs"]]
    short: Record = {"text": outputs[0]["text"] if outputs else "", "confidence": record["confidence"]}
    if n_best > 1:
        short["outputs"] = outputs
    return {**short, "unlike_training": record["unlike_training"]}


def _classifier(folder: Path) -> Answer:
    loaded = load_model_for(folder, "classify")
    show_license_once(loaded)

    def answer(rows: Sequence[str]) -> list[Record]:
        results = classify_lines(loaded, rows, threads=1, log=_no_log)
        return [{"label": None} if result is None else {"label": result.label, "p": result.p} for result in results]

    return answer


def _captioner(folder: Path, options: DecodingOptions) -> Answer:
    loaded = load_model_for(folder, "caption")
    show_license_once(loaded)
    backbone, decoding = load_backbone(loaded), loaded.recipe.decoding.override(options)

    def answer(rows: Sequence[str]) -> list[Record]:
        images = [open_pixels(ImageFile(Path(row)), backbone) for row in rows]
        records = caption_records(loaded, backbone, rows, images, decoding)
        return [
            {"image": Path(row).name, **_generation(record, decoding.n_best)}
            for row, record in zip(rows, records, strict=True)
        ]

    return answer


def _language_model(folder: Path) -> Answer:
    loaded = load_model_for(folder, "read")
    show_license_once(loaded)

    def answer(rows: Sequence[str]) -> list[Record]:
        lines = read_lines(loaded, rows, log=_no_log)
        words = [[(word.text, word.bits) for word in line.words] for line in lines]
        return [{"bits": sum(bits for _, bits in line), "words": line} for line in words]

    return answer


def _recommender(folder: Path) -> Answer:
    loaded = load_model_for(folder, "recommend")
    show_license_once(loaded)

    def answer(rows: Sequence[str]) -> list[Record]:
        if not all(row.strip() for row in rows):
            raise DataError("expected the id of a user, found a blank line")
        best = [recommend(loaded, find_history(loaded, row.strip()), TOP) for row in rows]
        items = [[{"id": item.id, "title": item.title, "score": item.score} for item in listed] for listed in best]
        return [{"user": row.strip(), "items": listed} for row, listed in zip(rows, items, strict=True)]

    return answer


def _no_log(_: str) -> None:
    """Drop a note on a line: in a batch it would be one of millions."""


OTHERS: Mapping[str, Callable[[Path], Answer]] = {
    "classify": _classifier,
    "read": _language_model,
    "recommend": _recommender,
}
