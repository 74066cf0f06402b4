"""The classifier: any encoder, pooling to one vector, and a linear layer to the labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.config import ModelConfig
from heedful.data.labels import LabelBatch
from heedful.data.tokenizer import END, UNK
from heedful.kernels import dropout
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import token_embedding
from heedful.layers.hierarchical import WORDS, SentenceEncoder, sentence_ends
from heedful.layers.lm_auxiliary import LMAuxiliary
from heedful.layers.pooling import POOL, Pooling, PoolingQuery
from heedful.layers.state import EncoderOutput
from heedful.models.encoders import apply_dropout, build_encoder, drop_end_token, encoder_sites, run_encoder
from heedful.optional import not_none
from heedful.trace.schema import Site


class ClassifierOutput(NamedTuple):
    """Logits, the pooled vector (`features`), attentions by site, and the inputs of pooling."""

    logits: Float[Tensor, "batch label"]
    features: Float[Tensor, "batch width"]
    attentions: Mapping[str, AttentionOutput]
    encoder_output: EncoderOutput
    pooling_query: PoolingQuery | None

    @property
    def weights(self) -> Float[Tensor, "batch key"] | None:
        """The weight of each word, averaged over heads; if hierarchical, its sentence's weight times its own."""
        attention = self.attentions.get(POOL)
        if attention is None or attention.weights is None:
            return None
        pooled = attention.weights[:, 0].mean(dim=1)
        words = self.attentions[WORDS].weights if WORDS in self.attentions else None
        return pooled if words is None else (pooled[:, None] @ words.mean(dim=2))[:, 0]


class Classifier(nn.Module):
    """A classifier of texts."""

    __call__: Callable[..., ClassifierOutput]

    def __init__(self, config: ModelConfig, vocabulary: int, labels: int, sentence_ends: Sequence[int] = ()) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("ends_sentence", torch.zeros(vocabulary, dtype=torch.bool), persistent=False)
        self.get_buffer("ends_sentence")[[END, *sentence_ends]] = True
        self.embedding = token_embedding(vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = build_encoder(config, vocabulary)
        self.encoder_dropout = Dropout(config.encoder.dropout)
        self.pooling = Pooling(config)
        self.output_dropout = Dropout(not_none(config.classifier).dropout)
        self.output = nn.Linear(self.pooling.width, labels)
        if not_none(config.classifier).lm_auxiliary:
            self.lm_auxiliary = LMAuxiliary(config.encoder.hidden, self.embedding)

    @property
    def sites(self) -> tuple[Site, ...]:
        return (*encoder_sites(self.encoder), *self.pooling.sites)

    @property
    def hierarchical(self) -> bool:
        """Whether words are pooled within sentences first (Yang 2016)."""
        return isinstance(self.encoder, SentenceEncoder)

    @property
    def pooling_sites(self) -> frozenset[str]:
        """The sites that pool: over the text and, if hierarchical, within sentences."""
        return frozenset(site.id for site in self.sites if site.kind == "pool")

    @property
    def alignment_site(self) -> str | None:
        """The site of pooling; None without attention."""
        return POOL if self.pooling.sites else None

    def source_keep(self, batch: LabelBatch) -> Bool[Tensor, "batch key"]:
        """Return the positions that the encoder gets: all, or all but the end token."""
        keep = batch.source.keep
        return keep if self.config.encoder.read_end else drop_end_token(keep)

    def encode(self, batch: LabelBatch, hooks: Hooks = NO_HOOKS) -> EncoderOutput:
        """Encode texts."""
        words = self.dropout(self.embedding(self._apply_word_dropout(batch.source.ids)))
        keep = self.source_keep(batch)
        if isinstance(self.encoder, SentenceEncoder):
            ends = sentence_ends(self.get_buffer("ends_sentence")[batch.source.ids], keep)
            output = self.encoder(words, keep, ends, hooks)
        else:
            output = run_encoder(self.encoder, words, keep, hooks)
        return apply_dropout(output, self.encoder_dropout)

    def _apply_word_dropout(self, ids: Int[Tensor, "batch key"]) -> Int[Tensor, "batch key"]:
        """Replace some words by <unk> in training, so that the model learns to handle unknown words."""
        fraction = not_none(self.config.classifier).word_dropout
        if not self.training or not fraction:
            return ids
        mask = dropout(torch.ones(ids.shape, device=ids.device), fraction, training=True)
        return ids.masked_fill((mask == 0) & (ids > UNK), UNK)

    def forward(self, batch: LabelBatch, hooks: Hooks = NO_HOOKS) -> ClassifierOutput:
        """Return the logits of all labels for each text."""
        encoder_output = self.encode(batch, hooks)
        pooled = self.pooling(encoder_output, hooks)
        logits = self.output(self.output_dropout(pooled.vector))
        attentions = {**encoder_output.attentions, **pooled.attentions}
        return ClassifierOutput(logits, pooled.vector, attentions, encoder_output, pooled.query)

    def reattend(self, query: PoolingQuery, hooks: Hooks) -> Float[Tensor, "batch query label"]:
        """Return the logits when pooling is repeated on the same encoder output, with weights that hooks may edit."""
        vectors, _ = self.pooling.attend(query, hooks)
        logits: Tensor = self.output(vectors)
        return logits
