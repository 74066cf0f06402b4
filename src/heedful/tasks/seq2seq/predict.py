"""Generate text with one trained model or an ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import NO_HOOKS, Detail, Hooks
from heedful.config import DataConfig, DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.token_statistics import is_unlike_training
from heedful.data.tokenizer import END, PAD, UNK
from heedful.decoding import NEVER, Hypothesis, StopCondition, search_all
from heedful.errors import ModelError
from heedful.inference.batch_invariant import BatchInvariantModel, widen
from heedful.models import AutoregressiveModel
from heedful.parallel import OnProgress, available_cpus, no_progress
from heedful.tasks.generation import make_generator
from heedful.tasks.generation_result import UnlikeNotes
from heedful.tasks.license_notice import show_license_once
from heedful.tasks.limits import OnTooLong, inference_limits, limit_lines
from heedful.tasks.model_folder import check_task, load_model
from heedful.tasks.seq2seq.assets import LoadedSeq2Seq, Seq2SeqAssets


class Predictor(NamedTuple):
    """One model or an ensemble, with the tokenizers and decoding options it was trained with."""

    name: str
    model: AutoregressiveModel
    assets: Seq2SeqAssets
    decoding: DecodingOptions
    task: str
    limits: DataConfig  # `max_source` and `max_target` at inference
    threads: int = 1  # batches decoded in parallel

    def search(
        self,
        lines: Sequence[str],
        options: DecodingOptions,
        hooks: Hooks = NO_HOOKS,
        on_progress: OnProgress = no_progress,
        stop: StopCondition = NEVER,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line; a blank line has none."""
        filled = [i for i, line in enumerate(lines) if line.strip()]
        on_progress(len(lines) - len(filled))
        sources = [lines[i] for i in filled]
        hypotheses = search_lines(self.model, sources, self.assets, options, hooks, on_progress, self.threads, stop)
        by_line = dict(zip(filled, hypotheses, strict=True))
        return [by_line.get(i, []) for i in range(len(lines))]

    def limit_length(self, lines: Sequence[str], on_too_long: OnTooLong = "cut", first_line: int = 1) -> list[str]:
        """Cut lines that are too long for the model, replace them by blank lines (skip), or raise an error."""
        return limit_lines(lines, self.assets.source, self.limits.max_source, on_too_long, first_line)

    def find_unlike(
        self, lines: Sequence[str], notes: UnlikeNotes | None = None, first_line: int = 1
    ) -> list[bool | None]:
        """Return for each line whether it is unlike the training text, None where that is not known, and note it."""
        source, statistics = self.assets.source, self.assets.statistics
        encoded = zip(lines, source.encode_all(lines), strict=True)
        unlike = [is_unlike_training(line, ids, statistics) if line.strip() else False for line, ids in encoded]
        for number, flag in enumerate(unlike, first_line):
            if flag and notes is not None:
                notes.add(f"line {number}", "most of this text is unlike the training data (few known words)")
        return unlike


def load_predictor(folders: Sequence[Path], int8: bool = False, threads: int = 0) -> Predictor:
    """Load one model folder, or several with the same vocabularies as an ensemble, and show their licenses once.

    `int8` quantizes the large matrices. `threads` 0 uses all processors.
    """
    loaded = [load_model(folder) for folder in folders]
    for model in loaded:
        show_license_once(model)
    return make_predictor(loaded, int8, threads)


def make_predictor(loaded: Sequence[LoadedSeq2Seq], int8: bool = False, threads: int = 0) -> Predictor:
    """Return a predictor of loaded models; raise ModelError if they cannot form an ensemble."""
    first = loaded[0]
    for model in loaded:
        check_task(model.name, model.recipe.task.kind, "translate")
    for other in loaded[1:]:
        _check_ensemble(first, other)
    return Predictor(
        "+".join(model.name for model in loaded),
        make_generator([model.model for model in loaded], int8),
        first.assets,
        first.recipe.decoding,
        first.recipe.task.kind,
        inference_limits([model.recipe for model in loaded]),
        threads or available_cpus(),
    )


def _check_ensemble(first: LoadedSeq2Seq, other: LoadedSeq2Seq) -> None:
    """Raise ModelError if two models differ in task or vocabularies."""
    tasks = first.recipe.task.kind, other.recipe.task.kind
    if tasks[0] != tasks[1]:
        names = f"{first.name} and {other.name}"
        raise ModelError(f"{names} were trained for different tasks ({', '.join(tasks)}) and cannot form an ensemble")
    if not first.assets.equals(other.assets):
        raise ModelError(f"{first.name} and {other.name} have different vocabularies and cannot form an ensemble")


