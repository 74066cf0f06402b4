"""Names in the pages exist: Python names, settings of recipes, commands and their options."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import typer
from pydantic import BaseModel

import heedful
from heedful.cli.app import build_app
from heedful.config import Recipe

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GENERATED = {"cli.md", "recipe.md", "metric-table.md", "trace.md", "design.md", "contributing.md", "changelog.md"}
HISTORY = {"lab-notebook.md", "decisions.md"}  # what was true on their dates
PAGES = [
    page
    for page in sorted([*DOCS.rglob("*.md"), ROOT / "README.md"])
    if page.name not in GENERATED | HISTORY and "api" not in page.parts and "jupyter_execute" not in page.parts
]
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PYTHON_NAME = re.compile(r"(?<![\w./-])heedful(?:\.[A-Za-z_]\w*)+")
SETTING = re.compile(r"(?<![\w./-])(?:task|data|tokenizer|model|training|decoding)(?:\.[a-z_]+)+(?=\s*=|`|\"|$)")
ENTRY_POINTS = {"heedful.plugins"}
NO_MEMBERS = re.compile(r"\.(py|toml|so|json|io|md|ipynb|html|org)$")


def of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def exists(name: str) -> bool:
    """Return whether a dotted name can be imported."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            fields = getattr(thing, "model_fields", {}) | getattr(thing, "__dataclass_fields__", {})
            if part in fields:
                return True
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_python_names_exist(page: Path) -> None:
    names = {match[0] for match in PYTHON_NAME.finditer(page.read_text(encoding="utf-8"))}
    names = {name for name in names - ENTRY_POINTS if not NO_MEMBERS.search(name)}
    assert [name for name in sorted(names) if not exists(name)] == []


def settings_of(section: type[BaseModel], path: str = "") -> Iterator[str]:
    for name, info in section.model_fields.items():
        yield f"{path}{name}"
        options = [info.annotation, *get_args(info.annotation)]
        for option in options:
            if isinstance(option, type) and issubclass(option, BaseModel):
                yield from settings_of(option, f"{path}{name}.")


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_settings_exist(page: Path) -> None:
    known = set(settings_of(Recipe))
    text = page.read_text(encoding="utf-8")
    named = {match[0] for code in CODE.findall(text) for match in SETTING.finditer(code)}
    named |= {match[0] for match in re.finditer(SETTING.pattern.replace("`|", ""), text) if f"{match[0]}=" in text}
    assert sorted(name for name in named if name not in known and not is_attribute(name)) == []


def is_attribute(name: str) -> bool:
    """Return whether `model.trace` or the module `decoding.search` is meant, not a setting."""
    parts = name.split(".")
    if parts[0] != "model":
        return exists(f"heedful.{name}")
    return hasattr(heedful.Model, parts[1]) or parts[1] in ("loaded", "safetensors", "json", "onnx")


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_commands_and_their_options_exist(page: Path) -> None:
    root: Any = typer.main.get_command(build_app())
    context = click.Context(root)
    problems = []
    for line in commands_in(page.read_text(encoding="utf-8")):
        words = line.split()
        command = root.get_command(context, words[1]) if len(words) > 1 else None
        if command is None:
            problems.append(f"no such command: {line}")
            continue
        if hasattr(command, "get_command") and len(words) > 2:
            command = command.get_command(click.Context(command), words[2]) or command
        options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "-"}
        problems += [f"{option}: {line}" for option in used - options - {"--help"} if not option[1:2].isdigit()]
    assert problems == []


def commands_in(text: str) -> Iterator[str]:
    """Yield the command lines of heedful in code blocks and in code within sentences."""
    blocks = re.findall(r"(?ms)^```(?:sh|text|console)\n(.*?)^```", text)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += [line.strip() for line in re.findall(r"(?m)^    heedful .*$", text)]
    lines += [code for code in CODE.findall(text) if code.startswith("heedful ")]
    for line in lines:
        for part in re.split(r"\||&&|;|\s#\s", line):
            part = part.strip().removeprefix("$ ")
            if re.match(r"heedful [a-z]", part):
                try:
                    yield " ".join(word.replace(" ", "_") for word in shlex.split(part.replace("...", "")))
                except ValueError:
                    yield part
