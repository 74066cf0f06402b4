"""The inference engine for pre-norm Transformers: a decoder step is one call into C, with int8 matrices.

The keys and values of all generated tokens are in one cache that is never reordered: when beams are reordered, only the
indices change that say in which row of the cache the past tokens of each row are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful import kernels
from heedful.attention import NO_HOOKS, AttentionOutput, Detail, Hooks
from heedful.data.batch import Regions, TextBatch
from heedful.data.tokenizer import END, PAD, START
from heedful.errors import ShapeError
from heedful.inference.engine import STEPS_PER_CALL, Engine, records_weights_only, sentence_of_rows
from heedful.inference.transformer_structs import CDecoder, CEncoder, decoder_supported, encoder_supported
from heedful.layers.state import State
from heedful.layers.transformer import TransformerDecoder
from heedful.models.autoregressive import GreedyOutput, InitialState, NextTokens, ShouldStop, never_stop
from heedful.models.seq2seq import Seq2Seq
from heedful.optional import not_none

MAX_POSITIONS = 4_096  # maximum tokens per output
MAX_GREEDY = 1_000  # maximum tokens of `generate_greedy`, whose cache is allocated beforehand
INITIAL_STEPS = 32  # initial size of the cache, which doubles when full


class _SourcePointers(NamedTuple):
    """The source's keys and values per layer as C arrays of pointers, and the tensors they point to."""

    keys: ctypes.Array[ctypes.c_void_p]
    values: ctypes.Array[ctypes.c_void_p]
    keep: Tensor
    tensors: list[Tensor]


@dataclass(frozen=True, slots=True)
class CachedState(State):
    """The decoder state; all states of one generation share a cache, so only the newest may be continued.

    The engine makes it in the first step, when it has checked the memory; later rows are selected from checked ones.
    """

    cached: Tensor = field(default_factory=lambda: torch.empty(0))  # (layer, step, cache row, key and value)
    origin: Tensor = field(default_factory=lambda: torch.empty(0))  # (row, step): the cache row of each past token
    sentence: Tensor = field(default_factory=lambda: torch.empty(0))  # (row,): the source it attends to
    source: _SourcePointers | None = None

    def select(self, rows: Tensor, sentences: Tensor | None = None, beam: int = 1) -> CachedState:
        del sentences, beam
        return replace(self, origin=self.origin[rows], sentence=self.sentence[rows])


def supports(model: Seq2Seq) -> bool:
    """Return whether the engine can run a model: a pre-norm Transformer decoder without copying."""
    return model.copying is None and decoder_supported(model.decoder) and kernels.accepts(*model.parameters())


