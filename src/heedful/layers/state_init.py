"""The initial state of a recurrent decoder."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.layers.modules import TypedModuleList
from heedful.layers.state import EncoderOutput


class StateInit(nn.Module):
    """Compute `s_0` from the encoder's output, and likewise the first cells of an LSTM.

    - `backward`: `tanh(W h_1_backward)` of the encoder's top layer (Bahdanau 2015, appendix A.2.2);
    - `bridge`: the final state (and cell) of each layer, directions concatenated, projected if the sizes differ; the
      extra layers of a decoder deeper than the encoder start from the encoder's top layer;
    - `top`: the final state (and cell) of the top layer for all decoder layers, projected if the sizes differ;
    - `mean`: `tanh(W mean(h))`;
    - `zeros`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        self.method = decoder.state_init
        self.hidden = decoder.hidden
        self.layers = decoder.layers
        self.states_per_layer = 2 if decoder.kind == "lstm" else 1  # hidden state and cell
        width = encoder.hidden if self.method == "backward" else config.encoder_width
        count = {"zeros": 0, "bridge": min(self.layers, encoder.layers)}.get(self.method, 1)
        identity = self.method in ("bridge", "top") and width == self.hidden
        self.projections = TypedModuleList[nn.Module](
            nn.Identity() if identity else nn.Linear(width, self.hidden) for _ in range(count * self.states_per_layer)
        )

    def forward(self, encoder_output: EncoderOutput) -> tuple[Float[Tensor, "batch hidden"], ...]:
        """Return the hidden state of each layer; for an LSTM the hidden state and the cell."""
        if self.method == "zeros":
            zeros = encoder_output.keys.new_zeros(encoder_output.keys.shape[0], self.hidden)
            return (zeros,) * (self.layers * self.states_per_layer)
        top = len(self.projections) // self.states_per_layer - 1
        return tuple(
            self._state(
                encoder_output, layer, is_cell, self.projections[min(layer, top) * self.states_per_layer + is_cell]
            )
            for layer in range(self.layers)
            for is_cell in range(self.states_per_layer)
        )

    def _state(self, encoder_output: EncoderOutput, layer: int, is_cell: int, projection: nn.Module) -> Tensor:
        if self.method == "mean":
            return torch.tanh(projection(encoder_output.mean()))
        states = encoder_output.cells if is_cell and encoder_output.cells else encoder_output.hidden
        if self.method == "backward":
            _, backward = states[-1].chunk(2, dim=-1)
            return torch.tanh(projection(backward))
        final = states[-1] if self.method == "top" else states[min(layer, len(states) - 1)]
        state: Tensor = projection(final)
        return state if is_cell or isinstance(projection, nn.Identity) else torch.tanh(state)
