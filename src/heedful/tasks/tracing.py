"""From a line of text to its trace, by any way of decoding, with or without changes on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.numpy import load_file

from heedful.attention import Detail, Watch
from heedful.config import DecodingConfig
from heedful.data.batch import Padded, Regions, TextBatch, pad
from heedful.data.tokenizer import END, PAD, START, UNK, Tokenizer
from heedful.decoding import Beam, own_sites, returned, search, searched
from heedful.errors import TraceError
from heedful.models import Seq2Seq
from heedful.record import Edit, Gold, Side, Tensor, Token, Trace, Tree
from heedful.record.fold import NO_WORD
from heedful.record.trace import Level, Role
from heedful.tasks.kind import WEIGHTS, Opened, hash_of_weights
from heedful.tasks.text import TextModel
from heedful.tasks.writing import method
from heedful.trace import Captured, capture, check, replay
from heedful.trace.capture import Asked
from heedful.trace.lattice import lattice
from heedful.trace.tree import tree_of
from heedful.trace.whatif import change_of, refuse_idle

ROLES: dict[int, Role] = {END: "end", UNK: "unknown", START: "start"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is traced: a line (or a picture's name), and perhaps what to write, to compare with, to change."""

    line: str
    detail: Level = "steps"
    target: str | None = None  # written whatever the model would write
    reference: str | None = None
    gold: Gold | None = None
    edits: Sequence[Edit] = ()
    parent: Trace | None = None
    seed: int = 1
    lattice: bool = False  # with what every position would have changed


class Reading(NamedTuple):
    """What a model read, in numbers and as a reader would want it."""

    source: Padded | Regions
    side: Side


def trace_line(opened: TextModel, wanted: Wanted, how: DecodingConfig) -> Trace:
    """Search an output for a line (or take the one given), and record how the model wrote it."""
    line = edited_line(wanted)
    ids = opened.words.source.encode(line)
    reading = Reading(pad([ids]), side_of(ids, opened.words.source, line))
    return traced(opened, reading, wanted, how, _by_token(wanted, opened, ids))


def traced(
    opened: Opened[Any, Seq2Seq],
    reading: Reading,
    wanted: Wanted,
    how: DecodingConfig,
    gold: Gold | None = None,
) -> Trace:
    """The same of whatever was read. `gold`: links between tokens, for edits that ask for them."""
    model: Seq2Seq = opened.model
    target: Tokenizer = opened.words.target
    change = change_of(wanted.edits, model.alignment, gold, wanted.seed)
    prefix = _prefix(wanted, target)
    tree: Tree | None = None
    packed: dict[str, Tensor] = {}
    if wanted.target is not None:
        written, forced, name = tuple(target.encode(wanted.target)), None, "forced"
    else:
        forced, name = len(prefix), how.method
        batch = TextBatch(reading.source)
        ahead = pad([prefix]) if prefix else None
        beam = method(how)
        site = model.alignment
        watch = Watch(Detail.WEIGHTS, frozenset({site} if site else ()), change)
        if isinstance(beam, Beam):
            with torch.inference_mode():
                state, _ = model.encode(batch, watch)
                whole = searched(model, state, batch, beam, watch, ahead)
            best = [h.tokens for h in returned(whole, 0, own_sites(model.sites))]
            tree, packed = tree_of(whole, site, best, target.shown)
            written = best[0]
        else:
            written = search(model, batch, beam, watch, ahead).best[0][0].tokens
    known = len(written) if forced is None else forced
    captured = capture(model, Asked(reading.source, written, wanted.detail, change, known), target.shown)
    made = _trace(opened, wanted, reading.side, written, captured)
    refuse_idle(made)
    decode = how.model_dump() | {"method": name}
    made = made.model_copy(
        update={"decode": decode, "beam": tree, "tensors": {**made.tensors, **packed}}
    ).signed()
    found = lattice(model, reading.source, written, target.shown) if wanted.lattice else []
    return made.model_copy(update={"checks": check(made), "whatif": found})


