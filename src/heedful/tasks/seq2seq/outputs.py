"""Texts and records of generated outputs, for any predictor: of PyTorch or of NumPy. Imports no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from heedful.config import DataConfig, DecodingOptions
from heedful.config.decoding import MAX_BEAM
from heedful.data.capitals import is_all_capitals, recase
from heedful.data.token_statistics import is_unlike_training
from heedful.data.tokenizer import END, PAD, UNK
from heedful.hypothesis import Hypothesis
from heedful.parallel import OnProgress, no_progress
from heedful.stopping import NEVER, StopCondition
from heedful.tasks.generation_result import UnlikeNotes
from heedful.tasks.limits import OnTooLong, limit_lines
from heedful.tasks.seq2seq.text_assets import TextAssets

CANDIDATES = 4  # hypotheses per output that is asked for, since several may have the same text


class TextPredictor(Protocol):
    """A model or an ensemble that generates text, with the tokenizers and decoding options it was trained with."""

    @property
    def name(self) -> str: ...
    @property
    def assets(self) -> TextAssets: ...
    @property
    def decoding(self) -> DecodingOptions: ...
    @property
    def task(self) -> str: ...
    @property
    def limits(self) -> DataConfig: ...  # `max_source` and `max_target` at inference
    @property
    def alignment_site(self) -> str | None: ...

    def generate(
        self,
        lines: Sequence[str],
        options: DecodingOptions,
        with_weights: bool = False,
        on_progress: OnProgress = no_progress,
        stop: StopCondition = NEVER,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line; a blank line has none. `with_weights` records the alignment site."""


def line_as_read(line: str, options: DecodingOptions) -> str:
    """Return the line as the model reads it: not all in capitals, if `options.capitals` says so."""
    return recase(line) if options.capitals == "recase" and is_all_capitals(line) else line


def limit_length(
    predictor: TextPredictor, lines: Sequence[str], on_too_long: OnTooLong = "cut", first_line: int = 1
) -> list[str]:
    """Cut lines that are too long for the model, replace them by blank lines (skip), or raise an error."""
    return limit_lines(lines, predictor.assets.source, predictor.limits.max_source, on_too_long, first_line)


def find_unlike(
    predictor: TextPredictor, lines: Sequence[str], notes: UnlikeNotes | None = None, first_line: int = 1
) -> list[bool | None]:
    """Return for each line whether it is unlike the training text, None where that is not known, and note it."""
    assets, lines = predictor.assets, [line_as_read(line, predictor.decoding) for line in lines]
    encoded = zip(lines, assets.source.encode_all(lines), strict=True)
    unlike = [is_unlike_training(line, ids, assets.statistics) if line.strip() else False for line, ids in encoded]
    for number, flag in enumerate(unlike, first_line):
        if flag and notes is not None:
            notes.add(f"line {number}", "most of this text is unlike the training data (few known words)")
    return unlike


