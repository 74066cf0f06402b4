"""Traces of recommenders: the source is a history, the target the recommended items, best first."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from heedful.attention import Detail, Hooks
from heedful.data.catalog import Catalog
from heedful.data.histories import Ints
from heedful.errors import TooLargeError, TraceError
from heedful.models import Popularity, Recommender, RecommenderOutput
from heedful.tasks.base import TraceRequest
from heedful.tasks.recommend.assets import LoadedRecommender
from heedful.tasks.recommend.predict import find_history, leave_one_out, top_items, weigh_history
from heedful.trace.check import check
from heedful.trace.counterfactuals import recommender_counterfactuals
from heedful.trace.edits import build_edit_hook, validate_edits
from heedful.trace.schema import PackedTensor, Side, SiteRecord, Step, Token, Trace
from heedful.trace.steps import check_log_probabilities
from heedful.trace.terms import pack_score_terms

USER, ITEMS = "user:", "items:"
TOP = 10
N_LEFT_OUT = 50  # items of a history with the largest contributions, left out one by one
MAX_TARGETS = 1_000  # recommended items in a trace
EFFECT, LEAVE_ONE_OUT = "effect", "leave-one-out"
SOURCE = "source"


def trace_recommendation(loaded: LoadedRecommender, request: TraceRequest, history: Ints | None = None) -> Trace:
    """Record the scores of items for a history, or for `user:ID` or `items:Title A; Title B` of the request.

    The items are those of the request's target (titles), of its parent, or the best ones.
    """
    _check_request(request)
    history = parse_history(loaded, request.input) if history is None else history
    if request.target is not None:
        titles = split_titles(request.target)
        if len(titles) > MAX_TARGETS:
            raise TooLargeError(f"--target: {len(titles):,} items; a trace has at most {MAX_TARGETS:,}")
        items = [loaded.assets.find_item(title) for title in titles]
    elif request.parent is not None:
        items = [token.id for token in request.parent.target.tokens if token.id is not None]
    else:
        items = [item for item, _ in top_items(loaded, history, TOP)]
    trace = _make_trace(loaded, request, history, items).with_id()
    validate_edits(trace)
    counterfactuals = []
    if isinstance(loaded.model, Recommender) and request.wants_counterfactuals(trace.source, trace.target):
        targets = torch.tensor(items)
        counterfactuals = recommender_counterfactuals(
            loaded.model, torch.from_numpy(history), targets, loaded.assets.name
        )
    return trace.model_copy(update={"checks": check(trace), "counterfactuals": counterfactuals})


def parse_history(loaded: LoadedRecommender, text: str) -> Ints:
    """Return the history of `user:ID`, or that of `items:Title A; Title B`."""
    if text.startswith(USER):
        return find_history(loaded, text.removeprefix(USER).strip())
    if text.startswith(ITEMS):
        return find_history(loaded, None, split_titles(text.removeprefix(ITEMS)))
    raise TraceError(f'"{text[:40]}": expected {USER}ID, or {ITEMS}Title A; Title B')


def split_titles(text: str) -> list[str]:
    """Split titles at semicolons.

    >>> split_titles("Toy Story; Heat ;")
    ['Toy Story', 'Heat']
    """
    return [title.strip() for title in text.split(";") if title.strip()]


def _check_request(request: TraceRequest) -> None:
    if any(edit.op in ("source", "prefix") for edit in request.edits):
        raise TraceError("source, prefix: a history has no words; name other items, or edit weights")
    if request.gold is not None or request.reference is not None:
        raise TraceError("--gold, --reference: are for models that generate text")


@torch.inference_mode()
def _make_trace(loaded: LoadedRecommender, request: TraceRequest, history: Ints, items: Sequence[int]) -> Trace:
    model = copy.deepcopy(loaded.model).double()
    if request.edits and (isinstance(model, Popularity) or model.attention is None):
        raise TraceError(f"{loaded.name} has no attention over a history, so there are no weights to edit")
    edit = build_edit_hook(request.edits, model.alignment_site, None, request.seed)
    level = Detail.WEIGHTS if request.detail == "weights" else Detail.FULL
    output = model.score_items(torch.from_numpy(history), torch.tensor(items), Hooks(level, edit=edit))
    tensors: dict[str, PackedTensor] = {}
    sites = _site_records(model, output, request, tensors) if isinstance(model, Recommender) else []
    attributions = {}
    if isinstance(model, Recommender) and not request.edits:
        tensors[EFFECT] = PackedTensor.pack(_leave_one_out_effects(loaded, history, items), "T", "S")
        attributions[LEAVE_ONE_OUT] = EFFECT
    return Trace.build(
        parent=request.parent.id if request.parent is not None else None,
        detail=request.detail,
        model=loaded.describe(),
        decoding={"method": "ranking"},
        source=_make_side(loaded.assets, history.tolist()),
        target=_make_side(loaded.assets, items),
        steps=_make_steps(model, output, request.target is not None),
        sites=sites,
        alignment_site=model.alignment_site,
        tensors=tensors,
        edits=list(request.edits),
        attributions=attributions,
    )


def _leave_one_out_effects(loaded: LoadedRecommender, history: Ints, items: Sequence[int]) -> npt.NDArray[np.float64]:
    """Return each item's score minus that without a history item: (item, history); NaN where it was not computed."""
    effects = np.full((len(items), len(history)), np.nan)
    for row, (item, item_weights) in enumerate(zip(items, weigh_history(loaded, history, items), strict=True)):
        order = np.argsort(-np.abs(item_weights.contributions), kind="stable").tolist()
        positions = [position for position in order if history[position] != item][:N_LEFT_OUT]
        effects[row, positions] = leave_one_out(loaded, history, item, positions)
    return effects


