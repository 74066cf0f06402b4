"""What `import heedful` gives: a model by its name or folder, ready to be asked.

en_fr = heedful.load("build/demo")
en_fr("my sister sees the small cat")                       # a line, or a list of lines
seen = en_fr.trace("my sister sees the small cat")          # every number of it
en_fr.trace("my sister sees the small cat", edits=["onehot:step=5,position=0"])

What a model is asked, and what it answers, is its task's: texts have labels or surprising words, photographs
captions, histories items.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

from heedful.config import DecodingConfig, check_decoding
from heedful.errors import DataError, ModelError
from heedful.record import Edit, Gold, Trace
from heedful.record.trace import Level
from heedful.tasks.bundled import find
from heedful.tasks.folder import open_model
from heedful.tasks.kind import FILES, Opened, kind_of
from heedful.tasks.tracing import Wanted
from heedful.trace import edit_of


class Model:
    """A trained model. Decoding settings (`beam=5`, `method="sample"`, ...) can be given with every call."""

    def __init__(self, opened: Opened[Any, Any]) -> None:
        self.opened = opened

    def __call__(self, given: Any, **how: Any) -> Any:
        raise NotImplementedError

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
        """Everything it does with what it is given; with edits, what it does when made to look elsewhere."""
        kind, how = kind_of(self.opened.recipe.task.kind), self._how(decoding)
        wanted = Wanted(str(text), detail, target, gold=gold, lattice=what_if)
        made = kind.trace(self.opened, wanted, how)
        if not edits:
            return made
        asked = [edit_of(edit) if isinstance(edit, str) else edit for edit in edits]
        changed = Wanted(str(text), detail, target, gold=gold, edits=asked, parent=made, lattice=what_if)
        return kind.trace(self.opened, changed, how)

    def _how(self, decoding: dict[str, Any]) -> DecodingConfig:
        if "beam" in decoding and "method" not in decoding:
            decoding = {**decoding, "method": "beam" if decoding["beam"] > 1 else "greedy"}
        check_decoding(decoding)
        return DecodingConfig.model_validate({**self.opened.recipe.decoding.model_dump(), **decoding})

    def __repr__(self) -> str:
        return f"<heedful model {self.opened.name}: {self.opened.recipe.task.kind}>"


class Writer(Model):
    """Lines into lines: translations, summaries, replies."""

    def __init__(self, opened: Opened[Any, Any]) -> None:
        from heedful.tasks.use import ready_of

        super().__init__(opened)
        self.ready = ready_of([opened])

    @overload
    def __call__(self, given: str, **how: Any) -> str: ...
    @overload
    def __call__(self, given: Sequence[str], **how: Any) -> list[str]: ...
    def __call__(self, given: str | Sequence[str], **how: Any) -> str | list[str]:
        """What it makes of a line, or of each of some lines."""
        from heedful.tasks.use import texts

        lines = [given] if isinstance(given, str) else list(given)
        made = [best[0] for best in texts(self.ready, lines, self._how(how))]
        return made[0] if isinstance(given, str) else made


class Classifier(Model):
    """Texts into labels."""

    @overload
    def __call__(self, given: str, **how: Any) -> str: ...
    @overload
    def __call__(self, given: Sequence[str], **how: Any) -> list[str]: ...
    def __call__(self, given: str | Sequence[str], **how: Any) -> str | list[str]:
        """The label of a text, or of each of some; a blank one's is blank."""
        from heedful.tasks.classify_use import classified

        _nothing(how)
        lines = [given] if isinstance(given, str) else list(given)
        made = ["" if found is None else found.label for found in classified(self.opened, lines)]
        return made[0] if isinstance(given, str) else made

    def look(self, text: str) -> Any:
        """The probabilities of all labels, and how much each word weighed."""
        from heedful.tasks.classify_use import classified

        (found,) = classified(self.opened, [text], weights=True)
        if found is None:
            raise DataError("there is nothing to classify in an empty text")
        return found


class Captioner(Model):
    """Pictures into captions."""

    @overload
    def __call__(self, given: str | Path, **how: Any) -> str: ...
    @overload
    def __call__(self, given: Sequence[str | Path], **how: Any) -> list[str]: ...
    def __call__(self, given: str | Path | Sequence[str | Path], **how: Any) -> str | list[str]:
        """The caption of a picture, by its file's name, or of each of some."""
        from heedful.tasks.caption import captions, sighted
        from heedful.vision.pictures import FilePicture

        files = [given] if isinstance(given, str | Path) else list(given)
        pictures = [FilePicture(Path(file)).open() for file in files]
        found = captions(self.opened.model, sighted(self.opened), pictures, self._how(how))
        made: list[str] = [self.opened.words.target.decode(best[0].tokens) for best in found]
        return made[0] if isinstance(given, str | Path) else made


class Because(NamedTuple):
    """An item of a history: its weight, and the score with it minus the score without it."""

    title: str
    weight: float
    effect: float


class Item(NamedTuple):
    """What is recommended, and what spoke for it."""

    title: str
    score: float
    because: list[Because]


class Recommender(Model):
    """Histories into items."""

    def __call__(
        self, given: Sequence[str] = (), *, user: str | None = None, top: int = 10, **how: Any
    ) -> list[Item]:
        """Items for somebody who took these (titles or ids), or for a user that the model knows."""
        from heedful.tasks.recommend_use import advise, history_of

        _nothing(how)
        history = history_of(self.opened, user, [given] if isinstance(given, str) else list(given))
        name = self.opened.words.name
        return [
            Item(
                name(advice.item),
                advice.score,
                [Because(name(reason.item), reason.weight, reason.effect) for reason in advice.reasons],
            )
            for advice in advise(self.opened, history, top)
        ]


class Reader(Model):
    """Texts, word by word."""

    def __call__(self, given: str, **how: Any) -> list[tuple[str, float]]:
        """Every word of a line and how surprising it was, in bits; the end of the line is one too."""
        from heedful.tasks.read_words import read_lines

        _nothing(how)
        (line,) = read_lines(self.opened, [given])
        return [(word.text, word.bits) for word in line.words]


FACES: dict[str, type[Model]] = {
    "text": Writer,
    "caption": Captioner,
    "classify": Classifier,
    "recommend": Recommender,
    "read": Reader,
}


def _nothing(how: dict[str, Any]) -> None:
    if how:
        raise TypeError(f"{next(iter(how))}: such settings are for models that write")


@overload
def load(name: str | Path | None = None) -> Model: ...
@overload
def load(
    name: str | Path | None = None, *, task: Literal["translate", "summarise", "reply", "transduce"]
) -> Writer: ...
@overload
def load(name: str | Path | None = None, *, task: Literal["classify"]) -> Classifier: ...
@overload
def load(name: str | Path | None = None, *, task: Literal["caption"]) -> Captioner: ...
@overload
def load(name: str | Path | None = None, *, task: Literal["recommend"]) -> Recommender: ...
@overload
def load(name: str | Path | None = None, *, task: Literal["read"]) -> Reader: ...
def load(name: str | Path | None = None, *, task: str | None = None) -> Model:
    """A model by its folder, or by a bundled one's name; without a name, the bundled one for the task."""
    (folder,) = find([] if name is None else [Path(name)], task or "translate")
    opened = open_model(folder)
    own = opened.recipe.task.kind
    if task is not None and FILES[own] != FILES.get(task):
        raise ModelError(f"{opened.name} was trained to {own}, not to {task}")
    return FACES[FILES[own]](opened)
