"""The reference: pages that are generated from the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def generate(app: Sphinx) -> None:
    """Write reference/cli.md, recipe.md, metric-table.md and trace.md from the code."""
    folder = Path(app.srcdir, "reference")
    pages = {"cli": cli_page, "recipe": recipe_page, "metric-table": metrics_page, "trace": trace_page}
    if app.config.language != "en":
        return
    for name, page in pages.items():
        text = "\n".join(page()) + "\n"
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def cell(text: object) -> str:
    """Return a text as a cell of a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def code(text: object) -> str:
    """Return a text as code in a cell."""
    return "`{}`".format(str(text).replace("|", "\\|")) if text not in ("", None) else ""


# --- command line


def cli_page() -> Iterator[str]:
    """Every command with its arguments and options."""
    import click
    import typer

    from heedful.cli.app import build_app

    root = typer.main.get_command(build_app())
    yield "# Command line\n"
    yield "This page is generated from the commands themselves; `heedful COMMAND --help` says the same.\n"
    yield "(cli)=\n"
    yield from command_sections(root, click.Context(root, info_name="heedful"), 2)


def command_sections(command: Any, context: Any, depth: int) -> Iterator[str]:
    """Describe a command and those below it."""
    import click

    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below.hidden:
            continue
        inner = click.Context(below, info_name=name, parent=context)
        yield f"{'#' * depth} `{inner.command_path}`\n"
        yield re.sub(r"(?m)^\x08\n", "", (below.help or "").strip()) + "\n"
        if hasattr(below, "list_commands"):
            yield from command_sections(below, inner, depth + 1)
            continue
        usage = " ".join(below.collect_usage_pieces(inner))
        yield f"```text\n{inner.command_path} {usage}\n```\n"
        rows = [parameter_row(parameter, inner) for parameter in below.params if parameter.name != "help"]
        if rows:
            yield "| argument or option | meaning | default |\n|---|---|---|"
            yield from rows
            yield ""


def parameter_row(parameter: Any, context: Any) -> str:
    """Return a row of the table of options."""
    record = parameter.get_help_record(context)
    if record is None:
        record = (parameter.make_metavar(context), getattr(parameter, "help", "") or "")
    name, text = record
    name = re.sub(r" <(?:list\[\w+\]|path|str)>$", "", name)  # what Python makes of it
    notes = re.search(r"\s*\[((?:default: |required|x[<>]|\d+<=x|env var)[^\[]*)\]\s*$", text)
    default, rest = "", []
    for note in notes[1].split("; ") if notes else ():
        if note.startswith("default: "):
            default = note.removeprefix("default: ")
        else:
            rest.append(note.replace(">=", " ≥ ").replace("<=", " ≤ "))
    text = text[: notes.start()] if notes else text
    meaning = f"{text.strip()} ({'; '.join(rest)})" if rest else text.strip()
    return f"| {code(name)} | {cell(meaning)} | {code(default)} |"


# --- recipe


def recipe_page() -> Iterator[str]:
    """Every setting of a recipe, with its choices and its default."""
    from heedful.config import Recipe
    from heedful.config.presets import presets_of

    yield "# Recipe\n\n(recipe)=\n"
    yield (
        "A recipe is a TOML file with these sections. A setting that is not written has its default, or what"
        " `model.preset` says. `heedful check RECIPE` prints all of them with their values for one recipe. In Python"
        " the same names are keys of `heedful.Recipe.from_dict` and `settings` of `heedful.train`.\n"
    )
    yield "## Presets\n"
    yield "| task | presets |\n|---|---|"
    for task in ("translate", "caption", "classify", "recommend", "read"):
        yield f"| {task} | {', '.join(f'`{name}`' for name in presets_of(task))} |"
    yield "\n`summarize`, `reply` and `transduce` have the presets of `translate`.\n"
    yield from section_tables(Recipe, "")


def section_tables(section: Any, path: str) -> Iterator[str]:
    """Return one table per section."""
    rows, below = [], []
    for name, info in section.model_fields.items():
        inner = section_class(info)
        if inner is not None:
            below.append((f"{path}.{name}".strip("."), inner))
        else:
            rows.append(setting_row(name, info))
    if path:
        yield f"## `[{path}]`\n\n{(section.__doc__ or '').strip()}\n"
    if rows:
        yield "| setting | meaning | values | default |\n|---|---|---|---|"
        yield from rows
        yield ""
    for name, inner in below:
        yield from section_tables(inner, name)


def section_class(info: Any) -> Any:
    """Return the section that a field holds, if it holds one."""
    from typing import get_args

    from pydantic import BaseModel

    options = [info.annotation, *get_args(info.annotation)]
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)


def setting_row(name: str, info: Any) -> str:
    """Return the row of a setting."""
    from pydantic_core import PydanticUndefined

    default = info.get_default(call_default_factory=True)
    if default is PydanticUndefined:
        shown = "required"
    elif default is None or default == ():
        shown = "none"
    else:
        plain = list(default) if isinstance(default, tuple) else default
        shown = code(str(plain).lower() if isinstance(plain, bool) else plain)
    return f"| `{name}` | {cell(info.description or '')} | {values_of(info)} | {shown} |"


def values_of(info: Any) -> str:
    """Return the choices or the bounds of a setting."""
    from heedful.config.render import _choices

    if choices := _choices(info):
        return ", ".join(code(choice) for choice in choices)
    bounds = []
    for constraint in [*info.metadata, *[m for meta in info.metadata for m in getattr(meta, "metadata", [])]]:
        for key, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            value = getattr(constraint, key, None)
            if value is not None and abs(value) < 2**31:
                bounds.append(f"{sign} {value:g}" if value < 1e6 else f"{sign} {value:,}")
    return ", ".join([cell(type_in_words(info.annotation)), *bounds])


