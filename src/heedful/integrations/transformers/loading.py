"""Open `hf:FOLDER_OR_ID`: a folder that `save_pretrained` wrote, or a model of the Hugging Face hub by its id.

Nothing is fetched unless it is named, and no code of the folder is run: weights are safetensors, only classes of
transformers' own models are used, and a config that names code of the hub is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import transformers
from transformers import AutoConfig, AutoFeatureExtractor, AutoImageProcessor, AutoModel, AutoTokenizer

from heedful.errors import ModelError, nearest
from heedful.integrations.transformers.family import MODALITIES
from heedful.integrations.transformers.folder_checks import check_folder, library_errors
from heedful.integrations.transformers.loaded import LoadedTransformers, wrap
from heedful.integrations.transformers.task import TASK

PREFIX = "hf:"


def load_transformers(name: str) -> LoadedTransformers:
    """Return the model that `hf:FOLDER_OR_ID` names, with the processors that its folder has."""
    reference = name.removeprefix(PREFIX)
    folder = Path(reference).expanduser()
    if not reference or (folder.is_dir() and not (folder / "config.json").is_file()):
        raise ModelError(f"{name}: not a model of transformers: the folder has no config.json")
    source = str(folder) if folder.is_dir() else reference
    if folder.is_dir():
        check_folder(name, folder)
    config: Any = _load(name, AutoConfig.from_pretrained, source)
    architecture = next(iter(config.architectures or []), None)
    model_class: Any = getattr(transformers, str(architecture), None) if architecture else AutoModel
    # a config may name anything; only models are called
    if model_class is not AutoModel and not (
        isinstance(model_class, type) and issubclass(model_class, transformers.PreTrainedModel)
    ):
        raise ModelError(f"{name}: transformers has no model {architecture}; {_similar(str(architecture))}")
    _check_attention(name, config)
    model, info = _load(name, model_class.from_pretrained, source, use_safetensors=True, output_loading_info=True)
    missing = sorted(key for key in info["missing_keys"] if "pooler." not in key)  # encoders often come without one
    if missing:  # transformers fills them with random numbers
        raise ModelError(f"{name}: {len(missing):,} weights are missing, such as {', '.join(missing[:3])}")
    modality = MODALITIES.get(model.main_input_name)
    parts = [_optional(AutoTokenizer.from_pretrained, source)]
    if modality == "image":
        parts.append(_load(name, AutoImageProcessor.from_pretrained, source))
    if modality == "audio":
        parts.append(_load(name, AutoFeatureExtractor.from_pretrained, source))
    path = folder if folder.is_dir() else None
    parts = [part for part in parts if part is not None]
    with library_errors(f"{name}: cannot be used"):
        return wrap(model.eval(), parts, TASK, name=reference, path=path)


def _check_attention(name: str, config: Any) -> None:
    """Refuse a config that names an attention of the hub, `owner/name`: it would be fetched and run."""
    parts = [config, *(getattr(config, key, None) for key in getattr(config, "sub_configs", {}))]
    for part in parts:
        attention = str(getattr(part, "_attn_implementation", ""))
        if "/" in attention:
            raise ModelError(f"{name}: its config names code of the hub, {attention}, which is not run")


def _load(name: str, load: Callable[..., Any], source: str, **options: Any) -> Any:
    """Load a part of a model, or raise ModelError with the first line of what transformers says."""
    hint = "" if Path(source).is_dir() else "; it is no folder here, and fetching it from the hub failed"
    with library_errors(f"{name}: cannot be loaded{hint}"):
        return load(source, trust_remote_code=False, **options)


def _optional(load: Callable[..., Any], source: str) -> Any:
    """Load a part that some models do not have."""
    with suppress(ModelError):
        return _load(source, load, source)
    return None


def _similar(name: str) -> str:
    return nearest(name, [known for known in dir(transformers) if known.endswith(name[-10:])], limit=5)
