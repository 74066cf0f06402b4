"""The hierarchical encoder (Yang 2016): attention pools the words of each sentence; an RNN encodes the sentences."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import (
    NO_HOOKS,
    AttentionOutput,
    Detail,
    Edit,
    Hooks,
    Memory,
    Override,
    build_attention,
)
from heedful.attention.hooks import ALLOWED
from heedful.config import ModelConfig
from heedful.errors import ShapeError
from heedful.layers.dropout import Dropout
from heedful.layers.recurrent import RecurrentEncoder
from heedful.layers.state import EncoderOutput
from heedful.optional import not_none
from heedful.trace.schema import Site

WORDS = "enc.words"  # site of the attention within sentences

PooledSentences = tuple[Float[Tensor, "sentence width"], dict[str, AttentionOutput], dict[str, Memory]]
"""One vector per sentence, and by site the attention outputs and memories to record."""


class SentenceEncoder(nn.Module):
    """Encode the words of each sentence, pool them by attention, and encode the sentences (Yang 2016, eq. 1-10).

    The state of a sentence is at the position of its last word, and only there is `keep` of the output True. Attention
    over sentences is thus attention over positions of the text.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.encoder_width
        self.word_encoder = RecurrentEncoder(config.encoder, config.embedding, config.dropout)
        self.word_attention = build_attention(
            config.attention, query_size=width, key_size=width, site=WORDS, kind="pool"
        )
        self.query = nn.Parameter(torch.randn(width) * width**-0.5)
        self.dropout = Dropout(config.dropout)
        self.sentence_encoder = RecurrentEncoder(config.encoder, width, config.dropout)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (self.word_attention.site,)

    def forward(
        self,
        words: Float[Tensor, "batch key input"],
        keep: Bool[Tensor, "batch key"],
        ends: Bool[Tensor, "batch key"],
        hooks: Hooks = NO_HOOKS,
    ) -> EncoderOutput:
        """Encode texts; `ends` marks the last word of each sentence, and so the last word of each text."""
        split = SentenceSplit.from_ends(ends, keep)
        states = self.word_encoder(words[split.text[:, None], split.positions], split.inside).keys
        if hooks.detail_at(WORDS) is Detail.FULL:
            vectors, attentions, tapes = self._pool_in_text(states, split, hooks)
        else:
            vectors, attentions, tapes = self._pool_sentences(states, split, hooks)
        counts = ends.sum(dim=1)
        sentence_keep = torch.arange(int(counts.max()), device=counts.device) < counts[:, None]
        inputs = vectors.new_zeros(*sentence_keep.shape, vectors.shape[-1])
        inputs = inputs.masked_scatter(sentence_keep[..., None], vectors)
        output = self.sentence_encoder(self.dropout(inputs), sentence_keep)
        in_text = output.keys.new_zeros(*keep.shape, output.keys.shape[-1])
        in_text = in_text.masked_scatter(ends[..., None], output.keys[sentence_keep])
        return EncoderOutput(in_text, in_text, ends, output.hidden, output.cells, attentions, tapes)

    def _pool_sentences(self, states: Tensor, split: SentenceSplit, hooks: Hooks) -> PooledSentences:
        """Pool each sentence separately."""
        query = self.query.expand(len(states), 1, -1)
        edit = None if hooks.edit is None else split.edit_sentences(hooks.edit)
        memory = self.word_attention.prepare(states, split.inside)
        output, _ = self.word_attention(query, memory, hooks=Hooks(hooks.detail_at(WORDS), edit=edit))
        attentions = {}
        if output.weights is not None:
            attentions[WORDS] = AttentionOutput(weights=split.weights_in_text(output.weights))
        return not_none(output.context)[:, 0], attentions, {}

    def _pool_in_text(self, states: Tensor, split: SentenceSplit, hooks: Hooks) -> PooledSentences:
        """Pool with queries and keys at the positions of the text, so that hooks record everything by position."""
        keys = states.new_zeros(*split.keep.shape, states.shape[-1])
        rows = split.text[:, None].expand_as(split.positions)[split.inside]
        keys = keys.index_put((rows, split.positions[split.inside]), states[split.inside])
        memory = self.word_attention.prepare(keys, split.keep)
        query = self.query.expand(*split.keep.shape, -1)
        allowed = sentence_mask(split.ends, split.keep)
        output, _ = self.word_attention(query, memory, allowed=allowed, hooks=hooks)
        return not_none(output.context)[split.text, split.last], {WORDS: output}, {WORDS: memory}


