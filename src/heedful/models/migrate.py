"""The migration table of weights: names in a state dict of format 1 and what they are called in format 2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

WEIGHTS: Mapping[str, str] = {  # pattern of an old name -> replacement
    # convolutional, ABS and Transformer layers
    r"^(encoder|decoder|core)\.into\.": r"\1.input_projection.",
    r"^(decoder\.)?out\.": r"\1output_projection.",
    r"^(encoder|decoder)\.filters\.": r"\1.convolutions.",
    r"^decoder\.asks\.": "decoder.query_projections.",
    r"^decoder\.looks\.": "decoder.attentions.",
    r"^decoder\.answers\.": "decoder.context_projections.",
    r"^decoder\.asking\.": "decoder.context_embedding.",
    r"\blayers\.(\d+)\.around_(self|cross)\.": r"layers.\1.\2_residual.",
    r"\blayers\.(\d+)\.around_feed\.": r"layers.\1.feed_forward_residual.",
    r"\.last_norm\.": ".final_norm.",
    # recurrent layers
    r"^(decoder|core)\.stack\.(layers|norms)\.": r"\1.rnn.\2.",
    r"^(encoder|core)\.stack\.cells\.": r"\1.lstmn.cells.",
    r"^decoder\.second\.": "decoder.second_gru.",
    r"^decoder\.start\.project\.": "decoder.state_init.projections.",
    r"^decoder\.first_state\.": "decoder.summary_to_state.",
    r"^decoder\.read_out\.inner\.": "decoder.read_out.projection.",
    # classifiers, captioners, recommenders, language models
    r"^encoder\.look\.": "encoder.word_attention.",
    r"^encoder\.words\.": "encoder.word_encoder.",
    r"^encoder\.sentences\.": "encoder.sentence_encoder.",
    r"^encoder\.places\.": "encoder.region_embedding.",
    r"^eyes\.": "backbone.",
    r"^neighbours\.after\.": "lm_auxiliary.next_token.",
    r"^neighbours\.before\.": "lm_auxiliary.previous_token.",
    r"^neighbours\.": "lm_auxiliary.",
    r"^target\.": "target_embedding.",
    r"^taken\.": "history_embedding.",
    r"^output\.rest$": "output.tail_weight",
    r"^output\.rest_bias$": "output.tail_bias",
}


def migrate_weight(name: str) -> str:
    """Return the name of a weight of format 1 as it is called now.

    >>> migrate_weight("decoder.layers.3.around_self.norm.bias")
    'decoder.layers.3.self_residual.norm.bias'
    """
    for pattern, replacement in WEIGHTS.items():
        name = re.sub(pattern, replacement, name)
    return name


def migrate_weights(weights: Mapping[str, T]) -> dict[str, T]:
    """Return a state dict of format 1 with every name as it is called now."""
    return {migrate_weight(name): weight for name, weight in weights.items()}