def type_in_words(annotation: Any) -> str:
    """Return the type of a setting in words: "number", "list of texts"."""
    from typing import Annotated, get_args, get_origin

    names = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}
    if annotation in names:
        return names[annotation]
    parts = [part for part in get_args(annotation) if part not in (Ellipsis, type(None))]
    if get_origin(annotation) is Annotated:
        return type_in_words(parts[0])
    if not parts:
        return str(getattr(annotation, "__name__", annotation))
    kinds = list(dict.fromkeys(type_in_words(part) for part in parts))
    if get_origin(annotation) is tuple:
        return "list of " + " or ".join(f"{kind}s" for kind in " or ".join(kinds).split(" or "))
    return " or ".join(kinds)


# --- metrics and trace

TASKS_OF_METRICS = {
    "hr": "recommend",
    "ndcg": "recommend",
    "perplexity": "read",
    "bits-per-character": "read",
    "loss": "all, in training",
}


def metrics_page() -> Iterator[str]:
    """Every metric with its definition, direction and aliases."""
    from heedful.metrics.table import GROUPS, METRICS

    yield "# Metrics, one by one\n"
    yield "Generated from the table of metrics. How to use and compare them: {doc}`/metrics`.\n"
    yield (
        "The signature says how a value was computed, here of one item; values with different signatures cannot be"
        " compared.\n"
    )
    yield "| name | definition, and signature of a value | better | computed for | aliases |\n|---|---|---|---|---|"
    for spec in METRICS.values():
        name = f"{spec.name}:{spec.parameter.upper()}" if spec.parameter else spec.name
        data = "generated text" if spec.takes_text else TASKS_OF_METRICS[spec.name]
        aliases = ", ".join(code(alias) for alias in spec.aliases)
        better = "higher" if spec.higher_is_better else "lower"
        signature = signature_of(spec)
        meaning = cell(spec.help) + (f"<br>{code(signature)}{{.signature}}" if signature else "")
        yield f"| {code(name)} | {meaning} | {better} | {data} | {aliases} |"
    yield ""
    for group, names in GROUPS.items():
        yield f"`{group}` stands for {', '.join(code(name) for name in names)}.\n"


def signature_of(spec: Any) -> str:
    """Return the signature of a metric, computed for one item."""
    import numpy as np

    from heedful.errors import HeedfulError
    from heedful.metrics import evaluate
    from heedful.metrics.ranking import Ranks

    if spec.takes_text:
        name = f"{spec.name}:de" if spec.parameter else spec.name
        try:
            return str(evaluate([name], ["the cat sat on the mat"], ["the cat sat on the mat"])[0].signature)
        except HeedfulError:  # METEOR, which needs Java
            return ""
    if spec.state_function is None:
        return ""
    if spec.parameter == "k":
        return str(spec.state(f"{spec.name}@10", Ranks(np.zeros(1, int), np.zeros(1, int)), "99 sampled").signature)
    lines = ([],) if spec.name == "perplexity" else ([], ["ab"])
    return str(spec.state([np.zeros(3)], *lines[1:], "sentences").signature)


def trace_page() -> Iterator[str]:
    """The fields of a trace file, from its JSON Schema."""
    from heedful.trace.schema import Trace

    schema = Trace.model_json_schema(by_alias=True)
    yield "# Trace files\n\n(trace-schema)=\n"
    yield (
        "A trace is JSON of the schema `attn-trace/2`; a name that ends in `.gz` is compressed. The JSON Schema"
        " itself is {download}`trace.schema.json <../trace.schema.json>`. In Python a trace is a"
        " {py:class}`heedful.Trace`.\n"
    )
    yield from schema_table("Trace", schema)
    for name, definition in sorted(schema["$defs"].items()):
        if "properties" in definition:
            yield from schema_table(name, definition)


def schema_table(name: str, definition: dict[str, Any]) -> Iterator[str]:
    """Return the table of one object."""
    yield f"## {name}\n\n{docstring_text(definition.get('description', ''))}\n"
    yield "| field | type | default |\n|---|---|---|"
    required = definition.get("required", [])
    for field, info in definition["properties"].items():
        default = "required" if field in required else code(short(info.get("default", "")))
        yield f"| `{field}` | {schema_type(info)} | {default} |"
    yield ""


def short(value: object) -> str:
    """Return a default as JSON has it, a long one not at all."""
    import json

    text = json.dumps(value) if value != "" else ""
    return text if len(text) < 30 else "…"


def schema_type(info: dict[str, Any]) -> str:
    """Return the type of a field in words."""
    if "$ref" in info:
        return info["$ref"].rpartition("/")[2]
    if "anyOf" in info:
        return " or ".join(dict.fromkeys(schema_type(option) for option in info["anyOf"]))
    if "const" in info:
        return code(info["const"])
    if "enum" in info:
        return ", ".join(code(value) for value in info["enum"])
    if info.get("type") == "array":
        return f"list of {schema_type(info.get('items', {}))}"
    if info.get("type") == "object" and isinstance(info.get("additionalProperties"), dict):
        return f"object of {schema_type(info['additionalProperties'])}"
    return str(info.get("type", "any"))


def docstring_text(text: str) -> str:
    """Return a docstring as Markdown, its example left out."""
    return re.sub(r"(?ms)^>>>.*?(?:\n\n|\Z)", "", text).strip()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", generate)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