def replayed(trace: Trace, folder: Path) -> Trace:
    """The trace with all its checks, those that need the model's parameters too."""
    if trace.model.sha256 not in (None, hash_of_weights(folder)):
        raise TraceError(f"{folder}: its weights are not those the trace was made with")
    parameters = {name: np.asarray(w) for name, w in load_file(folder / WEIGHTS).items()}
    return trace.model_copy(update={"checks": replay(trace, parameters)})


def _trace(
    opened: Opened[Any, Seq2Seq], wanted: Wanted, read: Side, written: Sequence[int], captured: Captured
) -> Trace:
    model = opened.model
    return Trace(
        parent=wanted.parent.id if wanted.parent is not None else None,
        detail=wanted.detail,
        model=opened.described(),
        source=read,
        target=side_of(written, opened.words.target, reference=wanted.reference),
        gold=wanted.gold,
        steps=captured.steps,
        sites=captured.sites,
        alignment=model.alignment,
        shift=model.shift,
        tensors=captured.tensors,
        combine=captured.combine,
        edits=list(wanted.edits),
    )


def side_of(
    ids: Sequence[int], tokenizer: Tokenizer, line: str | None = None, reference: str | None = None
) -> Side:
    """Tokens as a reader would want them; an unknown word of the source is shown as it was typed."""
    of_word = tokenizer.words(ids)
    texts = tokenizer.tokens(ids)
    typed = line.split() if line is not None else None
    words = typed if typed is not None else tokenizer.word_texts(ids)
    tokens = [
        Token(
            text=words[word] if tokenizer.kind == "word" and word != NO_WORD else text,
            word=word,
            role=ROLES.get(i, "normal"),
            id=i,
        )
        for i, text, word in zip(ids, texts, of_word, strict=True)
        if i != PAD
    ]
    text = line if line is not None else tokenizer.decode(ids)
    return Side(text=text, tokens=tokens, words=words, reference=reference)


def edited_line(wanted: Wanted) -> str:
    """The line with words replaced or erased."""
    edits = [edit for edit in wanted.edits if edit.op == "source"]
    words = wanted.line.split()
    for edit in sorted(edits, key=lambda e: -(e.position or 0)):
        assert edit.position is not None
        if not 0 <= edit.position < len(words):
            raise TraceError(
                f"source: there is no word {edit.position}; the sentence has 0 to {len(words) - 1}"
            )
        words[edit.position : edit.position + 1] = [] if edit.text is None else [edit.text]
    return " ".join(words) if edits else wanted.line


def _prefix(wanted: Wanted, target: Tokenizer) -> list[int]:
    """The first tokens that are forced: by an edit, or those before the first edited step of the parent."""
    texts = [edit.text for edit in wanted.edits if edit.op == "prefix" and edit.text]
    if texts:
        return target.encode(texts[-1])[:-1]
    steps = [edit.step for edit in wanted.edits if edit.step is not None and edit.op != "source"]
    if wanted.parent is None or not steps:
        return []
    ids = [token.id for token in wanted.parent.target.tokens[: min(steps)]]
    return [i for i in ids if i is not None]


def _by_token(wanted: Wanted, opened: TextModel, source: Sequence[int]) -> Gold | None:
    """Gold links between tokens: those of words, for every pair of their pieces."""
    written = wanted.target if wanted.target is not None else wanted.reference
    if wanted.gold is None or written is None:
        return wanted.gold
    wrote = opened.words.target.words(opened.words.target.encode(written))
    return gold_by_token(wanted.gold, opened.words.source.words(source), wrote)


def gold_by_token(gold: Gold | None, read: Sequence[int], wrote: Sequence[int]) -> Gold | None:
    """Links between the tokens of both sides, given the word of each."""
    if gold is None:
        return None
    links = set(gold.sure)
    pairs = [(s, t) for s, ws in enumerate(read) for t, wt in enumerate(wrote) if (ws, wt) in links]
    return Gold(sure=pairs)
