"""`heedful measure` of language models: the weights on earlier words, and their effect on the perplexity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Detail, Hooks, Override
from heedful.data.text import encode_text, sentence_batch
from heedful.errors import DataError
from heedful.metrics.surprisal import perplexity_state
from heedful.tasks.language_model.assets import LoadedLanguageModel
from heedful.tasks.language_model.data import inference_max_tokens, start_token
from heedful.tasks.language_model.evaluate import evaluation_lines
from heedful.tasks.language_model.score import score_batch
from heedful.tasks.probes import Decision, DecisionProbe, permute_weights, uniform_weights
from heedful.trace.schema import Links, entropy_ratio

Transform = Callable[[Tensor], Tensor]  # of weights


def encode_lines(loaded: LoadedLanguageModel, lines: Sequence[str]) -> list[list[int]]:
    """Return the ids of lines, under the recipe's policy for lines that are too long."""
    text = encode_text(lines, loaded.assets.encode_all, loaded.recipe.data, inference_max_tokens(loaded.recipe))
    return [list(text[row].target) for row in range(len(text))]


class LanguageModelProbeTarget:
    """A language model and some lines.

    Attention influences all later states, so there is no single decision to probe: the model is tested by its
    perplexity when all weights of the alignment site are uniform or permuted.
    """

    decision_name, metric_name = "next word", "perplexity"
    position_name, has_decisions = "earlier words", False

    def __init__(self, loaded: LoadedLanguageModel, lines: Sequence[str]) -> None:
        self.model, self.start = loaded.model, start_token(loaded.recipe)
        self.sources = encode_lines(loaded, lines)

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        return [set() for _ in self.sources]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[DecisionProbe]:
        return iter(())

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        raise NotImplementedError

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        raise NotImplementedError

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the perplexity: unchanged, and with all weights of the alignment site uniform or permuted."""
        rng = Generator().manual_seed(seed)
        return {
            "unchanged": self._perplexity(NO_HOOKS),
            "uniform": self._perplexity(self._replace_weights(uniform_weights)),
            "permuted": self._perplexity(self._replace_weights(lambda weights: permute_weights(weights, rng))),
        }

    def _replace_weights(self, transform: Transform) -> Hooks:
        def replace(site: str, attention: AttentionOutput, _: Tensor) -> Override | None:
            weights = attention.weights
            if site != self.model.alignment_site or weights is None or not weights.shape[-1]:
                return None
            return Override(transform(weights))

        return Hooks(Detail.NONE, edit=replace)

    @torch.inference_mode()
    def _perplexity(self, hooks: Hooks) -> float:
        batches = (sentence_batch([ids], self.start) for ids in self.sources)
        nats = [score_batch(self.model, batch, hooks=hooks).surprisal.double().numpy() for batch in batches]
        return perplexity_state(nats, "sentences").metric().value


class LanguageModelAdapter:
    """Measures the attention of language models to earlier words."""

    unit = "lines"

    def load_items(self, loaded: LoadedLanguageModel, data: Sequence[str], split: str) -> list[str]:
        return list(evaluation_lines(loaded, data, split))

    def read_gold(self, path: Path, base: int) -> list[Links]:
        raise DataError("--gold: there are no gold links between the words of a text")

    def describe_attention(
        self, loaded: LoadedLanguageModel, items: Sequence[str], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        entropy, largest, on_previous, on_start = [], [], [], []
        attends_to_itself = loaded.model.sites[-1].kind != "tape"
        for ids in encode_lines(loaded, items):
            weights = _line_weights(loaded, ids)
            for position in range(2, len(weights)):  # earlier rows have only one position to attend to
                row = weights[position, : position + attends_to_itself]
                entropy.append(entropy_ratio(row[None])[0])
                largest.append(row.max())
                on_previous.append(row[position - 1])
                on_start.append(row[0])
        if not entropy:
            raise DataError("these lines are too short to measure attention: each word has one position to attend to")
        return {
            "attention": {
                "entropy_ratio": float(np.mean(entropy)),
                "largest_weight": float(np.mean(largest)),
                "previous_word_weight": float(np.mean(on_previous)),
                "start_weight": float(np.mean(on_start)),
            }
        }

    def make_probe_target(self, loaded: LoadedLanguageModel, items: Sequence[str]) -> LanguageModelProbeTarget:
        return LanguageModelProbeTarget(loaded, items)


@torch.inference_mode()
def _line_weights(loaded: LoadedLanguageModel, ids: Sequence[int]) -> np.ndarray:
    """Return the weights (query, key) of the alignment site on one line, mean over heads, without empty slots."""
    site = str(loaded.model.alignment_site)
    batch = sentence_batch([ids], start_token(loaded.recipe))
    scores = score_batch(loaded.model, batch, hooks=Hooks(Detail.WEIGHTS, frozenset({site})))
    by_head = scores.attentions[site].weights
    assert by_head is not None
    weights: np.ndarray = by_head[0].double().mean(dim=1).numpy()
    return weights[:, weights.shape[1] - len(weights) :]


ADAPTER = LanguageModelAdapter()
