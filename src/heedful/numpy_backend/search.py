"""Greedy and beam search for one sentence, as in `decoding/`; `tests/numpy_backend` compares the results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.config import DecodingOptions
from heedful.data.tokenizer import END
from heedful.hypothesis import IMPOSSIBLE, Hypothesis, check_finite, length_penalty
from heedful.numpy_backend.gru import SITE, Array, NumpyGru
from heedful.stopping import NEVER, StopCondition


class Path(NamedTuple):
    """A hypothesis that is being extended."""

    tokens: tuple[int, ...] = ()
    logp: tuple[float, ...] = ()
    weights: tuple[Array, ...] = ()  # of each step: (key,)

    def extend(self, token: int, logp: float, weights: Array) -> Path:
        return Path((*self.tokens, token), (*self.logp, logp), (*self.weights, weights))

    def finish(self, score: float | None = None) -> Hypothesis:
        """Return the hypothesis; its attention weights have the shape (step, head, key)."""
        return Hypothesis.from_steps(self.tokens, self.logp, {SITE: np.stack(self.weights)[:, None]}, score)


def supports(options: DecodingOptions) -> bool:
    """Return whether a search has these options: greedy or beam, without a coverage penalty."""
    return options.method == "greedy" or (options.method == "beam" and not options.coverage_penalty)


def search(
    model: NumpyGru, ids: Sequence[int], options: DecodingOptions, stop: StopCondition = NEVER
) -> list[Hypothesis]:
    """Return the outputs for an encoded sentence, best first; greedy search has one."""
    stop.check(0, options.max_length)
    return _beam(model, ids, options, stop) if options.method == "beam" else [_greedy(model, ids, options, stop)]


def _greedy(model: NumpyGru, ids: Sequence[int], options: DecodingOptions, stop: StopCondition) -> Hypothesis:
    source, state = model.encode(ids)
    path, token = Path(), model.start_token
    for t in range(options.max_length):
        stop.check(t, options.max_length)
        logp, weights, state = model.step(source, state, [token])
        token = int(logp[0].argmax())
        check_finite([float(logp[0, token])], t)
        path = path.extend(token, float(logp[0, token]), weights[0])
        if token == END:
            break
    return path.finish()


def _beam(model: NumpyGru, ids: Sequence[int], options: DecodingOptions, stop: StopCondition) -> list[Hypothesis]:
    """Run beam search until no live hypothesis can enter the result (`decoding/beam.py` says when that is)."""
    source, state = model.encode(ids)
    live, total, last = [Path()], np.zeros(1, np.float32), [model.start_token]
    finished: list[tuple[float, Path]] = []
    for t in range(options.max_length):
        stop.check(t, options.max_length)
        logp, weights, state = model.step(source, state, last)
        check_finite(logp.max(axis=-1).tolist(), t)
        best, scores = _largest((total[:, None] + logp).ravel(), options.beam)
        parents, tokens = np.divmod(best, logp.shape[1])
        paths = [
            live[parent].extend(token, float(logp[parent, token]), weights[parent])
            for parent, token in zip(parents.tolist(), tokens.tolist(), strict=True)
        ]
        is_end, possible = tokens == END, np.isfinite(scores)
        penalty = length_penalty(t + 1, options.length_penalty)
        finished += [(float(scores[i]) / penalty, paths[i]) for i in np.flatnonzero(is_end & possible)]
        rows = np.flatnonzero(~is_end & possible)
        live, total, last = [paths[i] for i in rows], scores[rows], tokens[rows].tolist()
        if not live or not _can_improve(float(total[0]), t + 1, finished, options):
            break
        state = state.select(parents[rows])
    ends = sorted(finished, key=lambda end: -end[0])[: options.n_best]
    hypotheses = [path.finish(score) for score, path in ends]
    scored = [path.finish(sum(path.logp) / length_penalty(len(path.tokens), options.length_penalty)) for path in live]
    return hypotheses + sorted(scored, key=lambda h: -h.score)[: options.n_best - len(hypotheses)]


def _can_improve(
    best_logp: float, length: int, finished: Sequence[tuple[float, Path]], options: DecodingOptions
) -> bool:
    """Return whether a live hypothesis of this log-probability may still be among the n best."""
    penalty = length_penalty(length + 1, options.length_penalty)
    if options.exact:
        penalty = max(penalty, length_penalty(options.max_length, options.length_penalty))
    scores = sorted((score for score, _ in finished), reverse=True)
    worst = scores[options.n_best - 1] if len(scores) >= options.n_best else IMPOSSIBLE
    return math.isfinite(best_logp) and best_logp / penalty > worst


def _largest(x: Array, count: int) -> tuple[npt.NDArray[np.int64], Array]:
    """Return the indices of the largest numbers, largest first, and the numbers; all of them if there are fewer."""
    count = min(count, len(x))
    best = np.argpartition(x, len(x) - count)[len(x) - count :]
    best = best[np.argsort(-x[best], kind="stable")]
    return best, x[best]