def generate_texts(
    predictor: Predictor,
    lines: Sequence[str],
    options: DecodingOptions,
    on_progress: OnProgress = no_progress,
    first_line: int = 1,
    on_too_long: OnTooLong = "cut",
    stop: StopCondition = NEVER,
    notes: UnlikeNotes | None = None,
) -> list[list[str]]:
    """Return the output texts of each line, best first; a blank line has a blank output.

    Messages number the lines from `first_line`; `notes` are told of lines that are unlike the training text.
    """
    lines = predictor.limit_length(lines, on_too_long, first_line)
    if notes is not None:
        predictor.find_unlike(lines, notes, first_line)
    site, replace = predictor.model.alignment_site, options.replace_unknown
    results = predictor.search(lines, options, on_progress=on_progress, stop=stop)
    return [
        [hypothesis_text(h, line, predictor.assets, site, replace) for h in hypotheses] or [""]
        for line, hypotheses in zip(lines, results, strict=True)
    ]


def generate_records(
    predictor: Predictor,
    lines: Sequence[str],
    options: DecodingOptions,
    on_progress: OnProgress = no_progress,
    first_line: int = 1,
    on_too_long: OnTooLong = "cut",
    stop: StopCondition = NEVER,
    notes: UnlikeNotes | None = None,
) -> list[dict[str, Any]]:
    """Return a record per line: its tokens, and for each output its tokens, scores and alignment."""
    lines = predictor.limit_length(lines, on_too_long, first_line)
    unlike = predictor.find_unlike(lines, notes, first_line)
    return make_records(predictor, lines, unlike, options, on_progress, stop)


def make_records(
    predictor: Predictor,
    lines: Sequence[str],
    unlike: Sequence[bool | None],
    options: DecodingOptions,
    on_progress: OnProgress = no_progress,
    stop: StopCondition = NEVER,
    alignments: bool = True,
) -> list[dict[str, Any]]:
    """Return the records of lines within the length limit; without `alignments`, no tokens and no attention."""
    site = predictor.model.alignment_site if alignments else None
    hooks = Hooks(Detail.WEIGHTS, frozenset({site})) if site is not None else NO_HOOKS
    results = predictor.search(lines, options, hooks, on_progress, stop)
    records = []
    for line, flag, hypotheses in zip(lines, unlike, results, strict=True):
        outputs = [_output_record(predictor, line, hypothesis, options, site, alignments) for hypothesis in hypotheses]
        confidence = hypotheses[0].confidence if hypotheses else None
        reliability = {"confidence": confidence, "unlike_training": flag}
        encoded = predictor.assets.source.encode(line) if alignments and line.strip() else []
        tokens = {"tokens": predictor.assets.source.tokens(encoded)} if alignments else {}
        records.append({"source": line, **tokens, "outputs": outputs, **reliability})
    return records


def _output_record(
    predictor: Predictor,
    line: str,
    hypothesis: Hypothesis,
    options: DecodingOptions,
    site: str | None,
    with_tokens: bool,
) -> dict[str, Any]:
    replaced = options.replace_unknown
    record: dict[str, Any] = {
        "text": hypothesis_text(hypothesis, line, predictor.assets, predictor.model.alignment_site, replaced),
        **({"tokens": predictor.assets.target.tokens(hypothesis.tokens)} if with_tokens else {}),
        "logp": hypothesis.logp,
        "score": hypothesis.score,
        "confidence": hypothesis.confidence,
        "token_logp": list(hypothesis.token_logp),
        "finished": hypothesis.finished,
    }
    if site is not None:
        record["alignment"] = hypothesis.attentions[site].mean(dim=1).tolist()
    return record


def search_lines(
    model: AutoregressiveModel,
    lines: Sequence[str],
    assets: Seq2SeqAssets,
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
    stop: StopCondition = NEVER,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each line, in order; lines of similar length share a batch."""
    if options.replace_unknown and hooks.detail is Detail.NONE and model.alignment_site is not None:
        hooks = Hooks(Detail.WEIGHTS, frozenset({model.alignment_site}))
    ids = assets.source.encode_all(lines)

    def make_batch(rows: Sequence[int]) -> TextBatch:
        source = pad([ids[row] for row in rows])
        return TextBatch(widen(source) if isinstance(model, BatchInvariantModel) else source)

    return search_all(model, make_batch, [len(row) for row in ids], options, hooks, on_progress, threads, stop)


def hypothesis_text(
    hypothesis: Hypothesis, line: str, assets: Seq2SeqAssets, site: str | None, replace_unknown: bool = False
) -> str:
    """Return the text of an output; `replace_unknown` replaces `<unk>` by the source word with the largest weight."""
    if not replace_unknown or site is None or UNK not in hypothesis.tokens or assets.target.kind != "word":
        return assets.target.decode(hypothesis.tokens)
    source = line.split()
    attended = hypothesis.attentions[site].mean(dim=1).argmax(dim=-1).tolist()
    texts = assets.target.tokens(hypothesis.tokens)
    word_ids = assets.source.word_ids(assets.source.encode(line))
    words = []
    for token, text, position in zip(hypothesis.tokens, texts, attended, strict=True):
        if token == UNK and word_ids[position] >= 0:
            words.append(source[word_ids[position]])
        elif token not in (PAD, END):
            words.append(text)
    return " ".join(words)
