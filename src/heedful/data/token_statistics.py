"""Statistics of the training text of a model, by which an input that is unlike it is recognized.

They are the information content of each token of the vocabulary and one threshold; no text is stored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.asset_files import asset_file, read_json
from heedful.data.tokenizer import END, UNK, Tokenizer
from heedful.errors import ModelError

if TYPE_CHECKING:
    from heedful.data.corpus import Corpus  # imports torch
    from heedful.data.pairs import TextPair

FILE_NAME = "source.statistics.json"
PSEUDO_COUNT = 0.5  # of a token that the training text does not contain
QUANTILE = 0.99  # of the validation lines are below the threshold
MARGIN = 1.25  # the threshold is at least so many times the median: all lines of a generated world are alike
UNITS_PER_BIT = 100  # the file has whole numbers
MAX_BITS = 100.0
SHORT, SHORT_MARGIN = 16, 1.35  # characters; a shorter line says less, so its score must be so many times the threshold
MAX_UNKNOWN = 1 / 3  # fraction of unknown words that says nothing
MIN_LINES = 10  # of validation data; fewer give no threshold
MAX_ROWS = 100_000  # training lines that are counted at most; of validation lines a tenth of it


class TokenStatistics(NamedTuple):
    """The information content of each token in the training text, in bits, and the threshold of the score."""

    bits: npt.NDArray[np.float64]  # (vocabulary,)
    threshold: float

    @classmethod
    def fit(
        cls, train: Iterable[Sequence[int]], lines: Sequence[str], ids: Sequence[Sequence[int]], vocab_size: int
    ) -> TokenStatistics | None:
        """Count the tokens of encoded training lines, and set the threshold by validation lines and their ids.

        Return None if there are too few validation lines.
        """
        if len(lines) < MIN_LINES:
            return None
        counts = np.zeros(vocab_size)
        for row in train:
            np.add.at(counts, np.asarray(row, dtype=np.int64), 1)
        counts[[END, UNK]] = 0  # an unknown word is as rare as a word that never occurs, however many there are
        bits = -np.log2((counts + PSEUDO_COUNT) / (counts.sum() + PSEUDO_COUNT * vocab_size))
        bits = np.round(bits * UNITS_PER_BIT) / UNITS_PER_BIT
        unlimited = cls(bits, 0.0)
        scores = [unlimited.score(line, row) for line, row in zip(lines, ids, strict=True)]
        threshold = max(float(np.quantile(scores, QUANTILE)), MARGIN * float(np.median(scores)))
        return cls(bits, round(threshold, 4))

    def score(self, line: str, ids: Sequence[int]) -> float:
        """Return the geometric mean of the bits per token and the bits per character of a line; higher is stranger.

        Text of another language has rare tokens (many bits per token) or is cut into short ones (many per character).
        A few unknown words among known ones, such as names, do not count.
        """
        tokens = [token for token in ids if token != END]
        if tokens.count(UNK) <= MAX_UNKNOWN * len(tokens):
            tokens = [token for token in tokens if token != UNK]
        characters = sum(map(len, line.split()))
        if not tokens or not characters:
            return 0.0
        return float(self.bits[tokens].sum()) / math.sqrt(len(tokens) * characters)

    def save(self, folder: Path) -> None:
        """Write the file."""
        units = np.round(self.bits * UNITS_PER_BIT).astype(int).tolist()
        content = {"threshold": self.threshold, "units_per_bit": UNITS_PER_BIT, "units": units}
        (folder / FILE_NAME).write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, vocab_size: int) -> TokenStatistics | None:
        """Read what `save` wrote; None if the folder has no such file, as those of earlier versions."""
        path = asset_file(folder, FILE_NAME)
        if not path.is_file():
            return None
        try:
            return cls._parse(read_json(path), vocab_size)
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            raise ModelError(f"{path}: damaged: not the statistics of {vocab_size:,} tokens") from None

    @classmethod
    def _parse(cls, content: Any, vocab_size: int) -> TokenStatistics:
        units, threshold = content["units"], content["threshold"]
        is_list = isinstance(units, list) and len(units) == vocab_size and content["units_per_bit"] == UNITS_PER_BIT
        if not is_list or not all(type(unit) is int and 0 <= unit <= MAX_BITS * UNITS_PER_BIT for unit in units):
            raise ValueError("impossible numbers")
        if type(threshold) not in (int, float) or not 0 < threshold <= MAX_BITS:  # false for NaN
            raise ValueError("impossible threshold")
        return cls(np.array(units, dtype=np.float64) / UNITS_PER_BIT, float(threshold))


def source_statistics(corpus: Corpus, valid: Iterable[TextPair], source: Tokenizer) -> TokenStatistics | None:
    """Return the statistics of the source side of a corpus, with a threshold by validation lines."""
    step = -(-len(corpus) // MAX_ROWS)
    rows = (corpus[row].source for row in range(0, len(corpus), step))
    lines = [pair.source for pair in islice(valid, MAX_ROWS // 10)]
    return TokenStatistics.fit(rows, lines, source.encode_all(lines), len(source))


def is_unlike_training(line: str, ids: Sequence[int], statistics: TokenStatistics | None) -> bool | None:
    """Return whether a line is unlike the training text; None if that is not known, as without statistics.

    A line of which most tokens are unknown is unlike it also without statistics.
    """
    tokens = [token for token in ids if token != END]
    n_unknown = tokens.count(UNK)
    if tokens and (n_unknown > len(tokens) / 2 if statistics is None else n_unknown == len(tokens)):
        return True
    if statistics is None:
        return None
    is_short = sum(map(len, line.split())) < SHORT
    return statistics.score(line, ids) > statistics.threshold * (SHORT_MARGIN if is_short else 1.0)
