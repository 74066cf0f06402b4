"""What `heedful measure` says of readers: how each word reads the words before it, and whether that matters.

A reader decides nothing once for all it has read: every look goes on into the next. So it is tested as a
whole, by its perplexity when every look of the usual site is uniform or permuted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from heedful.attention import PLAIN, Detail, Look, Override, Watch
from heedful.data.lines import encoded, sentences
from heedful.errors import DataError
from heedful.evaluation import perplexity_tally
from heedful.models import Reader
from heedful.record import Links, entropy_ratio
from heedful.studies.honesty import evened, shuffled
from heedful.studies.probe import Decided, Decision
from heedful.tasks.kind import Question
from heedful.tasks.read import ReaderModel, first_of, judged, longest_used
from heedful.tasks.read_evaluate import lines_of

Change = Callable[[Tensor], Tensor]


def _rows(opened: ReaderModel, lines: Sequence[str]) -> list[list[int]]:
    text = encoded(lines, opened.words.encode_all, opened.recipe.data, longest_used(opened.recipe))
    return [list(text[row].target) for row in range(len(text))]


def _read(
    model: Reader, first: int, ids: Sequence[int], change: Change | None, watched: bool
) -> tuple[np.ndarray, Look | None]:
    """One line behind its first token: what each of its tokens cost, and the looks of the usual site."""
    site = str(model.alignment)

    def edit(where: str, look: Look, _: Tensor) -> Override | None:
        assert change is not None
        if where != site or look.weights is None or not look.weights.shape[-1]:
            return None
        return Override(change(look.weights))

    watch = PLAIN
    if change is not None:
        watch = Watch(Detail.NONE, edit=edit)
    elif watched:
        watch = Watch(Detail.WEIGHTS, frozenset({site}))
    with torch.inference_mode():
        found = judged(model, sentences([ids], first), watch=watch)
    return found.surprise.double().numpy(), found.looks.get(site) if watched else None


class ReadSubject:
    """A reader and some lines."""

    decision, quality, things, probed = "next word", "perplexity", "earlier words", False

    def __init__(self, opened: ReaderModel, lines: Sequence[str]) -> None:
        self.model, self.first = opened.model, first_of(opened.recipe)
        self.sources = _rows(opened, lines)

    def chosen(self, each: int, seed: int) -> list[set[int]]:
        return [set() for _ in self.sources]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[Decided]:
        return iter(())

    def again(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        raise NotImplementedError

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        raise NotImplementedError

    def outputs(self, seed: int) -> dict[str, float]:
        """Perplexity as it is, and with all looks of the usual site uniform or permuted."""
        rng = Generator().manual_seed(seed)
        changes: dict[str, Change | None] = {
            "as it is": None,
            "uniform": evened,
            "permute": lambda weights: shuffled(weights, rng),
        }
        return {name: self._perplexity(change) for name, change in changes.items()}

    def _perplexity(self, change: Change | None) -> float:
        nats = [_read(self.model, self.first, ids, change, watched=False)[0] for ids in self.sources]
        return perplexity_tally(nats, "sentences").metric().value


class ReadWay:
    """Lines in, how likely each word was out."""

    unit = "lines"

    def items(self, opened: ReaderModel, data: Sequence[str], split: str) -> list[str]:
        return list(lines_of(opened, Question(data=tuple(data), split=split)))

    def gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: nobody knows which earlier words a reader ought to read")

    def looks(
        self, opened: ReaderModel, items: Sequence[str], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        spread, largest, before, first = [], [], [], []
        itself = 0 if opened.model.sites[-1].kind == "tape" else 1  # a tape has what came before alone
        for ids in _rows(opened, items):
            _, look = _read(opened.model, first_of(opened.recipe), ids, None, watched=True)
            assert look is not None
            assert look.weights is not None
            weights = look.weights[0].double().mean(dim=1).numpy()  # (query, key)
            kept = weights[:, weights.shape[1] - len(weights) :]  # without slots from before the line
            for at in range(2, len(weights)):  # where there is a choice
                row = kept[at, : at + itself]
                spread.append(entropy_ratio(row[None])[0])
                largest.append(row.max())
                before.append(row[at - 1])
                first.append(row[0])
        if not spread:
            raise DataError("these lines are too short: nothing is left to choose from")
        return {
            "looks": {
                "entropy ratio": float(np.mean(spread)),
                "largest weight": float(np.mean(largest)),
                "weight on the word before": float(np.mean(before)),
                "weight on the beginning": float(np.mean(first)),
            }
        }

    def subject(self, opened: ReaderModel, items: Sequence[str]) -> ReadSubject:
        return ReadSubject(opened, items)


WAY = ReadWay()
