"""The encoder of images: one vector per region of a backbone's feature map."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.layers.embedding import Positions
from heedful.layers.state import EncoderOutput


class RegionEncoder(nn.Module):
    """The regions of a feature map, projected if the widths differ; their mean is the final state.

    With `region_embedding`, a learned position embedding is added to each region.
    """

    def __init__(self, config: ModelConfig, width: int) -> None:
        super().__init__()
        hidden = config.encoder.hidden
        self.input_projection = nn.Identity() if width == hidden else nn.Linear(width, hidden)
        self.region_embedding = (
            Positions("learned", hidden, config.encoder.max_positions)
            if config.encoder.region_embedding
            else nn.Identity()
        )

    def forward(self, vectors: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"]) -> EncoderOutput:
        regions = self.region_embedding(self.input_projection(vectors))
        output = EncoderOutput(regions, regions, keep)
        mean = output.mean()
        return output._replace(hidden=(mean,), cells=(mean,))
