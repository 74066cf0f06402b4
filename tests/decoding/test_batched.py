"""Search over many sentences in batches of similar length."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import small_models
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch, pad
from heedful.data.tokenizer import END
from heedful.decoding import search, search_all
from heedful.decoding.batched import MAX_SOURCE_TOKENS

SOURCES = [[4, 5, 6, 7, END], [8, END], [9, 4, END], [END], [5, 5, 6, END]]


@pytest.mark.parametrize("threads", [1, 2])
def test_outputs_are_in_the_order_of_the_sources(threads: int) -> None:
    model = small_models.randomize_weights(small_models.build_model(small_models.small_preset("rnnsearch")), 5)
    options = DecodingOptions(max_length=6, batch_size=2)
    batches: list[list[int]] = []
    progress: list[int] = []

    def make_batch(rows: Sequence[int]) -> TextBatch:
        batches.append([len(SOURCES[row]) for row in rows])
        return TextBatch(pad([SOURCES[row] for row in rows]))

    lengths = [len(source) for source in SOURCES]
    outputs = search_all(model, make_batch, lengths, options, on_progress=progress.append, threads=threads)
    alone = [search(model, TextBatch(pad([source])), options).hypotheses[0][0].tokens for source in SOURCES]
    assert [best[0].tokens for best in outputs] == alone
    assert len(set(alone)) == len(SOURCES)
    assert sorted(batches) == [[1, 2], [3, 4], [5]]
    assert sum(progress) == len(SOURCES)


def test_long_sources_make_batches_smaller_so_that_a_time_limit_is_checked_between_them() -> None:
    model = small_models.build_model(small_models.small_preset("rnnsearch"))
    batches: list[int] = []

    def make_batch(rows: Sequence[int]) -> TextBatch:
        batches.append(len(rows))
        return TextBatch(pad([[END]] * len(rows)))  # their lengths are only claimed

    lengths = [*[10] * 6, *[MAX_SOURCE_TOKENS // 2] * 3, 2 * MAX_SOURCE_TOKENS]
    search_all(model, make_batch, lengths, DecodingOptions(max_length=2, batch_size=6))
    assert batches == [1, 1, 2, 6]
