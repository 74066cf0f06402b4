"""A GRU decoder's whole step as one call into C, with its matrices in bytes.

What a word brings to the gates is looked up in a table made once.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import torch
from jaxtyping import Int
from torch import Tensor, nn

from heedful import native
from heedful.attention import PLAIN, Additive, Detail, Look, Watch
from heedful.data.tokenizer import END, PAD, START
from heedful.layers.readout import Output
from heedful.layers.recurrent_decoder import CROSS, RecurrentDecoder
from heedful.layers.state import State
from heedful.models.engine import Alone, Engine, sentences
from heedful.models.seq2seq import Seq2Seq
from heedful.models.writer import Next
from heedful.native import Int8
from heedful.native.loader import Decoder, Matrix

MODES = ("look first", "feed context", "feed vector", "conditional", "feed nothing")
SAID = ("linear", "affine", "tanh", "deep")


@dataclass(frozen=True, slots=True)
class Running(State):
    """Where a generation stands. What is read stays where it is; each row notes whose it reads."""

    sentence: Tensor = field(default_factory=lambda: torch.empty(0))  # (row,)

    def select(self, rows: Tensor, sentences: Tensor | None = None, beam: int = 1) -> Running:
        del sentences, beam
        feed = None if self.feed is None else self.feed[rows]
        cells = tuple(cell[rows] for cell in self.cells)
        return Running(self.memory, cells=cells, feed=feed, at=self.at, sentence=self.sentence[rows])


@dataclass
class _Parts:
    """The decoder as C sees it, and what it points to."""

    decoder: Decoder
    held: tuple[object, ...]
    floats: int  # of room that a row takes
    feeds: bool


class GruEngine(Engine):
    """Knows one-layer GRU decoders with plain additive attention."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__(model)
        found = _parts(model)
        assert found is not None, "the engine does not know this decoder"
        self.parts = found

    def next(self, state: State, last: Int[Tensor, "row"], best: int, watch: Watch = PLAIN) -> Next | None:
        library, detail = native.library(), watch.detail_at(CROSS)
        if library is None or watch.edit is not None or detail is Detail.FULL:
            return None
        memory, parts, rows = state.memory[CROSS], self.parts, len(last)
        best = min(best, parts.decoder.vocabulary)
        h = state.cells[0].clone()
        fed = h.new_empty(0) if state.feed is None else state.feed.clone()
        sentence = state.sentence if isinstance(state, Running) else sentences(rows, len(memory.keep))
        count = memory.keep.shape[1]
        weights = h.new_empty(rows, 1, 1, count)
        words, logp = last.new_empty(rows, best), h.new_empty(rows, best)
        room = h.new_empty(rows * parts.floats)
        last, keys, values, keep = (t.contiguous() for t in (last, memory.keys, memory.values, memory.keep))
        library.heed_decoder(
            ctypes.addressof(parts.decoder), last.data_ptr(), h.data_ptr(), fed.data_ptr(),
            keys.data_ptr(), values.data_ptr(), keep.data_ptr(), count, sentence.data_ptr(),
            weights.data_ptr(), rows, best, words.data_ptr(), logp.data_ptr(), room.data_ptr(), PAD, START,
        )  # fmt: skip
        feed = fed if parts.feeds else state.feed
        after = Running(state.memory, cells=(h,), feed=feed, at=state.at + 1, sentence=sentence)
        return Next(words, logp, after, {CROSS: Look(None if detail is Detail.NONE else weights)})

    def alone(self, state: State, most: int, watch: Watch = PLAIN) -> Alone | None:
        library, detail = native.library(), watch.detail_at(CROSS)
        if library is None or watch.edit is not None or detail is Detail.FULL:
            return None
        memory, parts = state.memory[CROSS], self.parts
        h = state.cells[0].clone()
        fed = h.new_empty(0) if state.feed is None else state.feed.clone()
        keys, values, keep = (t.contiguous() for t in (memory.keys, memory.values, memory.keep))
        count, shown = keep.shape[1], detail is not Detail.NONE
        weights = h.new_empty(most if shown else 1, 1, count)
        words, logp = torch.empty(most, dtype=torch.long), h.new_empty(most)
        room = h.new_empty(parts.floats)
        steps = library.heed_decoder_alone(
            ctypes.addressof(parts.decoder), self.first, END, most, h.data_ptr(), fed.data_ptr(),
            keys.data_ptr(), values.data_ptr(), keep.data_ptr(), count, weights.data_ptr(),
            count if shown else 0, words.data_ptr(), logp.data_ptr(), room.data_ptr(), PAD, START,
        )  # fmt: skip
        looks = {CROSS: weights[:steps]} if shown else {}
        return Alone(words[:steps].tolist(), logp[:steps].tolist(), looks)


def mode_of(model: Seq2Seq) -> str | None:
    """How the engine would step, if it knows how."""
    decoder = model.decoder
    if not isinstance(decoder, RecurrentDecoder) or decoder.attention is None or model.copying is not None:
        return None
    stack, config = decoder.stack, decoder.config
    plain = (stack.kind, len(stack.layers), len(stack.norms)) == ("gru", 1, 0) and not (
        config.combine or config.gate
    )
    known = decoder.attention.plain_additive and decoder.read_out.kind in SAID
    return decoder.mode if plain and known else None


@torch.no_grad()
def _parts(model: Seq2Seq) -> _Parts | None:
    mode = mode_of(model)
    decoder = model.decoder
    if mode is None or not isinstance(decoder, RecurrentDecoder):
        return None
    assert decoder.attention is not None
    score, read_out = decoder.attention.score, decoder.read_out
    assert isinstance(score, Additive)
    into, hidden, into_bias, hidden_bias = decoder.stack.layers[0].all_weights[0]
    vectors = decoder.embedding.weight
    word = vectors.shape[1]
    bring = nn.functional.linear(vectors, into[:, :word], into_bias).contiguous()
    matrices: dict[str, Int8] = {
        "hidden_m": Int8(hidden, hidden_bias),
        "ask": Int8(score.query.weight),
        "output": Int8(_output(read_out.output).weight, _output(read_out.output).bias),
    }
    if mode == "conditional":
        fed, hidden2, fed_bias, hidden2_bias = decoder.second.all_weights[0]
        matrices |= {"fed_m": Int8(fed, fed_bias), "hidden2_m": Int8(hidden2, hidden2_bias)}
    elif mode != "feed nothing":
        matrices["fed_m"] = Int8(into[:, word:])
    if read_out.kind != "linear":
        matrices["mix"] = Int8(read_out.inner.weight, read_out.inner.bias)
    v = score.v.detach().contiguous()
    width, size = decoder.context_width, hidden.shape[1]
    said = size + width if read_out.kind == "linear" else read_out.inner_width
    numbers = (
        MODES.index(mode), SAID.index(read_out.kind), size, len(v), width,
        matrices["fed_m"].shape[1] if "fed_m" in matrices else 0, said, word, len(vectors),
    )  # fmt: skip
    tables = (bring, vectors.detach().contiguous(), v)
    struct = Decoder(*numbers, *(t.data_ptr() for t in tables))
    for name, matrix in matrices.items():
        assert isinstance(matrix.matrix, Matrix)
        setattr(struct, name, matrix.matrix)
    widest = max(matrix.shape[1] for matrix in matrices.values())
    floats = 9 * size + size + len(v) + width + (size + width + word) + said + len(vectors) + widest // 4 + 4
    return _Parts(struct, (tables, matrices), floats, mode in ("feed context", "feed vector"))


def _output(output: nn.Module) -> Output:
    assert isinstance(output, Output)
    return output
