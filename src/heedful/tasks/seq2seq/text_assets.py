"""What a sequence-to-sequence model needs besides its weights: one tokenizer per side. Imports no torch."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from heedful.data.asset_files import asset_file
from heedful.data.token_statistics import TokenStatistics
from heedful.data.tokenizer import Tokenizer

SIDES = ("source", "target")


class TextAssets(NamedTuple):
    """The tokenizers of the source and the target, and statistics of the source text, which old folders lack."""

    source: Tokenizer
    target: Tokenizer
    statistics: TokenStatistics | None = None

    def save(self, folder: Path) -> None:
        """Write one file per side, and the statistics."""
        self.source.save(folder / "source.tokenizer.json")
        self.target.save(folder / "target.tokenizer.json")
        if self.statistics is not None:
            self.statistics.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what `save` wrote."""
        source, target = (asset_file(folder, f"{side}.tokenizer.json") for side in SIDES)
        tokenizer = Tokenizer.load(source)
        shared = filecmp.cmp(source, target, shallow=False)  # one vocabulary for both sides is read once
        statistics = TokenStatistics.load(folder, len(tokenizer))
        return cls(tokenizer, tokenizer if shared else Tokenizer.load(target), statistics)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of both vocabularies."""
        return {"source": len(self.source), "target": len(self.target)}

    def equals(self, other: Self) -> bool:
        """Return whether both sides have the same tokenizers."""
        return all(getattr(self, side).to_json() == getattr(other, side).to_json() for side in SIDES)

    def lowercase_like_target(self, references: Sequence[str]) -> list[str]:
        """Return the references in lower case if the target tokenizer lowercases, so that outputs can match them."""
        return [line.lower() for line in references] if self.target.lowercases else list(references)
