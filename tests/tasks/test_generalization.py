"""Presets trained until they translate unseen sentences: minutes to an hour each, so only in `make test-slow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from generalization import check_generalization
from heedful.config.presets import ENCODER_DECODERS


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_a_preset_translates_unseen_short_sentences(name: str, tmp_path: Path) -> None:
    check_generalization(name, tmp_path)
