"""The assets of a language model: one tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.data.asset_files import asset_file
from heedful.data.tokenizer import UNK, Tokenizer
from heedful.models import LanguageModel
from heedful.tasks.base import LoadedModel

TOKENIZER = "text.tokenizer.json"


class LanguageModelAssets(NamedTuple):
    """The tokenizer of the text."""

    text: Tokenizer

    def save(self, folder: Path) -> None:
        """Write the tokenizer."""
        self.text.save(folder / TOKENIZER)

    @classmethod
    def load(cls, folder: Path) -> LanguageModelAssets:
        """Read what `save` wrote."""
        return cls(Tokenizer.load(asset_file(folder, TOKENIZER)))

    def sizes(self) -> dict[str, int]:
        """Return the size of the vocabulary."""
        return {"text": len(self.text)}

    @property
    def unknown(self) -> int:
        """The id of words outside the vocabulary: the text's own `<unk>`, if it has one."""
        return self.text.encode("<unk>")[0] if self.text.kind == "word" else UNK

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of each line, with the text's own `<unk>`."""
        unknown = self.unknown
        return [[unknown if i == UNK else i for i in row] for row in self.text.encode_all(lines)]


LoadedLanguageModel = LoadedModel[LanguageModelAssets, LanguageModel]
