"""What `import heedful` gives: a model by its name or folder, ready to be asked.

en_fr = heedful.load("build/demo")
en_fr("my sister sees the small cat")                       # a line, or a list of lines
seen = en_fr.trace("my sister sees the small cat")          # every number of it
en_fr.trace("my sister sees the small cat", edits=["onehot:step=5,position=0"])
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

from heedful.config import DecodingConfig, check_decoding
from heedful.errors import DataError, ModelError
from heedful.record import Edit, Gold, Trace
from heedful.record.trace import Level
from heedful.tasks.bundled import find
from heedful.tasks.classify import Labeller
from heedful.tasks.classify_trace import trace_text
from heedful.tasks.classify_use import Found, classified, open_labeller
from heedful.tasks.folder import open_model
from heedful.tasks.text import TextModel
from heedful.tasks.tracing import Wanted, trace_line
from heedful.tasks.use import ready_of, texts
from heedful.trace import edit_of


class Model:
    """A trained model. Decoding settings (`beam=5`, `method="sample"`, ...) can be given with every call."""

    def __init__(self, opened: TextModel) -> None:
        self.opened = opened
        self.ready = ready_of([opened])

    @overload
    def __call__(self, text: str, **decoding: Any) -> str: ...
    @overload
    def __call__(self, text: Sequence[str], **decoding: Any) -> list[str]: ...
    def __call__(self, text: str | Sequence[str], **decoding: Any) -> str | list[str]:
        """What it makes of a line, or of each of some lines."""
        lines = [text] if isinstance(text, str) else list(text)
        made = [best[0] for best in texts(self.ready, lines, self._how(decoding))]
        return made[0] if isinstance(text, str) else made

    def trace(
        self,
        text: str,
        *,
        detail: Level = "steps",
        target: str | None = None,
        gold: Gold | None = None,
        edits: Sequence[str | Edit] = (),
        what_if: bool = False,
        **decoding: Any,
    ) -> Trace:
        """Everything it does with a line; with edits, what it does when it is made to look elsewhere."""
        how = self._how(decoding)
        wanted = Wanted(text, detail, target, gold=gold, lattice=what_if)
        made = trace_line(self.opened, wanted, how)
        if not edits:
            return made
        asked = [edit_of(edit) if isinstance(edit, str) else edit for edit in edits]
        changed = Wanted(text, detail, target, gold=gold, edits=asked, parent=made, lattice=what_if)
        return trace_line(self.opened, changed, how)

    def _how(self, decoding: dict[str, Any]) -> DecodingConfig:
        if "beam" in decoding and "method" not in decoding:
            decoding = {**decoding, "method": "beam" if decoding["beam"] > 1 else "greedy"}
        check_decoding(decoding)
        return DecodingConfig.model_validate({**self.opened.recipe.decoding.model_dump(), **decoding})

    def __repr__(self) -> str:
        return f"<heedful model {self.opened.name}: {self.opened.recipe.task.kind}>"


class TextClassifier:
    """A trained classifier."""

    def __init__(self, opened: Labeller) -> None:
        self.opened = opened

    @overload
    def __call__(self, text: str) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Sequence[str]) -> list[str]: ...
    def __call__(self, text: str | Sequence[str]) -> str | list[str]:
        """The label of a text, or of each of some; a blank one's is blank."""
        lines = [text] if isinstance(text, str) else list(text)
        made = ["" if found is None else found.label for found in classified(self.opened, lines)]
        return made[0] if isinstance(text, str) else made

    def look(self, text: str) -> Found:
        """The probabilities of all labels, and how much each word weighed."""
        (found,) = classified(self.opened, [text], weights=True)
        if found is None:
            raise DataError("there is nothing to classify in an empty text")
        return found

    def trace(
        self, text: str, *, detail: Level = "steps", edits: Sequence[str | Edit] = (), what_if: bool = False
    ) -> Trace:
        """Everything it does with a text; with edits, what it does when it is made to look elsewhere."""
        made = trace_text(self.opened, Wanted(text, detail, lattice=what_if))
        if not edits:
            return made
        asked = [edit_of(edit) if isinstance(edit, str) else edit for edit in edits]
        return trace_text(self.opened, Wanted(text, detail, edits=asked, parent=made, lattice=what_if))

    def __repr__(self) -> str:
        return f"<heedful model {self.opened.name}: classify>"


@overload
def load(name: str | Path | None = None, *, task: Literal["classify"]) -> TextClassifier: ...  # type: ignore[overload-overlap]
@overload
def load(name: str | Path | None = None, task: str = "translate") -> Model: ...
def load(name: str | Path | None = None, task: str = "translate") -> Model | TextClassifier:
    """A model by its folder, or by a bundled one's name; without a name, the bundled one for the task."""
    (folder,) = find([] if name is None else [Path(name)], task)
    if task == "classify":
        return TextClassifier(open_labeller(folder))
    opened = open_model(folder)
    if opened.recipe.task.kind == "classify":
        raise ModelError(f'{name} was trained to classify: heedful.load("{name}", task="classify")')
    return Model(opened)
