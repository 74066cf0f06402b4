"""Presets translate sentences they never saw: three in all in CI, the others under `make test-slow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from heedful.config.presets import PRESETS
from unseen import QUICK, translates


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in PRESETS
        if name != "transformer"
    ],
)
def test_presets_translate_short_sentences_they_never_saw(name: str, tmp_path: Path) -> None:
    translates(name, tmp_path)
