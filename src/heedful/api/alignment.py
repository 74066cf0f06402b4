"""Word alignment from Python: sentence pairs in, links out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from heedful.alignment import SYMMETRIZATIONS, AlignerOptions, PairAlignment, Symmetrization, align_pairs
from heedful.alignment.aligner import AlignmentPrior, LogLine, no_log
from heedful.alignment.parallel_text import TextSides
from heedful.arguments import python_errors
from heedful.atomic_write import atomic_write
from heedful.config import DataConfig
from heedful.data.pairs import PairFiles
from heedful.errors import ArgumentError, DataError, nearest
from heedful.metrics.alignment import AlignmentScore, score_alignment
from heedful.section import Column
from heedful.tasks.bundled import find_models
from heedful.tasks.data_files import data_files
from heedful.tasks.model_folder import load_model
from heedful.tasks.seq2seq.align import attention_links
from heedful.trace.schema import Links, format_links, read_links
from heedful.trace.schema.links import Link

Gold = str | Path | Sequence[Links]


class WordAlignment(Sequence[list[Link]]):
    """The word links of sentence pairs: `alignment[n]` are those of pair n, as (source word, target word) from 0."""

    def __init__(self, pairs: Sequence[PairAlignment]) -> None:
        self.pairs = tuple(pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [sorted(pair.links) for pair in self.pairs[index]]
        return sorted(self.pairs[index].links)

    def __repr__(self) -> str:
        return f"<WordAlignment of {len(self):,} sentence pairs, {sum(len(pair.links) for pair in self.pairs):,} links>"

    @property
    def lines(self) -> Iterator[str]:
        """The links of each pair as a line in Pharaoh format."""
        return (format_links(pair.links) for pair in self.pairs)

    def save(self, path: str | Path) -> None:
        """Write the links in Pharaoh format, one line per pair."""
        with atomic_write(Path(path), DataError) as draft:
            draft.write_text("".join(f"{line}\n" for line in self.lines), encoding="utf-8")

    def score(self, gold: Gold, base: int = 0) -> AlignmentScore:
        """Return alignment error rate, precision and recall, in percent.

        `gold` is a Pharaoh file (`3-4`: sure, `3p4`: possible; words count from `base`), or what `read_links` returns.
        """
        with python_errors():
            links = read_links(Path(gold), base) if isinstance(gold, str | Path) else gold
            return score_alignment([pair.links for pair in self.pairs], links)


def align(
    data: Any,
    *,
    extra: Sequence[Any] = (),
    columns: Sequence[Column] = (),
    prior: AlignmentPrior = "diagonal",
    symmetrization: Symmetrization = "grow-diag-final-and",
    iterations: int = 5,
    lowercase: bool = True,
    prefix: int = 0,
) -> WordAlignment:
    """Align the words of sentence pairs with a statistical aligner (IBM model 2 with a diagonal prior).

    `data` are pairs as `heedful.train` takes them: a list of tuples, a data frame, the name of a table, or a tuple of
    two parallel text files. Words are what white space separates: tokenize first. The more pairs, the better the
    links: `extra` are more data of the same kind that the aligner learns from but does not return. `columns` name the
    columns of source and target in all tables. `heedful align` has the same options, and says what they mean.

    >>> import heedful
    >>> pairs = [("the house", "la maison"), ("the flower", "la fleur"), ("house", "maison")]
    >>> alignment = heedful.align(pairs)
    >>> alignment[0], list(alignment.lines)
    ([(0, 0), (1, 1)], ['0-0 1-1', '0-0 1-1', '0-0'])
    """
    names = {"prior": (prior, get_args(AlignmentPrior)), "symmetrization": (symmetrization, SYMMETRIZATIONS)}
    for name, (value, known) in names.items():
        if value not in known:
            raise ArgumentError(f'{name}="{value}": no such {name}; {nearest(str(value), known)}')
    for name, number, least in (("iterations", iterations, 1), ("prefix", prefix, 0)):
        if type(number) is not int or number < least:
            raise ArgumentError(f"{name}={number!r}: expected a whole number of at least {least}")
    options = AlignerOptions(prior, iterations, symmetrization, lowercase, prefix)
    with python_errors():
        more = [data_files(part, "translate") for part in extra]
        return align_files(data_files(data, "translate"), more, columns, options)


def align_with_model(model: str, files: Sequence[str], columns: Sequence[Column] = ()) -> WordAlignment:
    """Return the links of a model's attention between the pairs of files, one source word per target word."""
    (folder,) = find_models([model], "translate")
    pairs = list(PairFiles(files, Path(), DataConfig.model_construct(columns=tuple(columns))))
    links = attention_links(load_model(folder), pairs)
    return WordAlignment([PairAlignment(each, each, set()) for each in links])


def align_files(
    files: Sequence[str],
    extra: Sequence[Sequence[str]] = (),
    columns: Sequence[Column] = (),
    options: AlignerOptions | None = None,
    log: LogLine = no_log,
) -> WordAlignment:
    """Align the pairs of files, which are one table or two parallel files; `extra` are more of them to learn from."""
    data = DataConfig.model_construct(columns=tuple(columns))

    def read(names: Sequence[str]) -> Iterator[TextSides]:
        return ((pair.source, pair.target) for pair in PairFiles(names, Path(), data))

    more = chain.from_iterable(map(read, extra))
    return WordAlignment(list(align_pairs(read(files), more, options, log)))
