"""Search over many items: batches of items of similar length, several batches in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heedful.attention import NO_HOOKS, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch
from heedful.decoding.search import search
from heedful.errors import DecodingCancelledError, DecodingTimeoutError
from heedful.hypothesis import Hypothesis
from heedful.models import AutoregressiveModel
from heedful.parallel import OnProgress, no_progress, run_in_threads
from heedful.stopping import NEVER, StopCondition

MAX_HYPOTHESES = 8_192  # per batch
MAX_SOURCE_TOKENS = 8_192  # per batch, with padding: an encoder is one call, which no time limit interrupts


def search_all(
    model: AutoregressiveModel,
    make_batch: Callable[[Sequence[int]], TextBatch],
    lengths: Sequence[int],
    options: DecodingOptions,
    hooks: Hooks = NO_HOOKS,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
    stop: StopCondition = NEVER,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of every item, in the order of `lengths`.

    Items of similar length share a batch, which `make_batch` makes from their indices; `threads` batches are
    searched in parallel. A very wide beam makes batches smaller, so that the memory stays the same, and so do long
    items, so that `stop` is checked often.
    """
    batch_size = max(1, min(options.batch_size, MAX_HYPOTHESES // max(options.beam, options.n_best)))
    batches = _make_batches(lengths, batch_size)
    hypotheses: dict[int, list[Hypothesis]] = {}

    def search_batch(number: int) -> None:
        stop.check(0, options.max_length)  # before the batch is made, which takes time for images
        rows = batches[number]
        result = search(model, make_batch(rows), options, hooks, stop=stop)
        hypotheses.update(zip(rows, result.hypotheses, strict=True))
        on_progress(len(rows))

    try:
        run_in_threads(
            search_batch, list(reversed(range(len(batches)))), threads
        )  # the longest first: no thread waits for them
    except (DecodingTimeoutError, DecodingCancelledError) as error:
        raise type(error)(f"{error}; {len(hypotheses):,} of {len(lengths):,} inputs were done") from None
    return [hypotheses[i] for i in range(len(lengths))]


def _make_batches(lengths: Sequence[int], batch_size: int) -> list[list[int]]:
    """Return batches of the indices of items, by increasing length.

    >>> _make_batches([5_000, 3, 4_000, 4_001], 3)
    [[1, 2], [3], [0]]
    """
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        size = len(batches[-1]) if batches else batch_size
        if size < batch_size and (size + 1) * lengths[index] <= MAX_SOURCE_TOKENS:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches
