"""The reference: pages that are generated from the code, and docstrings (Markdown) for autodoc (reStructuredText)."""

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
    return f"`{str(text).replace('|', '¦')}`" if text not in ("", None) else ""


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
    text, _, default = text.partition("[default: ")
    text = re.sub(r"\s*\[(?:required)\]\s*$", " (required)", text.strip())
    return f"| {code(name)} | {cell(text.strip())} | {code(default.rstrip(']').strip())} |"


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
        shown = code(str(default).lower() if isinstance(default, bool) else default)
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
            if value is not None:
                bounds.append(f"{sign} {value:g}" if value < 1e6 else f"{sign} {value:,}")
    names = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}
    kind = names.get(info.annotation, re.sub(r"\b(typing|heedful\.[\w.]+)\.", "", str(info.annotation)))
    if isinstance(info.annotation, type) and info.annotation not in names:
        kind = info.annotation.__name__
    return ", ".join([cell(kind), *bounds])


# --- metrics and trace


def metrics_page() -> Iterator[str]:
    """Every metric with its definition, direction and aliases."""
    from heedful.metrics.table import GROUPS, METRICS

    yield "# Metrics, one by one\n"
    yield "Generated from the table of metrics. How to use and compare them: {doc}`/metrics`.\n"
    yield "| name | definition | better | computed for | aliases |\n|---|---|---|---|---|"
    for spec in METRICS.values():
        name = f"{spec.name}:{spec.parameter.upper()}" if spec.parameter else spec.name
        data = "generated text" if spec.takes_text else "its task"
        aliases = ", ".join(code(alias) for alias in spec.aliases)
        better = "higher" if spec.higher_is_better else "lower"
        yield f"| {code(name)} | {cell(spec.help)} | {better} | {data} | {aliases} |"
    yield ""
    for group, names in GROUPS.items():
        yield f"`{group}` stands for {', '.join(code(name) for name in names)}.\n"


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


# --- docstrings


def markdown_to_rst(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring's Markdown into reStructuredText: code, tables and lists."""
    out: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.lstrip().startswith("|"):
            end = index
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            out += ["", *table_to_rst(lines[index:end]), ""]
            index = end
            continue
        previous = lines[index - 1] if index else ""
        starts_block = line.startswith("    ") and not line.lstrip().startswith((">>>", "...")) and previous == ""
        if starts_block and out and not any(one.startswith(("- ", ">>>")) for one in paragraph_before(lines, index)):
            out += ["::", ""]
        if line.startswith("- ") and previous.strip() and not previous.startswith(("- ", "  ")):
            out.append("")
        out.append(line if line.startswith("    ") or ">>>" in line else inline_to_rst(line))
        index += 1
    lines[:] = out


def paragraph_before(lines: list[str], index: int) -> list[str]:
    """Return the paragraph that ends above a blank line."""
    end = index - 1
    start = end
    while start > 0 and lines[start - 1].strip():
        start -= 1
    return lines[start:end]


def inline_to_rst(line: str) -> str:
    """Double the backquotes of code and escape what reStructuredText would read as markup."""
    parts = re.split(r"(?<!`)(`[^`]+`)(?!`)", line)
    return "".join(
        f"`{part}`".replace(". ", ".\u2060 ")  # autosummary takes ". " for the end of the sentence
        if part.startswith("`")
        else re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", part.replace("*", "\\*"))
        for part in parts
    )


def table_to_rst(lines: list[str]) -> Iterator[str]:
    """Return a Markdown table as a list-table."""
    rows = [[part.strip() for part in line.strip().strip("|").split("|")] for line in lines]
    rows = [row for row in rows if not all(set(part) <= set("-: ") for part in row)]
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    for row in rows:
        for number, part in enumerate(row):
            yield f"   {'* -' if number == 0 else '  -'} {inline_to_rst(part)}"


# --- names in signatures


def resolve_name(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Link a name to the place where it is documented, show one that only exists as text, and leave others to nitpick.

    A signature names `heedful.attention.types.Memory`, which is documented as `heedful.attention.Memory`.
    """
    from sphinx.util.nodes import make_refnode

    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not target.startswith("heedful."):
        return None
    name = target.rpartition(".")[2]
    objects = env.get_domain("py").objects
    places = [one for one in objects if one.rpartition(".")[2] == name and not objects[one].aliased]
    if len(places) == 1:
        place = objects[places[0]]
        return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, contnode, places[0])
    return contnode if exists(target) else None


def exists(name: str) -> bool:
    """Return whether a dotted name can be imported."""
    import importlib

    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("missing-reference", resolve_name)
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-docstring", markdown_to_rst)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
