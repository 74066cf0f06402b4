"""The classifier: any encoder, one look at all of its states (or none), and a linear layer to the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import PLAIN, Look, Watch
from heedful.config import ModelConfig
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END, UNK
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import word_vectors
from heedful.layers.hierarchy import WORDS, SentenceEncoder, sentence_ends
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

    @property
    def weights(self) -> Float[Tensor, "batch key"] | None:
        """What each word weighed, the mean over heads; with sentences, its share of what its own did."""
        look = self.looks.get(POOL)
        if look is None or look.weights is None:
            return None
        pooled = look.weights[:, 0].mean(dim=1)
        inside = self.looks[WORDS].weights if WORDS in self.looks else None
        return pooled if inside is None else (pooled[:, None] @ inside.mean(dim=2))[:, 0]


class Classifier(nn.Module):
    """Reads a text, makes one vector of it, and says which label it has."""

    def __init__(self, config: ModelConfig, words: int, labels: int, marks: Sequence[int] = ()) -> None:
        """`marks`: words that end a sentence."""
        super().__init__()
        self.config = config
        self.register_buffer("marks", torch.zeros(words, dtype=torch.bool), persistent=False)
        self.get_buffer("marks")[[END, *marks]] = True
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
    def sentences(self) -> bool:
        """Are words read within sentences?"""
        return isinstance(self.encoder, SentenceEncoder)

    @property
    def weighing(self) -> frozenset[str]:
        """The sites that say how much each word weighed."""
        return frozenset(site.id for site in self.sites if site.kind == "pool")

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
        words = self.dropout(self.embedding(self._some_unknown(batch.source.ids)))
        keep = self.readable(batch)
        if isinstance(self.encoder, SentenceEncoder):
            ends = sentence_ends(self.get_buffer("marks")[batch.source.ids], keep)
            read = self.encoder(words, keep, ends, watch)
        else:
            read = read_words(self.encoder, words, keep, watch)
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
