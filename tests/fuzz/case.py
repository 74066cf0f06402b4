"""A case: the command line, standard input and files of one run of `heedful`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

WORK, OUTSIDE = "work", "outside"  # folders of a case: the current folder, and files that nobody named
LINK = b"fuzz-link:"  # content of a file that is written as a symbolic link


@dataclass(frozen=True)
class Case:
    """One run. Paths in `argv` and `files` are relative to the current folder, from which the command runs.

    `outputs` are the paths that the command may write. `folders` maps a model folder of the case to the intact model
    it was made from; the hashes in the card of such a folder are refreshed, as a stranger would do it. `private`:
    the command line does not name a file in `OUTSIDE`, so reading one is a failure.
    """

    kind: str
    argv: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    stdin: bytes = b""
    outputs: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)
    private: bool = False
    name: str = ""

    def with_files(self, files: Mapping[str, bytes]) -> Case:
        """Return the same run with other files."""
        return replace(self, files=files)


def refresh_hashes(files: Mapping[str, bytes], folder: str, intact: Mapping[str, bytes]) -> dict[str, bytes]:
    """Replace every SHA-256 of an intact file in the card of a model folder by that of the file that is there."""
    card = f"{folder}/model.json"
    refreshed = dict(files)
    if card not in refreshed:
        return refreshed
    for name, content in intact.items():
        changed = refreshed.get(f"{folder}/{name}", content)
        if changed != content:
            old, new = (hashlib.sha256(data).hexdigest().encode() for data in (content, changed))
            refreshed[card] = refreshed[card].replace(old, new)
    return refreshed


def write_files(files: Mapping[str, bytes], work: Path) -> None:
    """Write the files of a case, symbolic links last."""
    for name, content in sorted(files.items(), key=lambda item: item[1].startswith(LINK)):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith(LINK):
            path.symlink_to(content.removeprefix(LINK).decode())
        else:
            path.write_bytes(content)


def encode_case(case: Case, intact: Mapping[str, Mapping[str, bytes]]) -> str:
    """Return a case as JSON. Files that equal one of an intact model are stored as a reference to it."""
    references = {content: f"{model}/{name}" for model, files in intact.items() for name, content in files.items()}
    files: dict[str, Any] = {}
    for name, content in case.files.items():
        if content in references and len(content) > 0:
            files[name] = {"intact": references[content]}
        else:
            files[name] = _encode(content)
    tree = {
        "kind": case.kind,
        "name": case.name,
        "argv": list(case.argv),
        "stdin": _encode(case.stdin),
        "files": files,
        "outputs": list(case.outputs),
        "folders": dict(case.folders),
        "private": case.private,
    }
    return json.dumps(tree, indent=1) + "\n"


def decode_case(text: str, intact: Mapping[str, Mapping[str, bytes]]) -> Case:
    """Read what `encode_case` wrote."""
    tree = json.loads(text)
    files = {}
    for name, content in tree["files"].items():
        if isinstance(content, dict) and "intact" in content:
            model, _, file = content["intact"].partition("/")
            files[name] = intact[model][file]
        else:
            files[name] = _decode(content)
    return Case(
        tree["kind"],
        tuple(tree["argv"]),
        files,
        _decode(tree["stdin"]),
        tuple(tree["outputs"]),
        tree["folders"],
        tree["private"],
        tree["name"],
    )


def _encode(content: bytes) -> str | dict[str, str]:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def _decode(content: str | dict[str, str]) -> bytes:
    return content.encode("utf-8") if isinstance(content, str) else base64.b64decode(content["base64"])
