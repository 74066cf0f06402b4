"""Presets: the named models of the literature, as the settings they fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # The plain pipeline: the decoder moves first, then looks with its new state, then speaks.
    "bigru-gru": {
        "encoder": {"kind": "gru", "bidirectional": True},
        "decoder": {"kind": "gru"},
        "attention": {"score": "additive"},
    },
}
