"""The registry of names: scores, normalizers, placements, backbones, metrics, views and tasks, built in or added.

Built-in names come from the modules and tables that define them and are listed nowhere else. Users add their own from
Python,

    heedful.register("score", "gaussian", Gaussian)

or by an installed package's entry points in the group `heedful.plugins`, named KIND.NAME:

    [project.entry-points."heedful.plugins"]
    "score.gaussian" = "my_package.scores:Gaussian"

Names can be checked without importing the objects they stand for, so checking a recipe does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import PluginError, nearest

GROUP = "heedful.plugins"
PACKAGE = Path(__file__).parent


class Modules(NamedTuple):
    """A package with one module per name: `scaled_dot.py` defines "scaled-dot" by its constant `attribute`.

    `base.py` and private modules define no name; a trailing underscore, as in `global_.py`, is not part of the name.
    """

    package: str
    attribute: str

    def entries(self) -> dict[str, Any]:
        files = sorted(PACKAGE.joinpath(*self.package.split(".")).glob("[!_]*.py"))
        modules = [path.stem for path in files if path.stem != "base"]
        return {
            module.rstrip("_").replace("_", "-"): f"heedful.{self.package}.{module}:{self.attribute}"
            for module in modules
        }


class Table(NamedTuple):
    """A mapping in a module that does not import torch; its values are objects or "module:attribute"."""

    module: str
    attribute: str

    def entries(self) -> dict[str, Any]:
        return dict(getattr(import_module(f"heedful.{self.module}"), self.attribute))


KINDS: Mapping[str, Modules | Table] = {
    "score": Modules("attention.scores", "SCORE"),
    "normalizer": Modules("attention.normalizers", "NORMALIZER"),
    "placement": Modules("attention.placements", "PLACEMENT"),
    "backbone": Table("data.images.names", "BACKBONES"),
    "metric": Table("metrics.table", "METRICS"),
    "view": Table("viz.views", "VIEWS"),
    "task": Table("tasks.registry", "TASKS"),
}
_registered: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}


def register(kind: str, name: str, obj: Any) -> None:
    """Make `obj` available under a name, in recipes, on the command line and in Python.

    `kind` is "score", "normalizer", "placement", "backbone", "metric", "view" or "task". Built-in names cannot be
    replaced. docs/extending.md has an example of each kind.

        heedful.register("score", "gaussian", Gaussian)
        heedful.train(pairs, settings={"model.attention.score": "gaussian"})
    """
    _check(kind, name, f'heedful.register("{kind}", "{name}", ...)')
    _registered[kind][name] = obj


def known_names(kind: str) -> tuple[str, ...]:
    """Return every name of a kind: built-in, registered, and those of installed plugins."""
    return tuple(dict.fromkeys((*built_in_names(kind), *_registered[kind], *_plugins(kind))))


def is_known(kind: str, name: str) -> bool:
    """Return True if a name exists; plugins are searched only if it is neither built in nor registered."""
    return name in built_in_names(kind) or name in _registered[kind] or name in _plugins(kind)


def built_in_names(kind: str) -> tuple[str, ...]:
    """Return the names of a kind that heedful defines itself."""
    return tuple(_built_in(kind))


def get(kind: str, name: str) -> Any:
    """Return the object with a name, importing the module that defines it."""
    if name in _built_in(kind):
        entry = _built_in(kind)[name]
        return resolve(entry) if isinstance(entry, str) else entry
    if name in _registered[kind]:
        return _registered[kind][name]
    if name in _plugins(kind):
        register(kind, name, _load(_plugins(kind)[name]))
        return _registered[kind][name]
    raise PluginError(f'no {kind} "{name}"; {nearest(name, known_names(kind))}')


def resolve(entry: str) -> Any:
    """Return the object that "module:attribute" names, importing the module.

    >>> resolve("heedful.registry:GROUP")
    'heedful.plugins'
    """
    module, _, attribute = entry.partition(":")
    return getattr(import_module(module), attribute)


@cache
def _built_in(kind: str) -> dict[str, Any]:
    return KINDS[kind].entries()


@cache
def _plugins(kind: str) -> dict[str, EntryPoint]:
    """Return the installed entry points of a kind; the metadata of installed packages is read once."""
    plugins: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        point_kind, _, name = point.name.partition(".")
        _check(point_kind, name, f"{_source(point)}: entry point {point.name}")
        if point_kind == kind:
            plugins[name] = point
    return plugins


def _check(kind: str, name: str, where: str) -> None:
    """Raise a PluginError if a name cannot be added; the message begins with `where`."""
    if kind not in KINDS:
        raise PluginError(f'{where}: no extension point "{kind}"; {nearest(kind, KINDS)}')
    if not re.fullmatch(r"[a-z0-9][a-z0-9:.-]*", name):
        raise PluginError(f'{where}: the name must consist of lower-case letters, digits, "-", "." and ":"')
    if name in _built_in(kind):
        raise PluginError(f'{where}: there is a built-in {kind} "{name}"; choose another name')


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # whatever a plugin raises when it is imported
        message = f"{type(error).__name__}: {error}"
        raise PluginError(f"{_source(point)}: entry point {point.name} cannot be loaded: {message}") from error


def _source(point: EntryPoint) -> str:
    return f"plugin {point.dist.name}" if point.dist is not None else "plugin"
