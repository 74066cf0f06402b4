"""The table of tasks: each name with the object that implements it.

A new task is a package in this folder and a line in `TASKS`. Entries are imported when they are first used, so
that a recipe is checked without importing torch. Users add tasks with `heedful.register("task", name, task)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heedful import registry

if TYPE_CHECKING:
    from heedful.tasks.base import Task

TASKS: Mapping[str, str] = {
    "translate": "heedful.tasks.seq2seq.task:TASK",
    "summarize": "heedful.tasks.seq2seq.task:TASK",
    "reply": "heedful.tasks.seq2seq.task:TASK",
    "transduce": "heedful.tasks.seq2seq.task:TASK",
    "caption": "heedful.tasks.caption.task:TASK",
    "classify": "heedful.tasks.classify.task:TASK",
    "recommend": "heedful.tasks.recommend.task:TASK",
    "read": "heedful.tasks.language_model.task:TASK",
}


def get_task(name: str) -> Task:
    """Return the task with a name, built in or registered."""
    task: Task = registry.get("task", name)
    return task


def task_of(loaded: Any) -> Task:
    """Return the task of a loaded model: that of its recipe, or of a model from elsewhere its own."""
    own: Task | None = getattr(loaded, "task", None)
    return get_task(loaded.recipe.task.kind) if own is None else own