def _make_side(catalog: Catalog, items: Sequence[int]) -> Side:
    names = [catalog.name(item) for item in items]
    tokens = [Token(text=name, word=i, id=item) for i, (name, item) in enumerate(zip(names, items, strict=True))]
    return Side(text="; ".join(names), tokens=tokens, words=names)


def _make_steps(model: Recommender | Popularity, output: RecommenderOutput, forced: bool) -> list[Step]:
    """Return log p of each item; that of a popularity count is its share of all counts."""
    if isinstance(model, Popularity):
        logp = (output.scores / model.counts.sum()).clamp_min(1e-12).log()
    else:
        logp = torch.nn.functional.logsigmoid(output.scores)
    check_log_probabilities(logp, logp)
    return [Step(logp=value, forced=forced) for value in logp.tolist()]


def _site_records(
    model: Recommender, output: RecommenderOutput, request: TraceRequest, tensors: dict[str, PackedTensor]
) -> list[SiteRecord]:
    """Return the record of each site, and add its tensors to `tensors`."""
    records = []
    if request.detail != "weights":
        tensors[SOURCE] = PackedTensor.pack(output.values.numpy(), "S", "d")
    for site in model.sites:
        attention = output.attentions[site.id]
        assert attention.weights is not None
        aligned = site.id == model.alignment_site
        query_side, key_side = ("target", "source") if aligned else ("source", "source")
        q, k = query_side[0].upper(), key_side[0].upper()
        arrays: dict[str, tuple[torch.Tensor, tuple[str, ...]]] = {"weights": (attention.weights[0], (q, "H", k))}
        full = request.detail == "full" or (request.detail == "steps" and aligned)
        if full and attention.scores is not None:
            arrays["scores"] = (attention.scores[0], (q, "H", k))
        if full and attention.query is not None and attention.head_contexts is not None:
            arrays["query"] = (attention.query[0], (q, "d"))
            arrays["context"] = (attention.head_contexts[0], (q, "H", "d"))
        if full and aligned and model.attention is not None and attention.query is not None:
            keep = torch.ones((1, len(output.values)), dtype=torch.bool)
            memory = model.attention.prepare(output.values[None], keep)
            tensors |= pack_score_terms(model.attention, attention.query, memory)
        for name, (tensor, dims) in arrays.items():
            tensors[f"{site.id}/{name}"] = PackedTensor.pack(tensor.numpy(), *dims)
        names = {name: f"{site.id}/{name}" for name in arrays}
        if full and aligned and model.config.attention.heads == 0:
            names["values"] = SOURCE
        records.append(SiteRecord.from_site(site, query_side=query_side, key_side=key_side, **names))
    return records