def generate_texts(
    predictor: TextPredictor,
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
    lines = limit_length(predictor, lines, on_too_long, first_line)
    if notes is not None:
        find_unlike(predictor, lines, notes, first_line)
    results = _generate_distinct(predictor, lines, options, False, on_progress, stop)
    return [
        [hypothesis_text(h, line, predictor, options) for h in hypotheses] or [""]
        for line, hypotheses in zip(lines, results, strict=True)
    ]


def generate_records(
    predictor: TextPredictor,
    lines: Sequence[str],
    options: DecodingOptions,
    on_progress: OnProgress = no_progress,
    first_line: int = 1,
    on_too_long: OnTooLong = "cut",
    stop: StopCondition = NEVER,
    notes: UnlikeNotes | None = None,
) -> list[dict[str, Any]]:
    """Return a record per line: its tokens, and for each output its tokens, scores and alignment."""
    lines = limit_length(predictor, lines, on_too_long, first_line)
    unlike = find_unlike(predictor, lines, notes, first_line)
    return make_records(predictor, lines, unlike, options, on_progress, stop)


def make_records(
    predictor: TextPredictor,
    lines: Sequence[str],
    unlike: Sequence[bool | None],
    options: DecodingOptions,
    on_progress: OnProgress = no_progress,
    stop: StopCondition = NEVER,
    alignments: bool = True,
) -> list[dict[str, Any]]:
    """Return the records of lines within the length limit; without `alignments`, no tokens and no attention."""
    site = predictor.alignment_site if alignments else None
    results = _generate_distinct(predictor, lines, options, site is not None, on_progress, stop)
    records = []
    for line, flag, hypotheses in zip(lines, unlike, results, strict=True):
        outputs = [_output_record(predictor, line, hypothesis, options, site, alignments) for hypothesis in hypotheses]
        confidence = hypotheses[0].confidence if hypotheses else None
        reliability = {"confidence": confidence, "unlike_training": flag}
        read = line_as_read(line, options)
        encoded = predictor.assets.source.encode(read) if alignments and line.strip() else []
        tokens = {"tokens": predictor.assets.source.tokens(encoded)} if alignments else {}
        records.append({"source": line, **tokens, "outputs": outputs, **reliability})
    return records


def _generate_distinct(
    predictor: TextPredictor,
    lines: Sequence[str],
    options: DecodingOptions,
    with_weights: bool,
    on_progress: OnProgress,
    stop: StopCondition,
) -> list[list[Hypothesis]]:
    """Generate; of several outputs of a beam, those with different texts come first.

    The same text has several segmentations into subwords, all of which are likely after training with BPE-dropout.
    Where outputs have the same text, others are looked for with a larger beam.
    """
    results = predictor.generate(lines, options, with_weights, on_progress, stop)
    if options.n_best == 1 or options.method != "beam":
        return results
    repeated = [i for i, outputs in enumerate(results) if len(_by_text(outputs, predictor)) < len(outputs)]
    if repeated:
        beam = max(options.beam, min(CANDIDATES * options.n_best, MAX_BEAM))
        wide = options.model_copy(update={"beam": beam, "n_best": beam})
        more = predictor.generate([lines[i] for i in repeated], wide, with_weights, stop=stop)
        for i, others in zip(repeated, more, strict=True):
            distinct = list(_by_text([*results[i], *others], predictor).values())
            same = [output for output in results[i] if all(output is not chosen for chosen in distinct)]
            results[i] = [*distinct, *same][: options.n_best]
    return results


def _by_text(hypotheses: Sequence[Hypothesis], predictor: TextPredictor) -> dict[str, Hypothesis]:
    """Return the first hypothesis of each text."""
    first: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        first.setdefault(predictor.assets.target.decode(hypothesis.tokens), hypothesis)
    return first


def _output_record(
    predictor: TextPredictor,
    line: str,
    hypothesis: Hypothesis,
    options: DecodingOptions,
    site: str | None,
    with_tokens: bool,
) -> dict[str, Any]:
    record: dict[str, Any] = {
        "text": hypothesis_text(hypothesis, line, predictor, options),
        **({"tokens": predictor.assets.target.tokens(hypothesis.tokens)} if with_tokens else {}),
        "logp": hypothesis.logp,
        "score": hypothesis.score,
        "confidence": hypothesis.confidence,
        "token_logp": list(hypothesis.token_logp),
        "finished": hypothesis.finished,
    }
    if site is not None:
        record["alignment"] = hypothesis.attentions[site].mean(axis=1).tolist()
    return record


def hypothesis_text(hypothesis: Hypothesis, line: str, predictor: TextPredictor, options: DecodingOptions) -> str:
    """Return the text of an output: in capitals if the line was recased, with `<unk>` replaced if wanted."""
    read = line_as_read(line, options)
    text = _replace_unknown(hypothesis, read, predictor) if options.replace_unknown else None
    if text is None:
        text = predictor.assets.target.decode(hypothesis.tokens)
    return text.upper() if read != line else text


def _replace_unknown(hypothesis: Hypothesis, line: str, predictor: TextPredictor) -> str | None:
    """Return the text with `<unk>` replaced by the source word with the largest weight, None if that is not needed."""
    assets, site = predictor.assets, predictor.alignment_site
    if site is None or UNK not in hypothesis.tokens or assets.target.kind != "word":
        return None
    source = line.split()
    attended = hypothesis.attentions[site].mean(axis=1).argmax(axis=-1).tolist()
    texts = assets.target.tokens(hypothesis.tokens)
    word_ids = assets.source.word_ids(assets.source.encode(line))
    words = []
    for token, text, position in zip(hypothesis.tokens, texts, attended, strict=True):
        if token == UNK and word_ids[position] >= 0:
            words.append(source[word_ids[position]])
        elif token not in (PAD, END):
            words.append(text)
    return " ".join(words)
