"""Using trained models on lines of text: opening one or an ensemble, and what is said of each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DecodingConfig
from heedful.decoding import Ensemble, Hypothesis
from heedful.errors import ModelError
from heedful.models import Writer
from heedful.tasks.folder import Opened, open_model
from heedful.tasks.text import Tick, Vocabularies, answer, nothing, spoken


class Ready(NamedTuple):
    """One model, or several as one, with the vocabulary and the decoding they were trained for."""

    name: str
    writer: Writer
    words: Vocabularies
    decoding: DecodingConfig
    task: str


def open_models(folders: Sequence[Path]) -> Ready:
    """Open one folder, or several whose vocabularies are the same as an ensemble."""
    opened = [open_model(folder) for folder in folders]
    first = opened[0]
    if len(opened) == 1:
        return Ready(first.name, first.model, first.words, first.recipe.decoding, first.recipe.task.kind)
    for other in opened[1:]:
        _same_words(first, other)
    name = "+".join(o.name for o in opened)
    writer = Ensemble([o.model for o in opened])
    return Ready(name, writer, first.words, first.recipe.decoding, first.recipe.task.kind)


def _same_words(first: Opened, other: Opened) -> None:
    if not first.words.same(other.words):
        raise ModelError(
            f"{first.name} and {other.name} have different vocabularies, so they cannot write as one"
        )


def outputs(
    ready: Ready, lines: Sequence[str], how: DecodingConfig, watch: Watch = PLAIN, tick: Tick = nothing
) -> list[list[Hypothesis]]:
    """The hypotheses of each line; a blank line has none. `tick` hears how many lines more are done."""
    full = [i for i, line in enumerate(lines) if line.strip()]
    tick(len(lines) - len(full))
    found = answer(ready.writer, [lines[i] for i in full], ready.words, how, watch, tick)
    by_line = dict(zip(full, found, strict=True))
    return [by_line.get(i, []) for i in range(len(lines))]


def texts(ready: Ready, lines: Sequence[str], how: DecodingConfig, tick: Tick = nothing) -> list[list[str]]:
    """The texts of each line, best first; a blank line gives a blank line."""
    site, replace = ready.writer.alignment, how.replace_unknown
    return [
        [spoken(h, line, ready.words, site, replace) for h in found] or [""]
        for line, found in zip(lines, outputs(ready, lines, how, tick=tick), strict=True)
    ]


def records(
    ready: Ready, lines: Sequence[str], how: DecodingConfig, tick: Tick = nothing
) -> list[dict[str, Any]]:
    """For programs: per line the tokens read, and for each output its tokens, scores and alignment."""
    site = ready.writer.alignment
    watch = Watch(Detail.WEIGHTS, frozenset({site})) if site is not None else PLAIN
    rows = []
    for line, found in zip(lines, outputs(ready, lines, how, watch, tick), strict=True):
        source = ready.words.source.tokens(ready.words.source.encode(line)) if line.strip() else []
        rows.append(
            {"source": line, "tokens": source, "outputs": [_record(ready, line, h, how) for h in found]}
        )
    return rows


def _record(ready: Ready, line: str, hypothesis: Hypothesis, how: DecodingConfig) -> dict[str, Any]:
    site = ready.writer.alignment
    record: dict[str, Any] = {
        "text": spoken(hypothesis, line, ready.words, site, how.replace_unknown),
        "tokens": ready.words.target.tokens(hypothesis.tokens),
        "logp": hypothesis.logp,
        "score": hypothesis.score,
        "token_logp": list(hypothesis.token_logp),
        "finished": hypothesis.finished,
    }
    if site is not None:
        record["alignment"] = hypothesis.looks[site].mean(dim=1).tolist()
    return record
