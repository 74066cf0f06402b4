"""The encoder-decoder: any encoder with any decoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor, nn

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks
from heedful.config import ModelConfig
from heedful.data.batch import Padded, Regions, TextBatch
from heedful.data.tokenizer import END, START
from heedful.errors import ShapeError
from heedful.layers.abs import AbsDecoder
from heedful.layers.convolution import ConvDecoder
from heedful.layers.copying import CopyMechanism
from heedful.layers.decoder import Decoder
from heedful.layers.dropout import Dropout
from heedful.layers.embedding import token_embedding
from heedful.layers.recurrent_decoder import RecurrentDecoder
from heedful.layers.state import DecoderOutput, EncoderOutput, State, concat_decoder_outputs
from heedful.layers.transformer import TransformerDecoder
from heedful.models.autoregressive import AutoregressiveModel, InitialState
from heedful.models.encoders import apply_dropout, build_encoder, drop_end_token, encoder_sites, run_encoder
from heedful.trace.schema import Site


def build_decoder(config: ModelConfig, embedding: nn.Embedding) -> Decoder:
    """Build the decoder that [model.decoder] names; `embedding` is that of the target."""
    tied = config.tie_embeddings != "none"
    if config.decoder.kind == "conv":
        return ConvDecoder(config, embedding, tied)
    if config.decoder.kind == "transformer":
        return TransformerDecoder(config, embedding, tied)
    if config.decoder.kind == "abs":
        return AbsDecoder(config, embedding, tied)
    return RecurrentDecoder(config, embedding, tied)


class Seq2Seq(nn.Module, AutoregressiveModel):
    """An encoder-decoder for text, or for images whose regions are the source."""

    __call__: Callable[..., DecoderOutput]

    def __init__(self, config: ModelConfig, source_size: int, target_size: int) -> None:
        super().__init__()
        self.config = config
        tied = config.tie_embeddings == "all"
        for setting, needs_shared_vocabulary in (('tie_embeddings = "all"', tied), ("copying", config.copying)):
            if needs_shared_vocabulary and source_size != target_size:
                raise ShapeError(
                    f"{setting} needs one vocabulary for both sides, but the source has {source_size} words and"
                    f" the target {target_size}"
                )
        target = token_embedding(target_size, config.embedding)
        vocabulary = 1 if config.encoder.kind == "regions" else source_size  # regions are vectors, not tokens
        self.embedding = target if tied else token_embedding(vocabulary, config.embedding)
        self.dropout = Dropout(config.dropout)
        self.encoder = build_encoder(config, source_size)
        self.encoder_dropout = Dropout(config.encoder.dropout)
        self.decoder: Decoder = build_decoder(config, target)
        self.copying = CopyMechanism(self.decoder.feature_width, config.encoder_width) if config.copying else None
        self.baseline: Tensor  # moving average of the reward of hard attention (Xu 2015, eq. 12); NaN before training
        if config.attention.placement == "hard":
            self.register_buffer("baseline", torch.tensor(float("nan")))
        if config.initialization == "paper":
            initialize_as_published(self)

    @property
    def sites(self) -> tuple[Site, ...]:
        pointer = () if self.copying is None else (self.copying.attention.site,)
        return (*encoder_sites(self.encoder), *self.decoder.sites, *pointer)

    @property
    def alignment_site(self) -> str | None:
        return self.decoder.alignment_site

    @property
    def alignment_shift(self) -> int:
        return self.decoder.alignment_shift

    @property
    def start_token(self) -> int:
        return END if self.config.decoder.start_token == "</s>" else START

    def source_keep(self, batch: TextBatch) -> Bool[Tensor, "batch key"]:
        """Return the mask of the positions that the encoder reads: all, or all but the end token."""
        keep = batch.source.keep
        return keep if self.config.encoder.read_end else drop_end_token(keep)

    def encode(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> EncoderOutput:
        """Encode the source."""
        source = batch.source
        vectors = source.vectors if isinstance(source, Regions) else self.embedding(source.ids)
        output = run_encoder(self.encoder, self.dropout(vectors), self.source_keep(batch), hooks)
        return apply_dropout(output, self.encoder_dropout)

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> InitialState:
        encoder_output = self.encode(batch, hooks)
        state = self.decoder.initial_state(encoder_output)
        if self.copying is not None and isinstance(batch.source, Padded):
            state = self.copying.extend_state(state, encoder_output, batch.source.ids)
        return state, encoder_output.attentions

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        return self._decode(state, last[:, None], hooks)

    def _decode(self, state: State, ids: Int[Tensor, "row query"], hooks: Hooks) -> DecoderOutput:
        """Feed tokens to the decoder and its features to the copy mechanism, if there is one."""
        output = self.decoder(state, ids, hooks)
        if self.copying is None:
            return output
        pointer, attentions = self.copying(output.features, state, hooks)
        return output._replace(pointer=pointer, attentions={**output.attentions, **attentions})

    def forward(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        """Run all steps of the targets (teacher forcing).

        `scheduled_sampling` is the probability with which each input token but the first is replaced by the model's
        own most likely token (Bengio 2015).
        """
        if batch.target is None:
            raise ValueError("teacher forcing needs a batch with targets")
        inputs = batch.target.ids[:, :-1].clone()
        inputs[:, 0] = self.start_token
        state, attentions = self.initial_state(batch, hooks)
        if scheduled_sampling > 0:
            output = self._scheduled_sampling(state, inputs, hooks, scheduled_sampling, rng)
        else:
            output = self._decode(state, inputs, hooks)
        return output._replace(attentions={**attentions, **output.attentions})

    def full_context_attentions(self, batch: TextBatch, hooks: Hooks) -> Mapping[str, AttentionOutput]:
        """Return the attentions of a decoder in which every step sees all target tokens (Garg 2019, §4.3).

        Of use for alignments only: such a decoder sees the tokens that it would have to predict.
        """
        if batch.target is None or not isinstance(self.decoder, TransformerDecoder):
            raise ValueError("full target context needs a Transformer decoder and a batch with targets")
        inputs, keep = batch.target.ids[:, :-1].clone(), batch.target.keep[:, :-1]
        inputs[:, 0] = self.start_token
        state, attentions = self.initial_state(batch, hooks)
        return {**attentions, **self.decoder.decode_full_context(state, inputs, keep, hooks).attentions}

    def _scheduled_sampling(
        self, state: State, inputs: Int[Tensor, "row query"], hooks: Hooks, probability: float, rng: Generator | None
    ) -> DecoderOutput:
        """Run step by step, with each input token but the first replaced by the model's own with this probability."""
        steps: list[DecoderOutput] = []
        predicted = inputs[:, 0]
        for t in range(inputs.shape[1]):
            replace = torch.rand(len(inputs), generator=rng).to(inputs.device) < probability
            tokens = torch.where(replace & (t > 0), predicted, inputs[:, t])
            steps.append(self._decode(state, tokens[:, None], hooks))
            state = steps[-1].state
            predicted = steps[-1].logits[:, 0].detach().argmax(dim=-1)
        return concat_decoder_outputs(steps)


def initialize_as_published(model: nn.Module) -> None:
    """Initialize the weights as in Bahdanau 2015, appendix B.1.

    Recurrent matrices are orthogonal, attention is N(0, 0.001^2), `v` and biases are 0, everything else N(0, 0.01^2).
    """
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
