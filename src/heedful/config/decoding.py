"""The section [decoding]: search method, beam, penalties and sampling."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heedful.section import Section

MAX_BEAM, MAX_LENGTH, MAX_BATCH = 1_000, 10_000, 10_000  # memory and time of a search grow with each of them
MAX_PENALTY = 10.0  # of length and coverage; published values are at most 2, and larger powers overflow
MAX_ITEMS = 100_000  # inputs of one call in Python; commands read any number of lines, some at a time


class DecodingOptions(Section):
    """Options of decoding: `[decoding]` in a recipe, keywords in Python, flags on the command line.

    Beam search scores a hypothesis by `log P / lp + coverage_penalty * cp` (Wu 2016, eq. 14), where
    `lp = ((5 + |Y|) / 6) ** length_penalty` counts the end token, and
    `cp = sum_i log min(max(sum_t a_ti, 1e-10), 1)` sums over the source positions.
    """

    method: Literal["greedy", "beam", "sample"] = Field("greedy", description="search method")
    beam: int = Field(5, gt=0, le=MAX_BEAM, description="beam: number of hypotheses kept per sentence, at most 1,000")
    length_penalty: float = Field(
        1.0, ge=0.0, le=MAX_PENALTY, description="beam: exponent of the length penalty; 0 disables it (Wu 2016, eq. 14)"
    )
    coverage_penalty: float = Field(
        0.0, ge=0.0, le=MAX_PENALTY, description="beam: weight of the coverage penalty; 0 disables it (Wu 2016, eq. 14)"
    )
    exact: bool = Field(False, description="beam: stop only when no live hypothesis can still enter the result; slower")
    n_best: int = Field(1, gt=0, le=MAX_BEAM, description="beam, sample: number of outputs per input, at most 1,000")
    temperature: float = Field(
        1.0, gt=0.0, le=1000.0, description="sample: below 1 sharpens the distribution, above flattens it"
    )
    top_k: int = Field(0, ge=0, le=1_000_000_000, description="sample: draw from the k most likely tokens; 0: from all")
    top_p: float = Field(
        1.0, gt=0.0, le=1.0, description="sample: draw from the most likely tokens with this total probability"
    )
    seed: int = Field(1, ge=-(2**63), lt=2**63, description="sample: random seed")
    max_length: int = Field(
        100, gt=0, le=MAX_LENGTH, description="maximum output length, in tokens; itself at most 10,000"
    )
    replace_unknown: bool = Field(
        False, description="replace <unk> by the source word with the largest attention weight (Luong 2015b)"
    )
    capitals: Literal["keep", "recase"] = Field(
        "keep",
        description="lines written all in capitals; recase: the model reads them in lower case, and its output is"
        " written in capitals",
    )
    batch_size: int = Field(64, gt=0, le=MAX_BATCH, description="sentences per batch, at most 10,000")

    def override(self, options: DecodingOptions) -> DecodingOptions:
        """Return these options with the ones explicitly set in `options` replaced.

        Several outputs per input need a beam, so greedy search becomes beam search where `n_best > 1`.

        >>> DecodingOptions(max_length=50).override(DecodingOptions(n_best=8)).beam
        8
        """
        merged = self.model_copy(update={name: getattr(options, name) for name in options.model_fields_set})
        if merged.n_best > 1 and merged.method == "greedy":
            return merged.model_copy(update={"method": "beam", "beam": max(merged.beam, merged.n_best)})
        return merged
