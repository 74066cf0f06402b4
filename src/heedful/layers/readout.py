"""Read-outs and output layers: from a decoder's state, context and last word to the logits of the next word."""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.errors import ShapeError
from heedful.fused.cross_entropy import Loss, linear_cross_entropy, linear_rdrop_loss
from heedful.layers.dropout import Dropout


class Output(nn.Module):
    """The output layer: a linear layer to the vocabulary. If tied, its rows are the target's word embeddings."""

    def __init__(self, width: int, vocabulary: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.width = width
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if tied is None:
            self.weight = nn.Parameter(torch.empty(vocabulary, width))
            nn.init.uniform_(self.weight, -(width**-0.5), width**-0.5)
        else:
            self.weight = cast(nn.Parameter, tied.weight)

    def forward(self, features: Float[Tensor, "*row width"]) -> Float[Tensor, "*row vocab"]:
        """Return logits."""
        return nn.functional.linear(features, self.weight, self.bias)

    def cross_entropy(
        self, features: Float[Tensor, "n width"], targets: Int[Tensor, "n"], smoothing: float = 0.0
    ) -> Loss:
        """Return the summed cross-entropy with label smoothing, and the negative log-likelihood of each target."""
        return linear_cross_entropy(features, self.weight, self.bias, targets, smoothing)

    def rdrop_loss(
        self,
        first: Float[Tensor, "n width"],
        second: Float[Tensor, "n width"],
        targets: Int[Tensor, "n"],
        smoothing: float,
        rdrop: float,
    ) -> Loss:
        """Return the summed R-Drop loss of two forward passes (Liang 2021), and the mean negative log-likelihood."""
        return linear_rdrop_loss(first, second, self.weight, self.bias, targets, smoothing, rdrop)


class TwoLevelOutput(Output):
    """A two-level softmax (Goodman 2001): first over the shortlist of frequent words and the tail as a whole.

    `p(w)` of the first level for a word of the shortlist, else `p(tail) p(w | tail)`. Ids are sorted by frequency, so
    the second level is rarely computed; the probabilities are exact.
    """

    def __init__(self, width: int, vocabulary: int, shortlist: int, tied: nn.Embedding | None = None) -> None:
        super().__init__(width, vocabulary, tied)
        self.shortlist = shortlist
        self.tail_weight = nn.Parameter(torch.zeros(1, width))
        self.tail_bias = nn.Parameter(torch.zeros(1))

    def levels(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Return weight and bias of the first level, whose last row is the tail, and of the second."""
        cut = self.shortlist
        first = torch.cat([self.weight[:cut], self.tail_weight]), torch.cat([self.bias[:cut], self.tail_bias])
        return first, (self.weight[cut:], self.bias[cut:])

    def forward(self, features: Float[Tensor, "*row width"]) -> Float[Tensor, "*row vocab"]:
        """Return log-probabilities, which are logits too."""
        first, second = (nn.functional.linear(features, *level).log_softmax(dim=-1) for level in self.levels())
        return torch.cat([first[..., :-1], first[..., -1:] + second], dim=-1)

    def cross_entropy(
        self, features: Float[Tensor, "n width"], targets: Int[Tensor, "n"], smoothing: float = 0.0
    ) -> Loss:
        """Return the same as `Output`; the second level is computed only for targets in the tail."""
        if smoothing:
            raise ShapeError("label smoothing needs a softmax over all words, not one with a shortlist")
        first, second = self.levels()
        in_tail = targets >= self.shortlist
        total, nll = linear_cross_entropy(features, *first, targets.clamp(max=self.shortlist))
        if not in_tail.any():
            return total, nll
        tail_total, tail_nll = linear_cross_entropy(features[in_tail], *second, targets[in_tail] - self.shortlist)
        return total + tail_total, nll.index_put((in_tail,), tail_nll, accumulate=True)


class ReadOut(nn.Module):
    """One of six read-outs over the state `s`, the context `c` (if there is attention) and the last word.

    - `linear`: `W_o [s; c] + b`
    - `tanh`: `W_o tanh(W_c [c; s])`, whose hidden vector is Luong's attentional vector (Luong 2015, eq. 5-6)
    - `affine`: `W_o (W_c [c; s] + b)`, as OpenNMT-py does with additive attention
    - `deep`: `L_o tanh(L_s s + L_y emb + L_c c)`
    - `added`: `L_o tanh(emb + L_s s + L_c c)` (Xu 2015, eq. 7)
    - `maxout`: `L_o t`, where t are the maxima of pairs of units of `U s + V emb + C c` (Bahdanau 2015, appendix A.2.2)
    """

    def __init__(self, config: ModelConfig, context: int, vocabulary: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.kind = config.decoder.read_out
        state, word = config.decoder.hidden, config.embedding
        self.dropout = Dropout(config.dropout)
        parts = [state, context] if context else [state]
        if self.kind == "linear":
            self.output = Output(sum(parts), vocabulary)
            return
        width = word if tied is not None or self.kind == "added" else state
        if self.kind == "tanh":
            self.projection = nn.Linear(sum(parts), width, bias=False)
        elif self.kind in ("affine", "added"):
            self.projection = nn.Linear(sum(parts), width)
        else:
            self.projection = nn.Linear(sum(parts) + word, width * (2 if self.kind == "maxout" else 1))
        self.projection_width = width
        self.output = Output(width, vocabulary, tied)

    def forward(
        self,
        state: Float[Tensor, "row query state"],
        context: Float[Tensor, "row query context"] | None,
        word: Float[Tensor, "row query word"],
    ) -> tuple[Tensor, Tensor | None]:
        """Return the features for the output layer, and the attentional vector if the read-out has one."""
        parts = [state] if context is None else [state, context]
        if self.kind == "linear":
            return self.dropout(torch.cat(parts, dim=-1)), None
        if self.kind in ("tanh", "affine"):
            vector = self.projection(torch.cat(parts, dim=-1))
            vector = torch.tanh(vector) if self.kind == "tanh" else vector
            return self.dropout(vector), vector
        if self.kind == "added":
            return self.dropout(torch.tanh(word + self.projection(torch.cat(parts, dim=-1)))), None
        projected = self.projection(torch.cat([*parts, word], dim=-1))
        if self.kind == "deep":
            return self.dropout(torch.tanh(projected)), None
        pairs = projected.view(*projected.shape[:-1], self.projection_width, 2)
        return self.dropout(pairs.amax(dim=-1)), None
