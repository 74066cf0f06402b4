"""What reads pictures: a vector for each region, projected where widths differ."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.layers.embedding import Positions
from heedful.layers.state import Read


class RegionEncoder(nn.Module):
    """A backbone's map as it is, or projected to another width; its mean stands for the whole picture.

    With `places`, each region's vector also tells where in the picture it is.
    """

    def __init__(self, config: ModelConfig, given: int) -> None:
        super().__init__()
        wanted = config.encoder.hidden
        self.into = nn.Identity() if given == wanted else nn.Linear(given, wanted)
        self.places = (
            Positions("learned", wanted, config.encoder.max_positions)
            if config.encoder.places
            else nn.Identity()
        )

    def forward(self, vectors: Float[Tensor, "batch key width"], keep: Bool[Tensor, "batch key"]) -> Read:
        regions = self.places(self.into(vectors))
        read = Read(regions, regions, keep)
        whole = read.mean()
        return read._replace(hidden=(whole,), cells=(whole,))
