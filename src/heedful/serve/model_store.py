"""The models of a server: loaded when they are first used, and the least recently used one leaves."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from heedful.api.loading import load
from heedful.errors import ModelError
from heedful.serve.elsewhere import ElsewhereServable, describe_from_elsewhere
from heedful.serve.problems import ProblemError, unknown_model
from heedful.serve.servables import Servable, make_servable
from heedful.tasks.bundled import bundled_models
from heedful.tasks.model_card import read_card
from heedful.tasks.model_names import is_from_elsewhere
from heedful.tasks.registry import get_task

log = logging.getLogger("heedful.serve")


class ModelStore:
    """Models by name; `get` may be called by several threads, and loads a model once."""

    def __init__(self, folders: Mapping[str, Path | str], max_models: int, int8: bool = False) -> None:
        self.folders, self.max_models, self.int8 = dict(folders), max_models, int8
        self.bundled: set[Path | str] = set(bundled_models().values())
        self._loaded: OrderedDict[str, Servable] = OrderedDict()
        self._lock, self._locks = Lock(), {name: Lock() for name in folders}
        self._cards: dict[str, dict[str, Any]] = {}
        for name, folder in self.folders.items():
            if is_from_elsewhere(folder):  # only the model itself says what it does
                self._cards[name] = describe_from_elsewhere(self.get(name).model)

    @property
    def names(self) -> list[str]:
        """The names of all models that can be used."""
        return list(self.folders)

    @property
    def loaded(self) -> list[str]:
        """The names of the models in memory."""
        with self._lock:
            return list(self._loaded)

    def add(self, name: str, folder: Path) -> None:
        """Serve another model, such as one that was just trained; one of this name is replaced."""
        with self._lock:
            self.folders[name], self._locks[name] = folder, Lock()
            self._loaded.pop(name, None)
            self._cards.pop(name, None)

    def card(self, name: str) -> dict[str, Any]:
        """Return the card of a model."""
        self._check(name)
        if name not in self._cards:
            self._cards[name] = read_card(Path(self.folders[name]))
        return self._cards[name]

    def task(self, name: str) -> str:
        """Return the task that a model was trained for."""
        return str(self.card(name)["task"])

    def find(self, name: str | None, task: str) -> str:
        """Return the name of the model for a task: the given one, or the first that was trained for it."""
        if name is not None:
            self._check(name)
            kind = self.task(name)
            if kind != task and not isinstance(get_task(kind), type(get_task(task))):
                raise ProblemError(422, "wrong-task", f"{name} was trained to {kind}; use /v1/{kind}")
            return name
        suitable = [known for known in self.names if self._is_for(known, task)]
        if not suitable:
            served = ", ".join(f"{known} ({self.task(known)})" for known in self.names) or "none"
            raise ProblemError(404, "no-model", f"no model for {task} is served; served are: {served}")
        return suitable[0]

    def peek(self, name: str) -> Servable | None:
        """Return a model if it is in memory; this is not a use of it."""
        with self._lock:
            return self._loaded.get(name)

    def get_loaded(self, name: str) -> Servable | None:
        """Return a model if it is in memory; it is now the one that was used last."""
        self._check(name)
        with self._lock:
            if name in self._loaded:
                self._loaded.move_to_end(name)
            return self._loaded.get(name)

    def get(self, name: str) -> Servable:
        """Return a model, which is loaded first if it is not in memory."""
        if (servable := self.get_loaded(name)) is not None:
            return servable
        with self._lock:
            loading = self._locks[name]
        with loading:  # others that want the same model wait; those that want another do not
            with self._lock:
                if name in self._loaded:
                    return self._loaded[name]
            servable = self._make(name)
            with self._lock:
                self._loaded[name] = servable
                while len(self._loaded) > self.max_models:
                    left, _ = self._loaded.popitem(last=False)
                    log.info("model unloaded", extra={"fields": {"model": left}})
        log.info("model loaded", extra={"fields": {"model": name}})
        return servable

    def _make(self, name: str) -> Servable:
        folder = self.folders[name]
        if is_from_elsewhere(folder):
            return ElsewhereServable(name, load(folder))
        return make_servable(name, load(folder), self.int8)

    def _is_for(self, name: str, task: str) -> bool:
        try:
            return self.task(name) == task
        except ModelError:  # a folder that has vanished
            return False

    def _check(self, name: str) -> None:
        if name not in self.folders:
            raise unknown_model(name, self.names)
