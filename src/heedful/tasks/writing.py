"""What all tasks that write words share: the loss, a validation's figures, and search over many items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from heedful.attention import PLAIN, Detail, Look, Watch
from heedful.config import DecodingConfig, Recipe
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import PAD, UNK
from heedful.decoding import Beam, Greedy, Hypothesis, Method, Sample, search
from heedful.errors import TrainingError, nearest
from heedful.layers.copying import copy_entropy
from heedful.layers.entropy import agreed_entropy, linear_entropy
from heedful.layers.readout import Output
from heedful.models import Seq2Seq, Stepped, Writer
from heedful.tasks import hard
from heedful.training import Loss

Tick = Callable[[int], None]


def loss_of(model: Seq2Seq, batch: TextBatch, recipe: Recipe) -> Loss:
    """Cross-entropy of the given words, summed; hard attention, coverage and evenness add their own terms."""
    assert batch.target is not None
    training = recipe.training
    gold = batch.target.ids[:, 1:]
    real = gold != PAD
    learnt = real if training.unknown else real & (gold != UNK)
    draws = model.training and hard.draws(recipe)
    soft = torch.rand(len(gold), device=gold.device) < training.expected if draws else None
    watch = PLAIN if soft is None else hard.some_expected(soft)
    even = training.even if model.training and model.alignment is not None else 0.0
    if even:
        watch = Watch(Detail.WEIGHTS, frozenset({str(model.alignment)}), watch.edit)
    stepped = model.score(batch, watch, sampling=training.sampling if model.training else 0.0)
    smoothing = training.smoothing if model.training else 0.0
    if model.training and training.agreement:
        again = model.score(batch, watch, sampling=training.sampling)
        total, surprise = _agreed(stepped, again, gold, learnt, recipe)
    else:
        total, surprise = _entropy(stepped, gold, learnt, smoothing)
    if model.training:
        total = total + _coverage(stepped, real)
    if even:
        total = total + even * unevenness(stepped.looks[str(model.alignment)], real)
    if soft is not None:
        logp = torch.zeros(gold.shape, device=gold.device).masked_scatter(learnt, -surprise.float())
        total = total + hard.reinforce(stepped.looks, logp, learnt, soft, model.baseline, training)
    return Loss(total, int(learnt.sum()))


def parts_of(batch: TextBatch, count: int, recipe: Recipe) -> list[TextBatch]:
    """Batches can be computed in parts where nothing but dropout is left to chance."""
    if batch.size < 2 * count or hard.draws(recipe) or recipe.training.sampling > 0:
        return [batch]
    return [batch.rows(start, count) for start in range(count)]


def _entropy(stepped: Stepped, gold: Tensor, real: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy at real positions, and -log p of each of their words."""
    said, copied = stepped.said[real], stepped.copied
    assert isinstance(stepped.output, Output)
    if copied is None:
        return linear_entropy(said, stepped.output, gold[real], smoothing)
    ids = copied.ids[:, None].expand_as(copied.weights)[real]
    weights, gate = copied.weights[real], copied.gate[real]
    return copy_entropy(stepped.output(said), weights, gate, ids, gold[real], smoothing)


def _agreed(one: Stepped, two: Stepped, gold: Tensor, real: Tensor, recipe: Recipe) -> tuple[Tensor, Tensor]:
    """The same of two readings, which pay where they differ."""
    training, output = recipe.training, one.output
    assert isinstance(output, Output)
    said = one.said[real], two.said[real]
    return agreed_entropy(*said, output, gold[real], training.smoothing, training.agreement)


def _coverage(stepped: Stepped, real: Tensor) -> Tensor:
    """See 2017, eq. 13: the price of reading again, summed over real steps."""
    prices = [look.extra["coverage_loss"] for look in stepped.looks.values() if "coverage_loss" in look.extra]
    return sum(((p.mean(dim=-1) * real).sum() for p in prices), start=stepped.said.new_zeros(()))


def unevenness(look: Look, real: Tensor) -> Tensor:
    """Xu 2015, eq. 14: `sum_i (1 - sum_t a_ti)^2` over real words, summed over captions, mean over heads.

    Of hard attention it is the expectation that should be even.
    """
    weights = look.extra.get("alpha", look.weights)
    assert weights is not None
    read = (weights * real[:, :, None, None]).sum(dim=1)  # (row, head, key)
    return ((1 - read) ** 2).sum(dim=-1).mean(dim=-1).sum()


def validated(metric: str, usual: tuple[str, ...] = ("bleu",)) -> tuple[str, ...]:
    """The metrics that a validation measures beside the loss and exact match."""
    from heedful.evaluation import METRICS, USUAL

    if metric in ("loss", "exact", *usual):
        return usual
    if metric not in METRICS:
        known = nearest(metric, ("loss", *USUAL))
        raise TrainingError(f'training.metric = "{metric}": this task has no such figure; {known}')
    return (*usual, metric)


def method(how: DecodingConfig) -> Method:
    """What the config asks of the search."""
    if how.method == "beam":
        return Beam(how.beam, how.alpha, how.beta, how.n_best, how.max_length, how.exact)
    if how.method == "sample":
        return Sample(how.temperature, how.top_k, how.top_p, how.seed, how.n_best, how.max_length)
    return Greedy(how.max_length)


def nothing(count: int) -> None:
    """For whoever does not want to hear."""


def side_by_side(work: Callable[[int], None], items: Sequence[int], threads: int) -> None:
    """Work through the items in so many threads; torch computes each in one thread of its own."""
    threads = min(threads, len(items))
    if threads <= 1:
        for item in items:
            work(item)
        return
    usual = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            for done in [pool.submit(work, item) for item in items]:
                done.result()
    finally:
        torch.set_num_threads(usual)


def searched(
    model: Writer,
    batch_of: Callable[[Sequence[int]], TextBatch],
    sizes: Sequence[int],
    how: DecodingConfig,
    watch: Watch = PLAIN,
    tick: Tick = nothing,
    threads: int = 1,
) -> list[list[Hypothesis]]:
    """Search outputs for each item, those of like size together; the order is kept.

    `tick` hears how many items more are done. Batches go to so many `threads` side by side.
    """
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    found: dict[int, list[Hypothesis]] = {}

    def one(first: int) -> None:
        rows = order[first : first + how.batch]
        found.update(zip(rows, search(model, batch_of(rows), method(how), watch).best, strict=True))
        tick(len(rows))

    starts = range(0, len(order), how.batch)
    side_by_side(one, list(reversed(starts)), threads)  # long sentences first: nobody waits at the end
    return [found[i] for i in range(len(sizes))]
