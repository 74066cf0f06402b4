"""How a recurrent decoder begins: the first state from what the encoder read."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.config.model import RECURRENT, encoder_width
from heedful.layers.modules import Modules
from heedful.layers.state import Read


class Start(nn.Module):
    """`s_0` by one of five ways; an LSTM's cell is made as its state is, from cells where there are any.

    - `backward`: `tanh(W h_1_backward)` of the encoder's top layer;
    - `bridge`: each layer's final state (and cell), directions side by side, projected where the sizes
      differ; a decoder deeper than the encoder starts its extra layers from the top one;
    - `top`: the top layer's final state (and cell) for all decoder layers, projected where sizes differ;
    - `mean`: `tanh(W mean(h))`;
    - `zeros`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        encoder, decoder = config.encoder, config.decoder
        self.way = decoder.start
        self.hidden = decoder.hidden
        self.slots = 2 if decoder.kind == "lstm" else 1  # tensors a layer keeps
        self.layers = decoder.layers
        wide = encoder_width(config)
        given = {"backward": encoder.hidden, "mean": wide, "bridge": wide, "top": wide}
        makes = {"backward": 1, "mean": 1, "top": 1, "bridge": min(self.layers, encoder.layers)}
        self.encoder_layers = encoder.layers if encoder.kind in RECURRENT else 0
        if self.way == "zeros":
            self.project = Modules[nn.Module]()
            return
        plain = self.way in ("bridge", "top") and given[self.way] == self.hidden
        self.project = Modules[nn.Module](
            nn.Identity() if plain else nn.Linear(given[self.way], self.hidden)
            for _ in range(makes[self.way] * self.slots)
        )

    def forward(self, read: Read) -> tuple[Float[Tensor, "batch hidden"], ...]:
        """One state a layer, or state and cell."""
        if self.way == "zeros":
            zero = read.keys.new_zeros(len(read.keys), self.hidden)
            return (zero,) * (self.layers * self.slots)
        made: list[Tensor] = []
        for layer in range(self.layers):
            for slot in range(self.slots):
                which = min(layer, len(self.project) // self.slots - 1) * self.slots + slot
                made.append(self._made(read, layer, slot, self.project[which]))
        return tuple(made)

    def _made(self, read: Read, layer: int, slot: int, project: nn.Module) -> Tensor:
        if self.way == "mean":
            return torch.tanh(project(read.mean()))
        states = read.cells if slot and read.cells else read.hidden
        if self.way == "backward":
            return torch.tanh(project(states[-1].chunk(2, dim=-1)[1]))
        source = states[-1] if self.way == "top" else states[min(layer, len(states) - 1)]
        made: Tensor = project(source)
        return made if slot or isinstance(project, nn.Identity) else torch.tanh(made)
