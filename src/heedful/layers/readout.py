"""Read-outs: from the decoder's state, the context and the last word to scores of the next word."""

from __future__ import annotations

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.layers.dropout import Dropout

Wide = Float[Tensor, "row query width"]


class Output(nn.Module):
    """The last matrix: one row a word. Tied, its rows are the target's word vectors."""

    def __init__(self, width: int, vocabulary: int, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.width = width
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        if tied is None:
            self.weight = nn.Parameter(torch.empty(vocabulary, width))
            nn.init.uniform_(self.weight, -(width**-0.5), width**-0.5)
        else:
            self.weight = cast(nn.Parameter, tied.weight)

    def forward(self, x: Float[Tensor, "*row width"]) -> Float[Tensor, "*row vocab"]:
        return nn.functional.linear(x, self.weight, self.bias)


class TwoStepOutput(Output):
    """Two steps (Goodman 2001): one of the `common` words or none of them; then, among the rest, which.

    Ids follow how common words are, so the second step is seldom needed; a word's probability is exact all
    the same: `p(w)` of the first step for a common one, `p(rest) p(w | rest)` else.
    """

    def __init__(self, width: int, vocabulary: int, common: int, tied: nn.Embedding | None = None) -> None:
        super().__init__(width, vocabulary, tied)
        self.common = common
        self.rest = nn.Parameter(torch.zeros(1, width))
        self.rest_bias = nn.Parameter(torch.zeros(1))

    def steps(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Weights and biases of the first step, the rest as its last row, and of the second."""
        cut = self.common
        first = torch.cat([self.weight[:cut], self.rest]), torch.cat([self.bias[:cut], self.rest_bias])
        return first, (self.weight[cut:], self.bias[cut:])

    def forward(self, x: Float[Tensor, "*row width"]) -> Float[Tensor, "*row vocab"]:
        """Log-probabilities, which are scores too."""
        first, second = (nn.functional.linear(x, *step).log_softmax(dim=-1) for step in self.steps())
        return torch.cat([first[..., :-1], first[..., -1:] + second], dim=-1)


class ReadOut(nn.Module):
    """Six read-outs over the parts that are there (a model without attention has no context).

    - `linear`: `W_o [s; c] + b`
    - `tanh`: `W_o tanh(W_c [c; s])`, whose inner vector is Luong's attentional vector
    - `affine`: `W_o (W_c [c; s] + b)`, as OpenNMT-py makes that vector beside additive attention
    - `deep`: `L_o tanh(L_s s + L_y emb + L_c c)`
    - `added`: `L_o tanh(emb + L_s s + L_c c)` (Xu 2015, eq. 7)
    - `maxout`: `L_o max of pairs of (U s + V emb + C c)` (Bahdanau 2015, appendix A.2.2)
    """

    def __init__(
        self, config: ModelConfig, context: int, vocabulary: int, tied: nn.Embedding | None = None
    ) -> None:
        super().__init__()
        self.kind = config.decoder.read_out
        state, word = config.decoder.hidden, config.embedding
        self.dropout = Dropout(config.dropout)
        parts = [state, context] if context else [state]
        if self.kind == "linear":
            self.output = Output(sum(parts), vocabulary)
            return
        inner = word if tied is not None or self.kind == "added" else state
        if self.kind == "tanh":
            self.inner = nn.Linear(sum(parts), inner, bias=False)
        elif self.kind in ("affine", "added"):
            self.inner = nn.Linear(sum(parts), inner)
        else:
            self.inner = nn.Linear(sum(parts) + word, inner * (2 if self.kind == "maxout" else 1))
        self.inner_width = inner
        self.output = Output(inner, vocabulary, tied)

    def forward(
        self,
        state: Float[Tensor, "row query state"],
        context: Float[Tensor, "row query context"] | None,
        word: Float[Tensor, "row query word"],
    ) -> tuple[Tensor, Tensor | None]:
        """What the output matrix is applied to, and the attentional vector where the kind has one."""
        parts = [state] if context is None else [state, context]
        if self.kind == "linear":
            return self.dropout(torch.cat(parts, dim=-1)), None
        if self.kind in ("tanh", "affine"):
            vector = self.inner(torch.cat(parts, dim=-1))
            vector = torch.tanh(vector) if self.kind == "tanh" else vector
            return self.dropout(vector), vector
        if self.kind == "added":
            return self.dropout(torch.tanh(word + self.inner(torch.cat(parts, dim=-1)))), None
        mixed = self.inner(torch.cat([*parts, word], dim=-1))
        if self.kind == "deep":
            return self.dropout(torch.tanh(mixed)), None
        pairs = mixed.view(*mixed.shape[:-1], self.inner_width, 2)
        return self.dropout(pairs.amax(dim=-1)), None
