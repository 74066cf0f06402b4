"""The statistical aligner: expectation-maximization in both directions, and the symmetrized links.

IBM model 2 as reparameterized by Dyer, Chahuneau & Smith 2013 ("A simple, fast, and effective reparameterization of
IBM Model 2"): the position prior has one parameter, the tension, and favors the diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from heedful.alignment.parallel_text import MAX_WORDS, ParallelText, TextSides, number_words
from heedful.alignment.symmetrize import Symmetrization, symmetrize
from heedful.errors import DataError
from heedful.kernels.alignment import Expectation, PairTable, Prior, expected_links, likeliest_links, make_pair_table
from heedful.trace.schema.links import Link

AlignmentPrior = Literal["diagonal", "ibm1"]
LogLine = Callable[[str], object]
MIN_TENSION, MAX_TENSION = 0.1, 14.0  # the bounds of Dyer 2013
DIRICHLET = 0.01  # the concentration of the Dirichlet prior over translations


@dataclass(frozen=True)
class AlignerOptions:
    """The settings of the aligner.

    `prior` is "diagonal" (Dyer 2013) or "ibm1" (Brown 1993, model 1: every position is equally likely). `prefix` is
    the number of first characters that tell words apart, 0 for all.
    """

    prior: AlignmentPrior = "diagonal"
    iterations: int = 5
    symmetrization: Symmetrization = "grow-diag-final-and"
    lowercase: bool = True
    prefix: int = 0
    null_probability: float = 0.08


def no_log(line: str) -> None:
    """Log nothing."""


class PairAlignment(NamedTuple):
    """The links (source word, target word) of one pair: symmetrized, and of each direction."""

    links: set[Link]
    forward: set[Link]
    reverse: set[Link]


def align_pairs(
    pairs: Iterable[TextSides],
    extra: Iterable[TextSides] = (),
    options: AlignerOptions | None = None,
    log: LogLine = no_log,
) -> Iterator[PairAlignment]:
    """Yield the alignment of each sentence pair, learned from all of them and from the `extra` pairs.

    >>> pairs = [("the house", "la maison"), ("the flower", "la fleur"), ("house", "maison")]
    >>> [sorted(pair.links) for pair in align_pairs(pairs)]
    [[(0, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0)]]
    """
    options = AlignerOptions() if options is None else options
    text = number_words(pairs, extra, options.lowercase, options.prefix)
    if not text.n_pairs:
        raise DataError("there are no sentence pairs to align")
    if text.too_long:
        log(f"{text.too_long:,} pair(s) have more than {MAX_WORDS:,} words on a side and get no links")
    forward = _positions(text, options, reverse=False, log=log)
    reverse = _positions(text, options, reverse=True, log=log)
    starts, ends = text.source.offsets.tolist(), text.target.offsets.tolist()
    for number in range(text.n_pairs):
        positions = forward[ends[number] : ends[number + 1]].tolist()
        backward = reverse[starts[number] : starts[number + 1]].tolist()
        one = {(source, target) for target, source in enumerate(positions) if source >= 0}
        other = {(source, target) for source, target in enumerate(backward) if target >= 0}
        yield PairAlignment(symmetrize(one, other, options.symmetrization), one, other)


def _positions(text: ParallelText, options: AlignerOptions, reverse: bool, log: LogLine) -> Tensor:
    """Return for each target position the position of its source word, -1 without one; `reverse`: of each source."""
    left, right = (text.target, text.source) if reverse else (text.source, text.target)
    table = make_pair_table(text.direction(reverse), left.size, right.size - 1)
    probabilities = torch.ones(len(table.sources))
    prior = Prior(options.null_probability, 4.0 if options.prior == "diagonal" else 0.0)
    name = "target to source" if reverse else "source to target"
    for iteration in range(options.iterations):
        expectation = expected_links(table, probabilities, prior)
        probabilities = _maximize(table, expectation)
        if options.prior == "diagonal":
            prior = prior._replace(tension=_newton_step(prior.tension, expectation))
        per_word = -expectation.log_likelihood / max(1, len(table.order))
        log(f"{name}, iteration {iteration + 1}: {per_word:.3f} nats per word, tension {prior.tension:.2f}")
    return likeliest_links(table, probabilities, prior)


def _maximize(table: PairTable, expectation: Expectation) -> Tensor:
    """Return `t(f|e)` of each entry: `exp(digamma(c(e, f) + a)) / exp(digamma(sum_f (c(e, f) + a)))`.

    This is the variational estimate under a Dirichlet prior, which keeps rare words from aligning with everything
    (Johnson 2007; Dyer 2013).
    """
    sources = table.sources.long()
    counts = expectation.counts + DIRICHLET
    totals = torch.bincount(sources, weights=counts, minlength=table.n_sources)
    return (torch.digamma(counts) - torch.digamma(totals)[sources]).exp().float()


def _newton_step(tension: float, expectation: Expectation) -> float:
    """Return a better tension: at the best one, posterior and prior expect the same distance from the diagonal.

    The likelihood is concave in the tension, with the prior's variance as its curvature; so one step of Newton's method
    per iteration takes the place of the gradient steps of Dyer 2013, §2.3.
    """
    if expectation.prior_variance <= 0:
        return tension
    step = (expectation.prior_distance - expectation.distance) / expectation.prior_variance
    return min(MAX_TENSION, max(MIN_TENSION, tension + step))
