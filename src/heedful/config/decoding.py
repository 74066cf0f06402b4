"""The section [decoding]: search method, beam, penalties and sampling."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveInt

from heedful.section import Section


class DecodingOptions(Section):
    """Options of decoding: `[decoding]` in a recipe, keywords in Python, flags on the command line.

    Beam search scores a hypothesis by `log P / lp + coverage_penalty * cp` (Wu 2016, eq. 14), where
    `lp = ((5 + |Y|) / 6) ** length_penalty` counts the end token, and
    `cp = sum_i log min(max(sum_t a_ti, 1e-10), 1)` sums over the source positions.
    """

    method: Literal["greedy", "beam", "sample"] = Field("greedy", description="search method")
    beam: PositiveInt = Field(5, description="beam: number of hypotheses kept per sentence")
    length_penalty: float = Field(
        1.0, ge=0.0, description="beam: exponent of the length penalty; 0 disables it (Wu 2016, eq. 14)"
    )
    coverage_penalty: float = Field(
        0.0, ge=0.0, description="beam: weight of the coverage penalty; 0 disables it (Wu 2016, eq. 14)"
    )
    exact: bool = Field(False, description="beam: stop only when no live hypothesis can still enter the result; slower")
    n_best: PositiveInt = Field(1, description="beam, sample: number of outputs per input")
    temperature: float = Field(1.0, gt=0.0, description="sample: below 1 sharpens the distribution, above flattens it")
    top_k: int = Field(0, ge=0, description="sample: draw from the k most likely tokens; 0: from all")
    top_p: float = Field(
        1.0, gt=0.0, le=1.0, description="sample: draw from the most likely tokens with this total probability"
    )
    seed: int = Field(1, description="sample: random seed")
    max_length: PositiveInt = Field(100, description="maximum output length, in tokens")
    replace_unknown: bool = Field(
        False, description="replace <unk> by the source word with the largest attention weight (Luong 2015b)"
    )
    batch_size: PositiveInt = Field(64, description="sentences per batch")

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
