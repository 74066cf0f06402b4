"""The encoder-decoder: any encoder with any decoder that has meaning, behind the `Writer` protocol."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor, nn

from heedful.attention import PLAIN, Look, Watch
from heedful.config import ModelConfig
from heedful.config.model import encoder_width
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.tokenizer import END, START
from heedful.errors import ShapeError
from heedful.layers.abs import AbsDecoder
from heedful.layers.convolution import ConvDecoder
from heedful.layers.copying import Copying
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import word_vectors
from heedful.layers.recurrent_decoder import RecurrentDecoder
from heedful.layers.state import Read, State, Stepped, join_steps
from heedful.layers.transformer import TransformerDecoder
from heedful.models.encoders import build_encoder, dropped, own_sites, read_words, without_end
from heedful.record import Site

Decoder = RecurrentDecoder | ConvDecoder | TransformerDecoder | AbsDecoder


def _decoder(config: ModelConfig, embedding: nn.Embedding) -> Decoder:
    tied = config.tie != "none"
    if config.decoder.kind == "conv":
        return ConvDecoder(config, embedding, tied)
    if config.decoder.kind == "transformer":
        return TransformerDecoder(config, embedding, tied)
    if config.decoder.kind == "abs":
        return AbsDecoder(config, embedding, tied)
    return RecurrentDecoder(config, embedding, tied)


class Seq2Seq(nn.Module):
    """Reads a sentence, then writes one, looking back at what it read."""

    def __init__(self, config: ModelConfig, source_size: int, target_size: int) -> None:
        super().__init__()
        self.config = config
        target = word_vectors(target_size, config.embedding)
        if config.tie == "all" and source_size != target_size:
            raise ShapeError(
                f'tie = "all" needs one vocabulary for both sides, but the source has {source_size} words'
                f" and the target {target_size}"
            )
        pictures = (
            config.encoder.kind == "regions"
        )  # then the source's size is the width of a region's vector
        words = 1 if pictures else source_size
        self.embedding = target if config.tie == "all" else word_vectors(words, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = build_encoder(config, source_size)
        self.drop_read = Dropout(config.encoder.dropout)
        self.decoder = _decoder(config, target)
        if config.copying and source_size != target_size:
            raise ShapeError(
                f"copying needs one vocabulary for both sides, but the source has {source_size} words"
                f" and the target {target_size}"
            )
        self.copying = Copying(self.decoder.output.width, encoder_width(config)) if config.copying else None
        self.baseline: Tensor  # the reward that hard attention's draws are measured against; NaN: none yet
        if config.attention.placement == "hard":
            self.register_buffer("baseline", torch.tensor(float("nan")))
        if config.initialise == "paper":
            initialise_as_printed(self)

    @property
    def sites(self) -> tuple[Site, ...]:
        pointer = () if self.copying is None else (self.copying.attention.site,)
        return (*own_sites(self.encoder), *self.decoder.sites, *pointer)

    @property
    def alignment(self) -> str | None:
        return self.decoder.alignment

    @property
    def shift(self) -> int:
        return self.decoder.shift

    @property
    def first(self) -> int:
        return END if self.config.decoder.first == "</s>" else START

    def readable(self, batch: TextBatch) -> Bool[Tensor, "batch key"]:
        """Which positions of the source the encoder reads."""
        keep = batch.source.keep
        return keep if self.config.encoder.read_end else without_end(keep)

    def read(self, batch: TextBatch, watch: Watch = PLAIN) -> Read:
        """What the encoder makes of the source."""
        keep = self.readable(batch)
        given = batch.source
        words = given.vectors if isinstance(given, Regions) else self.embedding(given.ids)
        return dropped(read_words(self.encoder, self.dropout(words), keep, watch), self.drop_read)

    def encode(self, batch: TextBatch, watch: Watch = PLAIN) -> tuple[State, Mapping[str, Look]]:
        """Read the source; gives the state before the first word, and the encoder's own looks."""
        read = self.read(batch, watch)
        state = self.decoder.begin(read)
        if self.copying is not None and isinstance(batch.source, Padded):
            state = self.copying.begin(state, read, batch.source.ids)
        return state, read.looks

    def step(self, state: State, last: Int[Tensor, "row"], watch: Watch = PLAIN) -> Stepped:
        """One word further."""
        return self._write(state, last[:, None], watch)

    def _write(self, state: State, ids: Int[Tensor, "row query"], watch: Watch) -> Stepped:
        """What the decoder makes of these words, and what a pointer finds."""
        stepped = self.decoder.write(state, ids, watch)
        if self.copying is None:
            return stepped
        copied, looks = self.copying.point(stepped.said, state, watch)
        return stepped._replace(copied=copied, looks={**stepped.looks, **looks})

    def score(
        self, batch: TextBatch, watch: Watch = PLAIN, sampling: float = 0.0, rng: Generator | None = None
    ) -> Stepped:
        """The logits of every step when the words before it are given (teacher forcing).

        With `sampling` each word after the first is, with that probability, the model's own likeliest
        word in place of the given one (scheduled sampling, Bengio 2015).
        """
        if batch.target is None:
            raise ValueError("a batch without targets cannot be scored")
        words = batch.target.ids[:, :-1].clone()
        words[:, 0] = self.first
        state, looks = self.encode(batch, watch)
        if sampling > 0:
            stepped = self._sampled(state, words, watch, sampling, rng)
        else:
            stepped = self._write(state, words, watch)
        return stepped._replace(looks={**looks, **stepped.looks})

    def _sampled(
        self, state: State, words: Tensor, watch: Watch, sampling: float, rng: Generator | None
    ) -> Stepped:
        steps: list[Stepped] = []
        own = words[:, 0]
        for t in range(words.shape[1]):
            coin = torch.rand(len(words), generator=rng).to(words.device) < sampling
            given = torch.where(coin & (t > 0), own, words[:, t])
            steps.append(self._write(state, given[:, None], watch))
            state = steps[-1].state
            own = steps[-1].logits[:, 0].detach().argmax(dim=-1)
        return join_steps(steps)


def initialise_as_printed(model: nn.Module) -> None:
    """Bahdanau 2015, appendix B.1: recurrent matrices orthogonal, attention N(0, 0.001^2), v and biases 0,
    everything else N(0, 0.01^2)."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            part = name.rsplit(".", 1)[-1]
            if "bias" in part or part == "v":
                parameter.zero_()
            elif "weight_hh" in part:
                for gate in parameter.chunk(len(parameter) // parameter.shape[1]):
                    nn.init.orthogonal_(gate)
            else:
                nn.init.normal_(parameter, std=0.001 if "attention.score" in name else 0.01)
