"""The classifier: any encoder, one look at all of its states (or none), and a linear layer to the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Look, Watch
from heedful.config import ModelConfig
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import UNK
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import word_vectors
from heedful.layers.modules import must
from heedful.layers.neighbours import Neighbours
from heedful.layers.pooling import POOL, Asked, Pooling
from heedful.layers.state import Read
from heedful.models.encoders import build_encoder, dropped, own_sites, read_words, without_end
from heedful.native import dropout
from heedful.record import Site


class Judged(NamedTuple):
    """What a text is held to be, and what was in between: what was read, how, and the one vector."""

    logits: Float[Tensor, "batch label"]
    said: Float[Tensor, "batch width"]
    looks: Mapping[str, Look]
    read: Read
    asked: Asked | None


class Classifier(nn.Module):
    """Reads a text, makes one vector of it, and says which label it has."""

    def __init__(self, config: ModelConfig, words: int, labels: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = word_vectors(words, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = build_encoder(config, words)
        self.drop_read = Dropout(config.encoder.dropout)
        self.pooling = Pooling(config)
        self.drop_said = Dropout(must(config.classifier).dropout)
        self.output = nn.Linear(self.pooling.width, labels)
        if must(config.classifier).neighbours:
            self.neighbours = Neighbours(config.encoder.hidden, self.embedding)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (*own_sites(self.encoder), *self.pooling.sites)

    @property
    def alignment(self) -> str | None:
        """The site of the usual picture; None for those that weigh nothing."""
        return POOL if self.pooling.sites else None

    def readable(self, batch: LabelBatch) -> Bool[Tensor, "batch key"]:
        """Which positions are read; a text without words is its end token."""
        keep = batch.source.keep
        return keep if self.config.encoder.read_end else without_end(keep)

    def read(self, batch: LabelBatch, watch: Watch = PLAIN) -> Read:
        """What the encoder makes of the texts."""
        words = self.embedding(self._some_unknown(batch.source.ids))
        read = read_words(self.encoder, self.dropout(words), self.readable(batch), watch)
        return dropped(read, self.drop_read)

    def _some_unknown(self, ids: Int[Tensor, "batch key"]) -> Int[Tensor, "batch key"]:
        """In training, some words as if they had never been seen: those to come will not all have been."""
        share = must(self.config.classifier).word_dropout
        if not self.training or not share:
            return ids
        kept = dropout(torch.ones(ids.shape, device=ids.device), share, training=True)
        return ids.masked_fill((kept == 0) & (ids > UNK), UNK)

    def judge(self, batch: LabelBatch, watch: Watch = PLAIN) -> Judged:
        """The scores of all labels for each text."""
        read = self.read(batch, watch)
        pooled = self.pooling(read, watch)
        logits = self.output(self.drop_said(pooled.vector))
        return Judged(logits, pooled.vector, {**read.looks, **pooled.looks}, read, pooled.asked)

    def again(self, asked: Asked, watch: Watch) -> Float[Tensor, "batch query label"]:
        """The scores when what was read is looked at once more, perhaps with other weights."""
        vectors, _ = self.pooling.look(asked, watch)
        scores: Tensor = self.output(vectors)
        return scores
