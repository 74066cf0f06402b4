"""An encoder-decoder of transformers in terms of our decoding: `initial_state` encodes, `step` feeds one token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Generator, Tensor, nn
from transformers import PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from heedful.attention import NO_HOOKS, AttentionOutput, Hooks, Memory
from heedful.data.batch import TextBatch
from heedful.data.tokenizer import END, START
from heedful.errors import ModelError
from heedful.integrations.transformers.adapted import AdaptedModel, Outputs
from heedful.integrations.transformers.family import Family
from heedful.integrations.transformers.vocabulary import IdMap
from heedful.layers.state import DecoderOutput, State
from heedful.models.autoregressive import AutoregressiveModel, InitialState

NEW_TOKENS = 20  # that a model without a limit of its own generates, as in transformers
HIDDEN = "encoder output"  # key of `State.per_sentence`


class ModelInputs(NamedTuple):
    """Inputs under the names of the model's own arguments, for what is no text: images and sound."""

    tensors: Mapping[str, Tensor]
    keep: Tensor  # (batch, key), bool: the positions of the encoder's output

    @property
    def lengths(self) -> Tensor:
        return self.keep.sum(dim=1)


class Seq2SeqAdapter(AdaptedModel, AutoregressiveModel):
    """An encoder-decoder; ids are ours (`IdMap`)."""

    alignment_shift = 1

    def __init__(self, inner: PreTrainedModel, family: Family, ids: IdMap, alignment_site: str | None = None) -> None:
        super().__init__(inner, family, alignment_site)
        self.ids = ids
        self.cross_sites = tuple(s.id for s in self.model_sites if s.site.kind == "cross")
        self.self_sites = tuple(s.id for s in self.model_sites if s.stack == "dec" and s.site.kind == "self")
        if len(self.cross_sites) != len(self.self_sites):
            raise ModelError(
                f"{type(inner).__name__}: {len(self.self_sites)} layers of the decoder, but"
                f" {len(self.cross_sites)} cross-attentions; such models cannot be traced"
            )

    @property
    def default_site(self) -> str:
        """The penultimate layer's cross-attention, which aligns best (Garg 2019); of one or two layers, the last."""
        depth = len(self.cross_sites)
        return self.cross_sites[depth - 1 if depth <= 2 else depth - 2]

    @property
    def without_cache(self) -> bool:
        """Whether the decoder is called by itself and without a cache, as that of BLIP, whose attention has no seam."""
        return type(self.inner).__name__ == "BlipForConditionalGeneration"

    def generation_inputs(self, tensors: Mapping[str, Tensor], start: Tensor) -> tuple[Any, dict[str, Any]]:
        """Return the model whose `generate` is called for some inputs, and the arguments; `start` are the first ids."""
        if not self.without_cache:
            return self.inner, {**tensors, "decoder_input_ids": start}
        hidden = self.encode(TextBatch(ModelInputs(tensors, torch.ones(1, 1))))[0]  # type: ignore[arg-type]
        mask = torch.ones(hidden.shape[:2], dtype=torch.long)
        arguments: dict[str, Any] = {
            "input_ids": start,
            "encoder_hidden_states": hidden,
            "encoder_attention_mask": mask,
        }
        return self.family.stacks.decoder, {
            **arguments,
            "eos_token_id": int(self.ids.table[END]),
            "use_cache": False,
            "max_new_tokens": NEW_TOKENS,
        }

    @property
    def start_token(self) -> int:
        return START

    @property
    def embedding(self) -> nn.Module:
        """The embedding of the source, which saliency differentiates."""
        assert self.family.stacks.encoder is not None
        encoder: Any = self.family.stacks.encoder
        module: nn.Module = encoder.get_input_embeddings()
        return module

    def source_tensors(self, batch: TextBatch) -> tuple[dict[str, Tensor], Tensor | None]:
        """Return the arguments of the encoder, and the mask that cross-attention needs."""
        source: Any = batch.source
        if isinstance(source, ModelInputs):
            return dict(source.tensors), None
        ids = self.ids.tensor_to_model(source.ids)
        mask = source.keep.long()
        return {"input_ids": ids.masked_fill(~source.keep, self.ids.pad), "attention_mask": mask}, mask

    def encode(self, batch: TextBatch) -> tuple[Tensor, Tensor | None]:
        """Return the encoder's output (batch, key, width) and the mask of cross-attention."""
        tensors, mask = self.source_tensors(batch)
        encoder = self.family.stacks.encoder
        assert encoder is not None
        return encoder(**tensors).last_hidden_state, mask

    def decode(
        self,
        hidden: Tensor,
        mask: Tensor | None,
        ids: Int[Tensor, "row query"],
        cache: EncoderDecoderCache | None = None,
    ) -> Any:
        """Run the decoder on a model's own ids."""
        if self.without_cache:
            decoder: Any = self.family.stacks.decoder
            return decoder(input_ids=ids, encoder_hidden_states=hidden, use_cache=False)
        arguments: dict[str, Any] = {} if mask is None else {"attention_mask": mask}
        return self.inner(
            encoder_outputs=BaseModelOutput(last_hidden_state=hidden),
            decoder_input_ids=ids,
            past_key_values=cache,
            use_cache=cache is not None,
            **arguments,
        )

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> InitialState:
        with self.record(hooks) as outputs:
            hidden, mask = self.encode(batch)
        start = self.ids.tensor_to_model(torch.full((len(hidden), 1), self.start_token))
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        self.decode(hidden, mask, start, cache)  # projects the keys and values of cross-attention
        keep = batch.source.keep
        memory = {
            site: _memory(layer, keep)
            for site, layer in zip(self.cross_sites, cache.cross_attention_cache.layers, strict=True)
        }
        state = State(memory, hidden=(hidden.new_zeros(len(hidden), 0),), per_sentence={HIDDEN: hidden})
        return state, first_outputs(outputs)

    def step(self, state: State, last: Int[Tensor, "row"], hooks: Hooks = NO_HOOKS) -> DecoderOutput:
        hidden = state.per_sentence[HIDDEN]
        beam = len(last) // len(hidden)
        memories = [state.memory[site] for site in self.cross_sites]
        cache = self._cache(state, memories, beam)
        mask = None if memories[0].keep.all() else memories[0].keep.repeat_interleave(beam, dim=0).long()
        with self.record(hooks, rows=beam) as outputs:
            result = self.decode(
                hidden.repeat_interleave(beam, dim=0), mask, self.ids.tensor_to_model(last[:, None]), cache
            )
        layers = cache.self_attention_cache.layers
        ones = torch.ones(len(last), state.position + 1, dtype=torch.bool)
        cached = {site: _memory(layer, ones) for site, layer in zip(self.self_sites, layers, strict=True)}
        state = replace(state, cache=cached).advance(1)
        return DecoderOutput(self.ids.arrange_logits(result.logits), state, first_outputs(outputs))

    def _cache(self, state: State, memories: list[Memory], beam: int) -> EncoderDecoderCache:
        """Return what the model takes: keys and values of earlier tokens, and those of the source, once per row."""
        own, cross = DynamicCache(), DynamicCache()
        for number, site in enumerate(self.self_sites):
            if site in state.cache:
                memory = state.cache[site]
                own.update(memory.keys.transpose(1, 2), memory.values.transpose(1, 2), number)
        for number, memory in enumerate(memories):
            keys, values = (t.transpose(1, 2).repeat_interleave(beam, dim=0) for t in (memory.keys, memory.values))
            cross.update(keys, values, number)
        return EncoderDecoderCache(own, cross)

    def __call__(
        self, batch: TextBatch, hooks: Hooks = NO_HOOKS, scheduled_sampling: float = 0.0, rng: Generator | None = None
    ) -> DecoderOutput:
        assert batch.target is not None
        inputs = batch.target.ids[:, :-1].clone()
        inputs[:, 0] = self.start_token
        with self.record(hooks) as outputs:
            hidden, mask = self.encode(batch)
            logits = self.decode(hidden, mask, self.ids.tensor_to_model(inputs)).logits
        return DecoderOutput(self.ids.arrange_logits(logits), State(), first_outputs(outputs))


def _memory(layer: Any, keep: Tensor) -> Memory:
    """Return a layer of a cache as a memory."""
    return Memory(layer.keys.transpose(1, 2), layer.values.transpose(1, 2), keep)


def first_outputs(outputs: Outputs) -> dict[str, AttentionOutput]:
    """Return the output of each site from a recording in which each was called once."""
    return {site: calls[0] for site, calls in outputs.items()}
