"""From a line to the trace of its reading: what each word read of those before it, and what it made likely.

What was read are the source's tokens, the start among them; what was foreseen, the target's. Sites are asked
by the source and read the source: a row is the word just read, a column one before it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.attention import Detail, Look, Memory, Override, Watch
from heedful.attention import Edit as Change
from heedful.data.lines import sentences
from heedful.data.tokenizer import START, Tokenizer
from heedful.errors import DataError, TraceError
from heedful.layers.lstmn import TapeState
from heedful.models import Reader
from heedful.models.reader import CausalTransformer, Reading
from heedful.record import Edit, Looks, Side, Site, Step, Token, Top, Trace, site_looks
from heedful.record import Tensor as Packed
from heedful.tasks.read import ReaderModel, first_of
from heedful.tasks.read_words import fitting
from heedful.tasks.tracing import Wanted, edited_line, side_of
from heedful.trace import check
from heedful.trace.capture import LIKELY
from heedful.trace.check import SLOT
from heedful.trace.whatif import change_of, refuse_idle


def traced_text(opened: ReaderModel, wanted: Wanted) -> Trace:
    """Read a line, or what edits make of it, once more with everything watched, in double precision."""
    _check(wanted)
    (line,) = fitting(opened, [edited_line(wanted)])
    if not line.strip():
        raise DataError("nothing of the sentence is left to trace")
    model = copy.deepcopy(opened.model).double()
    (ids,) = opened.words.encode_all([line])
    first = first_of(opened.recipe)
    given = sentences([ids], first).given
    level = Detail.WEIGHTS if wanted.detail == "weights" else Detail.FULL
    with torch.inference_mode():
        read = model.read(given.ids, given.keep, watch=Watch(level, edit=_change(wanted, model)))
        made = _trace(opened, model, wanted, line, ids, read)
    refuse_idle(made)
    return made.signed().model_copy(update={"checks": check(made)})


def _check(wanted: Wanted) -> None:
    if not wanted.line.strip():
        raise DataError("there is nothing to trace in an empty sentence")
    if wanted.target is not None or wanted.reference is not None or wanted.gold is not None:
        raise TraceError("--target, --reference, --gold: a reader writes nothing")
    if wanted.lattice:
        raise TraceError("--what-if: is for models that write; --set asks a reader what if")
    for edit in wanted.edits:
        if edit.op in ("prefix", "gold"):
            raise TraceError(f"{edit.op}: a reader writes nothing; onehot, zero, uniform and source serve")


def _change(wanted: Wanted, model: Reader) -> Change | None:
    """The edits as a change; one for every step waits until its position is on the tape."""
    change_of(wanted.edits, model.alignment)  # what is wrong with all of them is said now
    mine = [edit for edit in wanted.edits if edit.op != "source"]
    if not mine:
        return None

    def change(site: str, look: Look, at: Tensor) -> Override | None:
        assert look.weights is not None
        count = look.weights.shape[-1]
        live = [edit for edit in mine if _there(edit, count)]
        made = change_of(live, model.alignment, seed=wanted.seed)
        return None if made is None or not count else made(site, look, at)

    return change


def _there(edit: Edit, count: int) -> bool:
    return edit.step is not None or edit.position is None or edit.position < count


def _trace(
    opened: ReaderModel, model: Reader, wanted: Wanted, line: str, ids: Sequence[int], read: Reading
) -> Trace:
    words = opened.words.text
    first = first_of(opened.recipe)
    tensors: dict[str, Packed] = {}
    combine: dict[str, str] = {}
    if wanted.detail != "weights":
        tensors["said"] = Packed.of(read.said[0].numpy(), "T", "d")
        combine["said"] = "said"
    sites = [_site(model, site, depth, read, wanted, tensors) for depth, site in enumerate(model.sites)]
    return Trace(
        parent=wanted.parent.id if wanted.parent is not None else None,
        detail=wanted.detail,
        model=opened.described(),
        decode={"method": "forced"},
        source=_read_side(line, ids, words, first),
        target=side_of(ids, words, line),
        steps=_steps(model, read, [first, *ids[:-1]], ids, words),
        sites=sites,
        alignment=model.alignment,
        shift=0,
        tensors=tensors,
        combine=combine,
        edits=list(wanted.edits),
    )


def _read_side(line: str, ids: Sequence[int], words: Tokenizer, first: int) -> Side:
    """What was read: the token before the line, and the line without its end."""
    side = side_of(ids[:-1], words, line)
    start = Token(text="<s>" if first == START else "</s>", role="start", id=first)
    return side.model_copy(update={"tokens": [start, *side.tokens]})


def _steps(
    model: Reader, read: Reading, given: Sequence[int], ids: Sequence[int], words: Tokenizer
) -> list[Step]:
    logp = model.output(read.said[0]).log_softmax(dim=-1)
    entropy = torch.special.entr(logp.exp()).sum(dim=-1).tolist()
    best = logp.topk(min(LIKELY, logp.shape[-1]), dim=-1)
    steps = []
    for t, word in enumerate(ids):
        mine = float(logp[t, word])
        likely = zip(best.values[t].tolist(), best.indices[t].tolist(), strict=True)
        steps.append(
            Step(
                logp=mine,
                input=given[t],
                forced=True,
                rank=int((logp[t] > mine).sum()),
                entropy=entropy[t],
                top=[Top(id=i, text=words.shown(i), logp=value) for value, i in likely],
            )
        )
    return steps


def _site(
    model: Reader, site: Site, depth: int, read: Reading, wanted: Wanted, tensors: dict[str, Packed]
) -> Looks:
    """One site's record. An empty slot is no position: its weight is what rows lack, its score an extra."""
    look = read.looks[site.id]
    assert look.weights is not None
    slots = look.weights.shape[-1] - look.weights.shape[1]
    mass = "at_most_one" if slots else site.mass

    def keep(name: str, tensor: Tensor, *dims: str) -> str:
        tensors[f"{site.id}/{name}"] = Packed.of(tensor.numpy(), *dims)
        return f"{site.id}/{name}"

    named = {"weight": keep("weight", look.weights[0, ..., slots:], "S", "H", "S")}
    extra: dict[str, str] = {}
    if wanted.detail == "full" or (wanted.detail == "steps" and site.id == model.alignment):
        assert look.scores is not None
        assert look.query is not None
        assert look.context is not None
        named["score"] = keep("score", look.scores[0, ..., slots:], "S", "H", "S")
        named["query"] = keep("query", look.query[0], "S", "d")
        named["context"] = keep("context", look.context[0], "S", "H", "d")
        named["value"] = keep("value", _values(model, look, read, depth)[0, slots:], "S", "H", "d")
        if slots:
            extra[SLOT] = keep(SLOT, look.scores[0, ..., 0], "S", "H")
    return site_looks(site._replace(mass=mass), asks="source", reads="source", extra=extra, **named)


def _values(model: Reader, look: Look, read: Reading, depth: int) -> Tensor:
    """What is mixed: hidden states and cells on the tape, or a layer's projections."""
    memory: Memory
    if isinstance(model.core, CausalTransformer):
        assert look.query is not None
        every = torch.ones(look.query.shape[:2], dtype=torch.bool)
        memory = model.core.layers[depth].self_attention.prepare(look.query, every)
    else:
        state = read.state[depth]
        assert isinstance(state, TapeState)
        memory = state.tape
    return memory.values
