"""The Transformer translates sentences it never saw; by itself, so that two cores share the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from unseen import translates


@pytest.mark.usefixtures("as_users_run")
def test_the_transformer_translates_short_sentences_it_never_saw(tmp_path: Path) -> None:
    translates("transformer", tmp_path)
