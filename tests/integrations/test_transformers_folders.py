"""Every family goes through `save_pretrained` and `heedful.load("hf:FOLDER")`, and computes the same again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

import heedful
from heedful.integrations.transformers.model import TransformersModel
from integrations import test_transformers as texts
from integrations import test_transformers_kinds as kinds
from integrations import tiny_transformers as tiny

MODELS: dict[str, tuple[Callable[[], TransformersModel], Any]] = {
    **{name: (partial(texts.encoder_decoder, name), tiny.SENTENCE) for name in ("t5", "bart", "mbart")},
    **{
        name: (partial(texts.encoder, name), tiny.SENTENCE)
        for name in ("RobertaForSequenceClassification", "DistilBertModel")
    },
    **{name: (partial(kinds.decoder, name), kinds.PROMPT) for name in ("gpt2", "llama", "qwen2")},
    "vit": (kinds.vision_classifier, kinds.PIXELS),
    "vision-encoder-decoder": (kinds.captioner, kinds.PIXELS),
    "blip": (kinds.blip, kinds.PIXELS),
    "whisper": (kinds.whisper, kinds.SOUND),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_folder_is_the_model(name: str, tmp_path: Path) -> None:
    make, item = MODELS[name]
    model = make()
    model.save_pretrained(tmp_path / "folder")
    loaded = heedful.load(f"hf:{tmp_path / 'folder'}")
    assert isinstance(loaded, TransformersModel)
    assert type(loaded.model) is type(model.model)
    assert loaded.sites == model.sites
    own, again = (each.trace(item, detail="weights", what_if=False) for each in (model, loaded))
    assert [token.id for token in again.target.tokens] == [token.id for token in own.target.tokens]
    assert [token.text for token in again.source.tokens] == [token.text for token in own.source.tokens]
    for site in own.sites:
        assert abs(again.weights(site.site) - own.weights(site.site)).max() < 1e-6
