"""Words, then sentences (Yang 2016): each sentence, read by itself, becomes a vector; then those are read."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Detail, Edit, Look, Memory, Override, Watch, build_attention
from heedful.attention.types import OPEN
from heedful.config import ModelConfig
from heedful.config.model import encoder_width
from heedful.errors import ShapeError
from heedful.layers.dropout import Dropout
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.state import Read
from heedful.record import Site

WORDS = "enc.words"  # the site of the looks inside sentences


class SentenceEncoder(nn.Module):
    """A sentence's state stands at the position of its last word; the others cannot be read.

    So what reads sentences afterwards reads positions of the text, as it would read words.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = encoder_width(config)
        self.words = RecurrentEncoder(config.encoder, config.embedding, config.dropout)
        self.look = build_attention(config.attention, query=width, key=width, site=WORDS, kind="pool")
        self.query = nn.Parameter(torch.randn(width) * width**-0.5)
        self.dropout = Dropout(config.dropout)
        self.sentences = RecurrentEncoder(config.encoder, width, config.dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (self.look.site,)

    def forward(
        self,
        words: Float[Tensor, "batch key input"],
        keep: Bool[Tensor, "batch key"],
        ends: Bool[Tensor, "batch key"],
        watch: Watch = PLAIN,
    ) -> Read:
        """`ends`: the last word of each sentence; the last word of a text is one."""
        text, last = ends.nonzero(as_tuple=True)
        first = torch.where(text == text.roll(1), last.roll(1) + 1, 0)
        first[:1] = 0
        place = first[:, None] + torch.arange(int((last - first).max()) + 1, device=first.device)
        inside = place <= last[:, None]
        place = torch.minimum(place, last[:, None])
        states = self.words(words[text[:, None], place], inside).keys
        cut = Cut(ends, keep, text, last, place, inside)
        looks: dict[str, Look] = {}
        tapes: dict[str, Memory] = {}
        if watch.detail_at(WORDS) is Detail.FULL:  # by positions of the text, as it is shown: every score
            rows = states.new_zeros(*keep.shape, states.shape[-1])
            rows = rows.index_put((text[:, None].expand_as(place)[inside], place[inside]), states[inside])
            tapes[WORDS] = self.look.prepare(rows, keep)
            asked = self.query.expand(*keep.shape, -1)
            allow = own_sentence(ends, keep)
            vectors, looks[WORDS], _ = self.look.look(asked, tapes[WORDS], allow=allow, watch=watch)
            vectors = vectors[text, last]
        else:
            asked = self.query.expand(len(states), 1, -1)
            edit = None if watch.edit is None else cut.edit(watch.edit)
            mine = Watch(watch.detail_at(WORDS), edit=edit)
            vectors, look, _ = self.look.look(asked, self.look.prepare(states, inside), watch=mine)
            vectors = vectors[:, 0]
            if look.weights is not None:
                looks[WORDS] = Look(cut.in_text(look.weights))
        count = ends.sum(dim=1)
        real = torch.arange(int(count.max()), device=count.device) < count[:, None]
        given = vectors.new_zeros(*real.shape, vectors.shape[-1]).masked_scatter(real[..., None], vectors)
        read = self.sentences(self.dropout(given), real)
        told = read.keys.new_zeros(*keep.shape, read.keys.shape[-1])
        told = told.masked_scatter(ends[..., None], read.keys[real])
        return Read(told, told, ends, read.hidden, read.cells, looks, tapes)


class Cut(NamedTuple):
    """Where the sentences of some texts are: of each its text, its last word, the places of its words."""

    ends: Bool[Tensor, "batch key"]
    keep: Bool[Tensor, "batch key"]
    text: Int[Tensor, "sentence"]
    last: Int[Tensor, "sentence"]
    place: Int[Tensor, "sentence word"]
    inside: Bool[Tensor, "sentence word"]

    def in_text(self, weights: Float[Tensor, "sentence 1 1 word"]) -> Float[Tensor, "batch key 1 key"]:
        """By positions: the last word of a sentence asks, its words are read."""
        rows = weights.new_zeros(len(weights), self.keep.shape[1])
        rows = rows.scatter_add(1, self.place, weights[:, 0, 0].masked_fill(~self.inside, 0.0))
        told = weights.new_zeros(*self.keep.shape, 1, self.keep.shape[1])
        return told.index_put((self.text, self.last), rows[:, None])

    def edit(self, change: Edit) -> Edit:
        """A change that knows positions, for looks that know words of sentences."""
        count = self.keep.shape[1]
        at = torch.arange(count, device=self.keep.device).expand(self.keep.shape)

        def mine(site: str, look: Look, _: Tensor) -> Override | None:
            assert look.weights is not None
            allow = own_sentence(self.ends, self.keep)[:, :, None]
            changed = change(site, Look(self.in_text(look.weights), extra={OPEN: allow}), at)
            if changed is None:
                return None
            if bool(changed.weights.masked_fill(allow, 0.0).any()):
                raise ShapeError(f"the edit at {site} puts weight on positions that may not be read")
            rows = changed.weights[self.text, self.last, 0].gather(1, self.place)
            return Override(rows.masked_fill(~self.inside, 0.0)[:, None, None])

        return mine


def own_sentence(
    ends: Bool[Tensor, "batch key"], keep: Bool[Tensor, "batch key"]
) -> Bool[Tensor, "batch query key"]:
    """The last word of a sentence may read all of it; nobody else asks.

    >>> ends = torch.tensor([[False, True, True]])
    >>> own_sentence(ends, torch.ones_like(ends)).int().tolist()
    [[[0, 0, 0], [1, 1, 0], [0, 0, 1]]]
    """
    number = ends.cumsum(dim=1) - ends.long()
    same = number[:, :, None] == number[:, None, :]
    return same & ends[:, :, None] & keep[:, None, :]


def sentence_ends(
    marks: Bool[Tensor, "batch key"], keep: Bool[Tensor, "batch key"]
) -> Bool[Tensor, "batch key"]:
    """The last of marks that follow one another, and the last word of every text.

    >>> sentence_ends(torch.tensor([[False, True, True, False, False]]), torch.ones(1, 5, dtype=torch.bool))
    tensor([[False, False,  True, False,  True]])
    """
    none = torch.zeros_like(keep[:, :1])
    marks, later = marks & keep, torch.cat([keep[:, 1:], none], dim=1)
    return (marks & ~torch.cat([marks[:, 1:], none], dim=1)) | (keep & ~later)