class TransformerEngine(Engine):
    """Runs the models that `supports` accepts; a pre-norm Transformer encoder also runs in C."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        decoder, encoder = model.decoder, model.encoder
        assert isinstance(decoder, TransformerDecoder), "the engine does not support this decoder"
        self.encoder = CEncoder(encoder) if encoder_supported(encoder) else None
        self.positions = decoder.positions.first(MAX_POSITIONS)
        self.decoder = CDecoder(decoder, self.positions)
        self.cross_sites = [layer.cross_site for layer in decoder.layers]
        self.self_sites = [layer.self_site for layer in decoder.layers]
        self.layers, self.heads = len(decoder.layers), decoder.layers[0].cross_attention.site.heads

    def initial_state(self, batch: TextBatch, hooks: Hooks = NO_HOOKS) -> InitialState:
        encoder, library = self.encoder, kernels.library()
        unsupported = encoder is None or library is None or not records_weights_only(hooks)
        if unsupported or isinstance(batch.source, Regions):
            return super().initial_state(batch, hooks)
        assert encoder is not None
        with torch.no_grad():
            output = encoder(self.model.embedding(batch.source.ids), self.model.source_keep(batch), hooks)
            return self.model.decoder.initial_state(output), output.attentions

    def top_next_tokens(
        self, state: State, last: Int[Tensor, "row"], count: int, hooks: Hooks = NO_HOOKS
    ) -> NextTokens:
        library = kernels.library()
        if library is None or not records_weights_only(hooks):
            return super().top_next_tokens(state, last, count, hooks)
        rows, k = len(last), min(count, self.decoder.struct.vocabulary)
        state = self._ensure_capacity(state if isinstance(state, CachedState) else self._start_cache(state, rows))
        t, cached, origin = state.position, state.cached, state.origin
        source, sentence, last = not_none(state.source), state.sentence, last.contiguous()
        n_keys = source.keep.shape[1]
        if not len(sentence) == len(origin) == rows <= cached.shape[2]:
            raise ShapeError(f"{rows} tokens were given for {len(origin)} rows in a cache of {cached.shape[2]}")
        kernels.check_indices(last, (rows,), self.decoder.struct.vocabulary, "token")
        cross_weights = cached.new_empty(self.layers, rows, self.heads, n_keys)
        self_weights = self._self_weights(hooks, self.layers * rows * self.heads * (t + 1))
        tokens, logp = last.new_empty(rows, k), cached.new_empty(rows, k)
        workspace = self.decoder.workspace(rows, t + 1, n_keys)
        library.heed_transformer_decoder_step(
            self.decoder.address, t, last.data_ptr(), cached.data_ptr(), cached.shape[2],
            cached.shape[1], origin.data_ptr(), source.keys, source.values, source.keep.data_ptr(), n_keys,
            sentence.data_ptr(), cross_weights.data_ptr(),
            None if self_weights is None else self_weights.data_ptr(), rows, k, tokens.data_ptr(), logp.data_ptr(),
            workspace.data_ptr(), PAD, START,
        )  # fmt: skip
        origin[:, t] = torch.arange(rows)
        weights = dict(zip(self.cross_sites, cross_weights, strict=True))
        if self_weights is not None:
            weights |= zip(self.self_sites, self_weights.view(self.layers, rows, self.heads, t + 1), strict=True)
        attentions = {site: AttentionOutput(weights=w[:, None]) for site, w in _recorded(weights, hooks).items()}
        return NextTokens(tokens, logp, replace(state, position=t + 1), attentions)

    def generate_greedy(
        self, state: State, max_length: int, hooks: Hooks = NO_HOOKS, should_stop: ShouldStop = never_stop
    ) -> GreedyOutput | None:
        library, n_sentences = kernels.library(), len(state.memory[self.cross_sites[0]].keep)
        too_long = max_length > min(MAX_GREEDY, len(self.positions))
        if library is None or not records_weights_only(hooks) or too_long or n_sentences != 1:
            return None
        source = self._source_pointers(state)
        n_keys, record = source.keep.shape[1], hooks.detail is not Detail.NONE
        weights_per_step = self.layers * self.heads * n_keys
        cross_weights = torch.empty(max_length if record else 1, self.layers, self.heads, n_keys)
        self_weights = self._self_weights(hooks, self.layers * self.heads * max_length * (max_length + 1) // 2)
        cache = torch.empty(self.layers * max_length * 2 * self.decoder.struct.width)
        origin = torch.zeros(max_length, dtype=torch.long)
        tokens, logp = torch.empty(max_length, dtype=torch.long), torch.empty(max_length)
        workspace = self.decoder.workspace(1, max_length, n_keys)
        steps = 0
        while steps < max_length and not (steps and tokens[steps - 1] == END) and not should_stop():
            steps = library.heed_transformer_greedy(
                self.decoder.address, self.start_token, END, steps, min(steps + STEPS_PER_CALL, max_length),
                max_length, cache.data_ptr(), origin.data_ptr(), source.keys, source.values, source.keep.data_ptr(),
                n_keys, cross_weights[steps if record else 0 :].data_ptr(), weights_per_step if record else 0,
                None if self_weights is None else self_weights.data_ptr(), tokens.data_ptr(), logp.data_ptr(),
                workspace.data_ptr(), PAD, START,
            )  # fmt: skip
        weights = {site: cross_weights[:steps, depth] for depth, site in enumerate(self.cross_sites)}
        if self_weights is not None:
            weights |= zip(self.self_sites, self._unpack_triangle(self_weights, steps), strict=True)
        return GreedyOutput(tokens[:steps].tolist(), logp[:steps].tolist(), _recorded(weights, hooks))

    def _self_weights(self, hooks: Hooks, entries: int) -> Tensor | None:
        """Return a buffer for the weights of self-attention; None if no hook records them."""
        recorded = any(hooks.detail_at(site) is not Detail.NONE for site in self.self_sites)
        return torch.empty(entries) if recorded else None

    def _unpack_triangle(self, weights: Tensor, steps: int) -> Tensor:
        """Return weights whose rows grow with the steps as (layer, step, head, step), with zeros for later steps."""
        square = weights.new_zeros(self.layers, steps, self.heads, steps)
        start = 0
        for t in range(steps):
            end = start + self.layers * self.heads * (t + 1)
            square[:, t, :, : t + 1] = weights[start:end].view(self.layers, self.heads, t + 1)
            start = end
        return square

    def _source_pointers(self, state: State) -> _SourcePointers:
        memories = [state.memory[site] for site in self.cross_sites]
        keys = [memory.keys.contiguous() for memory in memories]
        values = [memory.values.contiguous() for memory in memories]
        keep = memories[0].keep.contiguous()
        self.decoder.check_memory(keys, values, keep)
        array = ctypes.c_void_p * self.layers
        key_pointers, value_pointers = (array(*(t.data_ptr() for t in tensors)) for tensors in (keys, values))
        return _SourcePointers(key_pointers, value_pointers, keep, [*keys, *values])

    def _start_cache(self, state: State, rows: int) -> CachedState:
        source = self._source_pointers(state)
        sentence = sentence_of_rows(rows, len(source.keep))
        kernels.check_indices(sentence, (rows,), len(source.keep), "sentence")
        return CachedState(
            state.memory,
            position=state.position,
            cached=torch.empty(self.layers, INITIAL_STEPS, rows, 2 * self.decoder.struct.width),
            origin=torch.zeros(rows, INITIAL_STEPS, dtype=torch.long),
            sentence=sentence,
            source=source,
        )

    def _ensure_capacity(self, state: CachedState) -> CachedState:
        """Return the state with space for one more step in the cache."""
        if state.position >= len(self.positions):
            raise ShapeError(f"an output has more than {len(self.positions):,} tokens, which have no position")
        cached, origin = state.cached, state.origin
        if state.position == cached.shape[1]:
            cached = torch.cat([cached, torch.empty_like(cached)], dim=1)
            origin = torch.cat([origin, torch.empty_like(origin)], dim=1)
        return replace(state, cached=cached, origin=origin.contiguous())


def _recorded(weights: Mapping[str, Tensor], hooks: Hooks) -> dict[str, Tensor]:
    """Return the weights of the sites that the hooks record."""
    return {site: w for site, w in weights.items() if hooks.detail_at(site) is not Detail.NONE}