class SentenceSplit(NamedTuple):
    """The sentences of a batch of texts: the text of each, its last position, and the positions of its words."""

    ends: Bool[Tensor, "batch key"]
    keep: Bool[Tensor, "batch key"]
    text: Int[Tensor, "sentence"]
    last: Int[Tensor, "sentence"]
    positions: Int[Tensor, "sentence word"]  # padded with the last position
    inside: Bool[Tensor, "sentence word"]

    @classmethod
    def from_ends(cls, ends: Bool[Tensor, "batch key"], keep: Bool[Tensor, "batch key"]) -> SentenceSplit:
        text, last = ends.nonzero(as_tuple=True)
        first = torch.where(text == text.roll(1), last.roll(1) + 1, 0)
        first[:1] = 0
        positions = first[:, None] + torch.arange(int((last - first).max()) + 1, device=first.device)
        inside = positions <= last[:, None]
        return cls(ends, keep, text, last, torch.minimum(positions, last[:, None]), inside)

    def weights_in_text(self, weights: Float[Tensor, "sentence 1 1 word"]) -> Float[Tensor, "batch key 1 key"]:
        """Return weights by positions of the text: the query of a sentence is at its last word."""
        rows = weights.new_zeros(len(weights), self.keep.shape[1])
        rows = rows.scatter_add(1, self.positions, weights[:, 0, 0].masked_fill(~self.inside, 0.0))
        in_text = weights.new_zeros(*self.keep.shape, 1, self.keep.shape[1])
        return in_text.index_put((self.text, self.last), rows[:, None])

    def edit_sentences(self, edit: Edit) -> Edit:
        """Turn an edit by positions of the text into one by words of sentences."""
        text_positions = torch.arange(self.keep.shape[1], device=self.keep.device).expand(self.keep.shape)

        def edit_sentence(site: str, output: AttentionOutput, _: Tensor) -> Override | None:
            allowed = sentence_mask(self.ends, self.keep)[:, :, None]
            weights = self.weights_in_text(not_none(output.weights))
            override = edit(site, AttentionOutput(weights=weights, extras={ALLOWED: allowed}), text_positions)
            if override is None:
                return None
            if bool(override.weights.masked_fill(allowed, 0.0).any()):
                raise ShapeError(f"the edit at {site} puts weight on positions that may not be attended to")
            rows = override.weights[self.text, self.last, 0].gather(1, self.positions)
            return Override(rows.masked_fill(~self.inside, 0.0)[:, None, None])

        return edit_sentence


def sentence_mask(ends: Bool[Tensor, "batch key"], keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch query key"]:
    """Return the mask that lets the last word of a sentence attend to its sentence, and other words to nothing.

    >>> ends = torch.tensor([[False, True, True]])
    >>> sentence_mask(ends, torch.ones_like(ends)).int().tolist()
    [[[0, 0, 0], [1, 1, 0], [0, 0, 1]]]
    """
    sentence = ends.cumsum(dim=1) - ends.long()
    same = sentence[:, :, None] == sentence[:, None, :]
    return same & ends[:, :, None] & keep[:, None, :]


def sentence_ends(marks: Bool[Tensor, "batch key"], keep: Bool[Tensor, "batch key"]) -> Bool[Tensor, "batch key"]:
    """Return the last of each run of end marks, and the last word of every text.

    >>> sentence_ends(torch.tensor([[False, True, True, False, False]]), torch.ones(1, 5, dtype=torch.bool))
    tensor([[False, False,  True, False,  True]])
    """
    none = torch.zeros_like(keep[:, :1])
    marks, next_keep = marks & keep, torch.cat([keep[:, 1:], none], dim=1)
    return (marks & ~torch.cat([marks[:, 1:], none], dim=1)) | (keep & ~next_keep)
