"""The vocabulary of a transformers model under our numbers: ids 0 to 3 are padding, unknown, start and end.

Search and probes know these four ids. A model's own ids can stand for several of them (Marian starts with its padding,
BART with its end token), so ours come in front of all other tokens, and logits are rearranged.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.tokenizer import END, PAD, SPECIALS, START, UNK

ABSENT = -1


class IdMap:
    """Converts ids between a model's vocabulary and ours.

    >>> ids = IdMap(6, pad=5, unk=1, start=5, end=0)
    >>> ids.to_ours([2, 3, 0]), ids.to_model([4, 5, 3])
    ([4, 5, 3], [2, 3, 0])
    """

    def __init__(self, size: int, *, pad: int | None, unk: int | None, start: int | None, end: int | None) -> None:
        special = {PAD: pad, UNK: unk, START: start, END: end}
        table = [ABSENT if special[i] is None else int(special[i] or 0) for i in range(len(SPECIALS))]
        self.table = torch.tensor(table + [i for i in range(size) if i not in (end, unk)])
        self.ours = {model: ours for ours, model in enumerate(self.table.tolist()) if ours >= len(SPECIALS)}
        self.ours |= {i: ours for i, ours in ((unk, UNK), (end, END)) if i is not None}
        self.pad = pad if pad is not None else end or 0

    def to_ours(self, ids: Sequence[int]) -> list[int]:
        """Return our ids of a model's ids."""
        return [self.ours[i] for i in ids]

    def to_model(self, ids: Sequence[int]) -> list[int]:
        """Return a model's ids of ours."""
        return [int(self.table[i]) for i in ids]

    def tensor_to_model(self, ids: Tensor) -> Tensor:
        """Return a model's ids of ours; an id that the model does not have becomes its padding."""
        found = self.table.to(ids.device)[ids]
        return found.masked_fill(found == ABSENT, self.pad)

    def arrange_logits(self, logits: Float[Tensor, "*row theirs"]) -> Float[Tensor, "*row ours"]:
        """Return logits in the order of our ids; of tokens that the model does not have -inf."""
        table = self.table.to(logits.device)
        arranged = logits[..., table.clamp_min(0)]
        return arranged.masked_fill(table == ABSENT, float("-inf"))
