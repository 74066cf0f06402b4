"""Models on the Hugging Face hub: a folder goes up with its card, and comes down as any stranger's folder.

Nothing is fetched unless its name begins with `hub:`, and of what is fetched only the files of a model folder are
stored. They are opened like any folder: no code is run, and weights are compared with the card.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from platformdirs import user_cache_dir

from heedful.arguments import python_errors
from heedful.errors import ModelError
from heedful.integrations.extras import require
from heedful.tasks.model_card import CARD, read_card
from heedful.tasks.model_folder import copy_model, load_model

PREFIX = "hub:"
FILES = ("*.json", "*.toml", "*.safetensors", "*.txt", "README.md", "train.log", "metrics.jsonl")  # of a model folder
BAR, ESCAPED = "|", "\\|"  # in a cell of a Markdown table
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
REVISION = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*")  # a branch, a tag or a commit: it becomes folders, but no ".."
PIPELINES = {  # task -> the hub's name for it
    "translate": "translation",
    "summarize": "summarization",
    "reply": "text-generation",
    "transduce": "text2text-generation",
    "caption": "image-to-text",
    "classify": "text-classification",
    "read": "text-generation",
}
LICENSES = {  # the hub's identifiers of licenses
    "mit": "mit",
    "apache-2.0": "apache-2.0",
    "cc by 4.0": "cc-by-4.0",
    "cc by 2.0 fr": "cc-by-2.0",
    "cc by-sa 4.0": "cc-by-sa-4.0",
    "cc0": "cc0-1.0",
    "public domain": "cc0-1.0",
}


def load_from_hub(name: str) -> Any:
    """Fetch the model that `hub:owner/name` names, and load it; a version can follow: `hub:owner/name@v1`."""
    reference, _, revision = name.removeprefix(PREFIX).partition("@")
    _check_reference(reference, name)
    if revision and not REVISION.fullmatch(revision):
        raise ModelError(f'{name}: "{revision}" cannot be the name of a version')
    hub = require("huggingface_hub", "hub", f"{name}: loading from the hub")
    folder = Path(user_cache_dir("heedful")) / "hub" / reference.replace("/", "--") / (revision or "main")
    try:
        hub.snapshot_download(reference, revision=revision or None, allow_patterns=list(FILES), local_dir=folder)
    except Exception as error:  # the hub's client raises its own, the network's and the file system's errors
        if not (folder / CARD).is_file():
            raise ModelError(f"{name}: cannot be fetched: {first_line(error)}") from None
    return load_model(folder)._replace(name=reference.rpartition("/")[2])


def push_to_hub(folder: Path, reference: str, *, private: bool = False, token: str | None = None) -> str:
    """Upload a model folder with its card, and return the address of the repository."""
    _check_reference(reference, reference)
    hub = require("huggingface_hub", "hub", f"{reference}: uploading to the hub")
    with tempfile.TemporaryDirectory() as draft:
        export_folder(folder, Path(draft) / "model", reference.rpartition("/")[2])
        try:
            api = hub.HfApi(token=token)
            api.create_repo(reference, private=private, exist_ok=True)
            message = "Upload a model of heedful"
            api.upload_folder(repo_id=reference, folder_path=Path(draft) / "model", commit_message=message)
        except Exception as error:  # as above
            raise ModelError(f"{reference}: cannot be uploaded: {first_line(error)}") from None
    return f"{hub.constants.ENDPOINT}/{reference}"


def export_folder(folder: Path, to: Path, name: str) -> None:
    """Write a model folder with the card that the hub shows, README.md."""
    with python_errors():
        copy_model(folder, to)
        (to / "README.md").write_text(model_card(read_card(folder), name), encoding="utf-8")


def model_card(card: Mapping[str, Any], name: str) -> str:
    """Return the hub's card of a model: license, languages and metrics with their signatures, from `model.json`."""
    task = str(card["task"])
    front: list[str] = ["---", "library_name: heedful", "tags:", "- heedful", "- attention", f"- {_yaml(task)}"]
    if task in PIPELINES:
        front.append(f"pipeline_tag: {PIPELINES[task]}")
    license_name = str(card.get("license", ""))
    if license_name:
        front += _license_lines(license_name)
    languages = [str(code) for code in _list(card.get("languages"))]
    if languages:
        front += ["language:", *(f"- {_yaml(code)}" for code in languages)]
    metrics: Mapping[str, Any] = card.get("test") or card.get("metrics") or {}
    if metrics:
        front += _model_index(card, name, metrics)
    body = [f"# {name}", "", str(card.get("about", f"A model for the task {task}, trained with heedful.")), ""]
    body += ["```python", "import heedful", f'model = heedful.load("hub:OWNER/{name}")', "```", ""]
    if metrics:
        body += [
            f"Measured on {card.get('test_on', 'validation data')}:",
            "",
            "| metric | value | signature |",
            "|---|---|---|",
        ]
        body += [f"| {m} | {v:.4g} | {_signature(card, m).replace(BAR, ESCAPED)} |" for m, v in metrics.items()] + [""]
    body += [f"License: {license_name}. {card.get('attribution', '')}".strip(), ""] if license_name else []
    return "\n".join([*front, "---", "", *body])


def _license_lines(name: str) -> list[str]:
    known = LICENSES.get(name.lower())
    return [f"license: {known}"] if known else ["license: other", f"license_name: {_yaml(name)}"]


def _model_index(card: Mapping[str, Any], name: str, metrics: Mapping[str, Any]) -> list[str]:
    """Return the section of the YAML from which the hub shows figures."""
    task = str(card["task"])
    data = str(card.get("test_on", "validation data"))
    lines = [
        "model-index:", f"- name: {_yaml(name)}", "  results:", "  - task:",
        f"      type: {PIPELINES.get(task, task)}", "    dataset:", f"      name: {_yaml(data)}",
        "      type: other", "    metrics:",
    ]  # fmt: skip
    for metric, value in metrics.items():
        signature = _signature(card, metric)
        lines += [f"    - type: {_yaml(metric)}", f"      value: {value:.6g}"]
        lines += [f"      name: {_yaml(f'{metric} ({signature})')}"] if signature else []
    return lines


def _signature(card: Mapping[str, Any], metric: str) -> str:
    signatures = card.get("signatures")
    return str(signatures.get(metric, "")) if isinstance(signatures, Mapping) else ""


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _yaml(text: str) -> str:
    """Return a text as a YAML string: JSON's are, and plain words need no quotes."""
    return (
        text
        if re.fullmatch(r"[A-Za-z][\w-]*", text) and text.lower() not in ("no", "yes", "on", "off")
        else json.dumps(text)
    )


def _check_reference(reference: str, name: str) -> None:
    if not REPOSITORY.fullmatch(reference):
        raise ModelError(f"{name}: expected the name of a repository, OWNER/NAME")


def first_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
