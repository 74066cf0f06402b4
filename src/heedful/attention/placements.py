"""Placements: which part of the source a query may weigh, and what it reads of it.

A placement is given the scores, the mask and the normaliser, and returns the weights that are used
together with what it wants recorded (a centre, a sample and its log-probability, ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor, nn

from heedful.attention.normalise import Normalise
from heedful.errors import ShapeError
from heedful.record import Mass

Scores = Float[Tensor, "batch query head key"]
Read = Literal["sample", "argmax", "expectation"]


@dataclass(frozen=True, slots=True)
class Place:
    """What a placement may know beside the scores."""

    query: Float[Tensor, "batch query head width"]
    at: Int[Tensor, "batch query"]  # the target position t, from 0
    length: Int[Tensor, "batch"]  # T, the unpadded source length
    rng: Generator | None = None


def _distance(centre: Float[Tensor, "batch query head"], count: int) -> Float[Tensor, "batch query head key"]:
    """|i - centre| for every key i."""
    return (torch.arange(count, device=centre.device, dtype=centre.dtype) - centre[..., None]).abs()


class Placement(nn.Module):
    """Base of all placements; `mass` says what becomes of the normaliser's mass."""

    def mass(self, normaliser: Mass) -> Mass:
        return normaliser

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        raise TypeError(f"{type(self).__name__} does not say where to look")


class Global(Placement):
    """All of the source."""

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        return normalise(scores, allowed), {}


class LocalM(Placement):
    """Luong 2015 §3.2, monotonic: `p_t = min(t, T-1)`, window `|i - p_t| <= D`, no Gaussian."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = _positive(window)

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        centre = torch.minimum(place.at, place.length[:, None] - 1)[..., None]
        near = _distance(centre.to(torch.float64), scores.shape[-1]) <= self.window
        heads = centre.expand(*centre.shape[:2], scores.shape[2])
        return normalise(scores, allowed & near), {"centre": heads.to(scores.dtype)}


class LocalP(Placement):
    """Luong 2015 §3.2, predictive: a centre from the query, a Gaussian around it (eq. 9 and 10).

    `p_t = (T-1) sigmoid(v' tanh(W s_t))`, window `|i - floor(p_t)| <= D`, and the weights of the window times
    `exp(-(i - p_t)^2 / (2 (D/2)^2))`. As in the released code the product is not renormalised unless asked.
    """

    def __init__(self, query: int, window: int, renormalise: bool = False) -> None:
        super().__init__()
        self.window = _positive(window)
        self.renormalise = renormalise
        self.inner = nn.Linear(query, query, bias=False)
        self.outer = nn.Linear(query, 1, bias=False)

    def mass(self, normaliser: Mass) -> Mass:
        if self.renormalise:
            return "one"
        return "at_most_one" if normaliser == "one" else normaliser

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        share = torch.sigmoid(self.outer(torch.tanh(self.inner(place.query)))).squeeze(-1)
        # Positions are counted in float32 at least: bfloat16 knows 256 and 258, but not 257.
        wide = share.to(torch.promote_types(share.dtype, torch.float32))
        centre = wide * (place.length[:, None, None] - 1).clamp_min(0)
        near = _distance(centre.detach().floor(), scores.shape[-1]) <= self.window
        spread = self.window / 2
        bell = torch.exp(-_distance(centre, scores.shape[-1]).square() / (2 * spread**2))
        weights = normalise(scores, allowed & near) * bell.to(scores.dtype)
        if self.renormalise:
            total = weights.sum(dim=-1, keepdim=True)
            weights = weights / total.masked_fill(total == 0, 1.0)
        return weights, {"centre": centre.to(scores.dtype)}


class Hard(Placement):
    """One position instead of a mixture (Xu 2015 §4.1); its log-probability and the entropy are recorded.

    Three ways to read: `sample`, `argmax` (ties to the first) and `expectation`, which mixes as soft
    attention does. `read` holds while training, `generate` in evaluation. Gradients reach the distribution
    only through `logp` and `entropy` (REINFORCE), or through the expectation.
    """

    def __init__(self, read: Read = "sample", generate: Read = "expectation") -> None:
        super().__init__()
        self.read: Read = read
        self.generate: Read = generate

    def mass(self, normaliser: Mass) -> Mass:
        if normaliser != "one":
            raise ShapeError("hard attention draws from its weights, so they must sum to 1; take softmax")
        return "one"

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        alpha = normalise(scores, allowed)
        if alpha.shape[-1] == 0:  # an empty source: nothing to draw from
            nothing = alpha.sum(dim=-1)
            none = torch.full_like(nothing, -1, dtype=torch.long)
            return alpha, {"alpha": alpha, "sample": none, "logp": nothing, "entropy": nothing}
        some = allowed.any(dim=-1).expand(alpha.shape[:-1])
        log_alpha = alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()
        entropy = -(alpha * log_alpha).sum(dim=-1)
        how = self.read if self.training else self.generate
        index = _draw(alpha, some, place.rng) if how == "sample" else _first_best(alpha)
        logp = log_alpha.gather(-1, index[..., None]).squeeze(-1).masked_fill(~some, 0.0)
        record = {
            "alpha": alpha,
            "sample": index.masked_fill(~some, -1),
            "logp": logp,
            "entropy": entropy,
        }
        if how == "expectation":
            return alpha, record
        one_hot = torch.zeros_like(alpha).scatter(-1, index[..., None], 1.0)
        return one_hot.masked_fill(~some[..., None], 0.0), record


def _first_best(alpha: Tensor) -> Tensor:
    """The first position of the largest weight (torch's argmax promises no order among ties)."""
    best = alpha == alpha.amax(dim=-1, keepdim=True)
    return best.to(torch.uint8).cumsum(-1).eq(0).sum(-1)


def _draw(alpha: Tensor, some: Tensor, rng: Generator | None) -> Tensor:
    """One index per row; rows with nothing to read draw from a stand-in and are blanked by the caller."""
    rows = alpha.detach().float().masked_fill(~some[..., None], 1.0).flatten(end_dim=-2)
    return torch.multinomial(rows, 1, generator=rng).view(alpha.shape[:-1])


class Uniform(Placement):
    """`1/T` wherever reading is allowed: the control that honesty tests and comparisons need."""

    def mass(self, normaliser: Mass) -> Mass:  # the scores play no part
        return "one"

    def forward(
        self,
        scores: Scores,
        allowed: Bool[Tensor, "batch query #head key"],
        normalise: Normalise,
        place: Place,
    ) -> tuple[Scores, dict[str, Tensor]]:
        readable = allowed.to(torch.promote_types(scores.dtype, torch.float32))
        share = readable / readable.sum(dim=-1, keepdim=True).clamp_min(1)
        return share.to(scores.dtype).expand(scores.shape), {}


def _positive(window: int) -> int:
    if window < 1:
        raise ShapeError(f"a local window reaches at least 1 position to each side, not {window}")
    return window


PLACEMENTS: dict[str, type[Placement]] = {
    "global": Global,
    "local-m": LocalM,
    "local-p": LocalP,
    "hard": Hard,
    "uniform": Uniform,
}
