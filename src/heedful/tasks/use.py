"""Using trained models on lines of text: opening one or an ensemble, and what is said of each line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.attention import PLAIN, Detail, Watch
from heedful.config import DataConfig, DecodingConfig, Recipe
from heedful.data.tokenizer import Tokenizer
from heedful.decoding import Ensemble, Hypothesis
from heedful.errors import DataError, ModelError
from heedful.models import Writer, quickest
from heedful.tasks.folder import RECIPE, open_model, refuse_others
from heedful.tasks.text import TextModel, Vocabularies, answer, spoken
from heedful.tasks.writing import Tick, nothing

LONGEST = 1_000  # tokens that are read even where training knew only shorter ones: how it fares is a question
Say = Callable[[str], None]


class Ready(NamedTuple):
    """One model, or several as one, with the vocabulary and the decoding they were trained for."""

    name: str
    writer: Writer
    words: Vocabularies
    decoding: DecodingConfig
    task: str
    limits: DataConfig  # how long a line may be, and what is done with a longer one
    recipe: Path  # where that is said
    threads: int = 1  # in which batches are searched side by side


def open_models(folders: Sequence[Path], int8: bool = False, threads: int = 0) -> Ready:
    """Open one folder, or several whose vocabularies are the same as an ensemble.

    `int8`: with the large matrices in bytes. `threads`: 0 takes as many as there are processors.
    """
    return ready_of([open_model(folder) for folder in folders], int8, threads)


def ready_of(opened: Sequence[TextModel], int8: bool = False, threads: int = 0) -> Ready:
    """The same of models that are open already; those that do not turn lines into lines are refused."""
    first = opened[0]
    for model in opened:
        refuse_others(model.name, model.recipe.task.kind, "translate")
    for other in opened[1:]:
        _same_words(first, other)
    name = "+".join(o.name for o in opened)
    models: list[Writer] = [quickest(o.model) if int8 else o.model for o in opened]
    writer = Ensemble(models) if len(models) > 1 else models[0]
    recipe = first.recipe
    limits = limits_of([o.recipe for o in opened])
    threads = threads or processors()
    where = first.path / RECIPE
    return Ready(name, writer, first.words, recipe.decoding, recipe.task.kind, limits, where, threads)


def processors() -> int:
    """Those this process may use; not every system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limits_of(recipes: Sequence[Recipe]) -> DataConfig:
    """The lengths that every one of the models can take, and the policy of the first."""
    source = min(_longest_source(recipe) for recipe in recipes)
    target = min(max(recipe.data.max_target, LONGEST) for recipe in recipes)
    return recipes[0].data.model_copy(update={"max_source": source, "max_target": target})


def _longest_source(recipe: Recipe) -> int:
    encoder, most = recipe.model.encoder, max(recipe.data.max_source, LONGEST)
    table = encoder.kind in ("conv", "transformer") and encoder.positions == "learned"
    return min(most, encoder.max_positions - 1) if table else most  # one is the end token's


def _same_words(first: TextModel, other: TextModel) -> None:
    tasks = first.recipe.task.kind, other.recipe.task.kind
    if tasks[0] != tasks[1]:
        raise ModelError(
            f"{first.name} and {other.name} were trained for different tasks ({', '.join(tasks)}), so they"
            " cannot write as one"
        )
    if not first.words.same(other.words):
        raise ModelError(
            f"{first.name} and {other.name} have different vocabularies, so they cannot write as one"
        )


def aloud(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def fitting(ready: Ready, lines: Sequence[str], first: int = 1, say: Say = aloud) -> list[str]:
    """The lines under the recipe's own policy for long ones: refused, left out (blank), or cut.

    One line of 100,000 words would hold up all the others, or take all memory. `first` is the number of the
    first line, for what is said.
    """
    return no_longer(lines, ready.words.source, ready.limits, ready.recipe, first, say)


def no_longer(
    lines: Sequence[str],
    source: Tokenizer,
    limits: DataConfig,
    recipe: Path,
    first: int = 1,
    say: Say = aloud,
) -> list[str]:
    """The same under any limits; `recipe` is where they are said."""
    most = limits.max_source
    kept = []
    for number, line in enumerate(lines, first):
        # a character gives four tokens at most: bytes
        count = len(source.encode(line)) - 1 if 4 * len(line) >= most else 0
        if count <= most:
            kept.append(line)
            continue
        what = f'line {number} ("{line[:20]}…") has {count:,} tokens, more than the {most:,} that are read'
        if limits.longer == "refuse":
            raise DataError(f'{what}; data.longer = "cut" or "skip" in {recipe} goes on')
        cut = limits.longer == "cut"
        say(f"{what}: {f'only the first {most:,} are' if cut else 'it is left out'}")
        kept.append(source.cut(line, most) if cut else "")
    return kept


def outputs(
    ready: Ready, lines: Sequence[str], how: DecodingConfig, watch: Watch = PLAIN, tick: Tick = nothing
) -> list[list[Hypothesis]]:
    """The hypotheses of each line; a blank line has none. `tick` hears how many lines more are done."""
    full = [i for i, line in enumerate(lines) if line.strip()]
    tick(len(lines) - len(full))
    found = answer(ready.writer, [lines[i] for i in full], ready.words, how, watch, tick, ready.threads)
    by_line = dict(zip(full, found, strict=True))
    return [by_line.get(i, []) for i in range(len(lines))]


def texts(
    ready: Ready, lines: Sequence[str], how: DecodingConfig, tick: Tick = nothing, first: int = 1
) -> list[list[str]]:
    """The texts of each line, best first; a blank line gives a blank line. `first`: see `fitting`."""
    lines = fitting(ready, lines, first)
    site, replace = ready.writer.alignment, how.replace_unknown
    return [
        [spoken(h, line, ready.words, site, replace) for h in found] or [""]
        for line, found in zip(lines, outputs(ready, lines, how, tick=tick), strict=True)
    ]


def records(
    ready: Ready, lines: Sequence[str], how: DecodingConfig, tick: Tick = nothing, first: int = 1
) -> list[dict[str, Any]]:
    """For programs: per line the tokens read, and for each output its tokens, scores and alignment."""
    lines = fitting(ready, lines, first)
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
