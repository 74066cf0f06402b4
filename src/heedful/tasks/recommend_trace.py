"""The trace of a recommendation: what was read is a history, what was written are items, best first."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch

from heedful.attention import Detail, Watch
from heedful.data.catalogue import Catalogue
from heedful.data.histories import Ints
from heedful.errors import TraceError
from heedful.models import Judged, Popularity, Recommender
from heedful.record import Side, Step, Tensor, Token, Trace
from heedful.record.trace import Looks, site_looks
from heedful.tasks.recommend import RecommenderModel
from heedful.tasks.recommend_use import best, effects, history_of, weighed
from heedful.trace import check
from heedful.trace.whatif import change_of, refuse_idle

if TYPE_CHECKING:
    from heedful.tasks.tracing import Wanted

USER, ITEMS = "user:", "items:"
TOP = 10
TRIED = 50  # the strongest items of a history, left out one by one
EFFECT, WITHOUT = "effect", "leave-one-out"
SOURCE = "source"  # what a history's items are to whoever looks


def traced(opened: RecommenderModel, wanted: Wanted) -> Trace:
    """`user:ID`, or `items:Title A; Title B`; with a target (titles) those items, else the best ones."""
    known = opened.words
    _refuse(wanted)
    history = named_history(opened, wanted.line)
    if wanted.target is not None:
        items = [known.item(title) for title in split_titles(wanted.target)]
    elif wanted.parent is not None:
        items = [token.id for token in wanted.parent.target.tokens if token.id is not None]
    else:
        items = [item for item, _ in best(opened, history, TOP)]
    made = _trace(opened, wanted, history, items).signed()
    refuse_idle(made)
    return made.model_copy(update={"checks": check(made)})


def named_history(opened: RecommenderModel, line: str) -> Ints:
    if line.startswith(USER):
        return history_of(opened, line.removeprefix(USER).strip())
    if line.startswith(ITEMS):
        return history_of(opened, None, split_titles(line.removeprefix(ITEMS)))
    raise TraceError(f'"{line[:40]}": whose history? say {USER}ID, or {ITEMS}Title A; Title B')


def split_titles(text: str) -> list[str]:
    """
    >>> split_titles("Toy Story; Heat ;")
    ['Toy Story', 'Heat']
    """
    return [title.strip() for title in text.split(";") if title.strip()]


def _refuse(wanted: Wanted) -> None:
    if any(edit.op in ("source", "prefix") for edit in wanted.edits):
        raise TraceError("source, prefix: a history has no words; name other items, or change weights")
    if wanted.lattice:
        raise TraceError(
            "--what-if: is for models that write; -o of heedful recommend shows what items change"
        )
    if wanted.gold is not None or wanted.reference is not None:
        raise TraceError("--gold, --reference: are for models that write")


@torch.inference_mode()
def _trace(opened: RecommenderModel, wanted: Wanted, history: Ints, items: Sequence[int]) -> Trace:
    model = copy.deepcopy(opened.model).double()
    if wanted.edits and (isinstance(model, Popularity) or model.attention is None):
        raise TraceError(f"{opened.name} does not weigh a history, so there are no weights to change")
    change = change_of(wanted.edits, model.alignment, None, wanted.seed)
    level = Detail.WEIGHTS if wanted.detail == "weights" else Detail.FULL
    judged = model.judge(torch.from_numpy(history), torch.tensor(items), Watch(level, edit=change))
    tensors: dict[str, Tensor] = {}
    sites = _sites(model, judged, wanted, tensors) if isinstance(model, Recommender) else []
    tests = {}
    if isinstance(model, Recommender) and not wanted.edits:
        tensors[EFFECT] = Tensor.of(_effects(opened, history, items), "T", "S")
        tests[WITHOUT] = EFFECT
    return Trace(
        parent=wanted.parent.id if wanted.parent is not None else None,
        detail=wanted.detail,
        model=opened.described(),
        decode={"method": "ranking"},
        source=_side(opened.words, history.tolist()),
        target=_side(opened.words, items),
        steps=_steps(model, judged, wanted.target is not None),
        sites=sites,
        alignment=model.alignment,
        tensors=tensors,
        edits=list(wanted.edits),
        tests=tests,
    )


def _effects(opened: RecommenderModel, history: Ints, items: Sequence[int]) -> npt.NDArray[np.float64]:
    """Of each item its score minus that without a history item; not a number where that was not tried."""
    found = np.full((len(items), len(history)), np.nan)
    for row, (item, look) in enumerate(zip(items, weighed(opened, history, items), strict=True)):
        order = np.argsort(-np.abs(look.adds), kind="stable").tolist()
        places = [at for at in order if history[at] != item][:TRIED]
        found[row, places] = effects(opened, history, item, places)
    return found


def _side(known: Catalogue, items: Sequence[int]) -> Side:
    names = [known.name(item) for item in items]
    tokens = [
        Token(text=name, word=at, id=item) for at, (name, item) in enumerate(zip(names, items, strict=True))
    ]
    return Side(text="; ".join(names), tokens=tokens, words=names)


def _steps(model: Recommender | Popularity, judged: Judged, forced: bool) -> list[Step]:
    """How likely each item is to be taken; a count is no likelihood, but its share is."""
    if isinstance(model, Popularity):
        logp = (judged.scores / model.counts.sum()).clamp_min(1e-12).log()
    else:
        logp = torch.nn.functional.logsigmoid(judged.scores)
    return [Step(logp=value, forced=forced) for value in logp.tolist()]


def _sites(model: Recommender, judged: Judged, wanted: Wanted, tensors: dict[str, Tensor]) -> list[Looks]:
    found = []
    if wanted.detail != "weights":
        tensors[SOURCE] = Tensor.of(judged.values.numpy(), "S", "d")
    for site in model.sites:
        look = judged.looks[site.id]
        assert look.weights is not None
        asks, reads = ("target", "source") if site.id == model.alignment else ("source", "source")
        q, k = asks[0].upper(), reads[0].upper()
        named: dict[str, tuple[torch.Tensor, tuple[str, ...]]] = {"weight": (look.weights[0], (q, "H", k))}
        full = wanted.detail == "full" or (wanted.detail == "steps" and site.id == model.alignment)
        if full and look.scores is not None:
            named["score"] = (look.scores[0], (q, "H", k))
        if full and look.query is not None and look.context is not None:
            named["query"] = (look.query[0], (q, "d"))
            named["context"] = (look.context[0], (q, "H", "d"))
        for name, (tensor, dims) in named.items():
            tensors[f"{site.id}/{name}"] = Tensor.of(tensor.numpy(), *dims)
        names = {name: f"{site.id}/{name}" for name in named}
        if full and site.id == model.alignment and model.config.attention.heads == 0:
            names["value"] = SOURCE
        found.append(site_looks(site, asks=asks, reads=reads, **names))
    return found
