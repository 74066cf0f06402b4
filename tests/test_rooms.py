"""The one-way corridor: rooms import only from rooms above them, without cycles, and light rooms stay light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "heedful"
ROOMS = (
    "errors",
    "arguments",
    "optional",
    "terminal_text",
    "atomic_write",
    "registry",
    "section",
    "stopping",
    "parallel",
    "config",
    "trace.schema",
    "kernels",
    "data",
    "hypothesis",
    "numpy_backend",
    "alignment",
    "attention",
    "fused",
    "layers",
    "models",
    "inference",
    "decoding",
    "trace",
    "metrics",
    "training",
    "viz",
    "tasks",
    "analysis",
    "batch",
    "integrations",
    "api",
    "serve",
    "cli",
    "__init__",
    "__main__",
)
LAZY_ROOMS = ("cli", "__init__", "__main__")  # may import inside functions: most commands need no torch
LAZY_MODULES = ("registry", "tasks.registry")


def module_of(path: Path) -> str:
    """Return the dotted name below `heedful`; a package is called by its folder."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def room_of(module: str) -> str:
    """Return the room of a module; the sections that tasks add to a recipe belong to the recipe."""
    if re.fullmatch(r"tasks\.\w+\.config", module):
        return "config"
    return "trace.schema" if re.match(r"trace\.schema\b", module) else module.split(".")[0]


def imports(tree: ast.AST, modules: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Yield the modules that a file imports, each with whether the import is for type checkers only."""
    typing_only = {
        id(below)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for below in ast.walk(node)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            whole = f"{node.module}.".removeprefix("heedful.")
            inside = [f"{node.module}.{alias.name}" for alias in node.names if whole + alias.name in modules]
            names = inside if len(inside) == len(node.names) else [node.module or "", *inside]
        for name in names:
            if name.startswith("heedful."):
                yield name.removeprefix("heedful."), id(node) in typing_only


def source_modules() -> dict[str, ast.AST]:
    return {module_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def wrong_imports(modules: dict[str, ast.AST]) -> list[str]:
    """Return the imports of rooms further down the corridor."""
    names = frozenset(modules)
    return [
        f"{module} imports {imported}"
        for module, tree in modules.items()
        for imported, typing_only in imports(tree, names)
        if not typing_only and ROOMS.index(room_of(imported)) > ROOMS.index(room_of(module))
    ]


def cycle(modules: dict[str, ast.AST]) -> list[str]:
    """Return the modules of an import cycle, if there is one."""
    names = frozenset(modules)
    graph = {
        module: {name for name, typing_only in imports(tree, names) if not typing_only and name != module}
        for module, tree in modules.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imports_in_functions(modules: dict[str, ast.AST]) -> list[str]:
    """Return imports of our own modules inside functions, where they hide cycles."""
    names = frozenset(modules)
    return [
        f"{module}: {node.name} imports {imported}"
        for module, tree in modules.items()
        if room_of(module) not in LAZY_ROOMS and module not in LAZY_MODULES
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        for imported, _ in imports(node, names)
    ]


def test_every_room_is_named() -> None:
    assert {room_of(module) for module in source_modules()} <= set(ROOMS)


def test_no_room_imports_from_one_below_it() -> None:
    assert wrong_imports(source_modules()) == []


def test_no_modules_import_each_other() -> None:
    assert cycle(source_modules()) == []


def test_own_modules_are_imported_at_the_top() -> None:
    assert imports_in_functions(source_modules()) == []


def test_a_wrong_import_a_cycle_and_a_hidden_import_are_found() -> None:
    modules: dict[str, ast.AST] = {
        "attention.bad": ast.parse("def f():\n    from heedful.models import Seq2Seq\n"),
        "attention.worse": ast.parse("from heedful.attention import worst\n"),
        "attention.worst": ast.parse("import heedful.attention.worse\n"),
        "tasks.caption.config": ast.parse("from heedful.section import Section\n"),
    }
    assert wrong_imports(modules) == ["attention.bad imports models"]
    assert imports_in_functions(modules) == ["attention.bad: f imports models"]
    assert set(cycle(modules)) == {"attention.worse", "attention.worst"}


LIGHT = [
    "heedful",
    "heedful.cli.app",
    "heedful.config",
    "heedful.trace.schema",
    "heedful.viz",
    "heedful.errors",
    "heedful.tasks.bundled",
]


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        (LIGHT, ["torch", "lightning_fabric", "matplotlib", "scipy"]),
        (
            ["heedful.tasks.model_folder", "heedful.tasks.seq2seq.task"],
            ["lightning_fabric", "matplotlib", "scipy"],
        ),
        *(
            ([f"heedful.tasks.{task}.config"], ["torch"])
            for task in ("caption", "classify", "language_model", "recommend")
        ),
    ],
    ids=["no torch before it is needed", "using a model imports neither fabric nor matplotlib", *["first import"] * 4],
)
def test_imports_stay_light(modules: list[str], heavy: list[str]) -> None:
    code = f"import sys, {', '.join(modules)}; print(sorted(set(sys.modules) & set({heavy!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
