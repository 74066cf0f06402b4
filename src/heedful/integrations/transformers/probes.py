"""Probes of transformers models: decisions whose attention weights can be replaced, for the faithfulness tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.attention import NO_HOOKS, AttentionOutput, Detail, Hooks, Override
from heedful.config import DecodingOptions
from heedful.data.batch import TextBatch
from heedful.data.labels import normalize_label
from heedful.data.pairs import TextPair
from heedful.errors import DataError
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import POOL, EncoderAdapter
from heedful.integrations.transformers.generation import generate
from heedful.integrations.transformers.inputs import text_source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.metrics import evaluate
from heedful.tasks.generation_probes import GeneratedCorpus, GenerationProbeTarget
from heedful.tasks.probes import (
    OUTPUT_EDITS,
    Decision,
    differentiable_output,
    frozen_weights,
    gradient_times_input,
    in_chunks,
    normalize_saliency,
)
from heedful.trace.edits import build_edit_hook
from heedful.trace.schema import Edit

PROBE_ROWS = 25  # texts per batch of probes
PREDICT_ROWS = 100  # texts per batch without gradients


def edit_hooks(site: str | None, seed: int) -> dict[str, Hooks]:
    """Return hooks for the outputs of `output_metrics`: unchanged, with uniform and with permuted weights."""
    hooks = {"unchanged": NO_HOOKS}
    for name, op in OUTPUT_EDITS.items():
        hooks[name] = Hooks(edit=build_edit_hook([Edit.model_validate({"op": op})], site, seed=seed))
    return hooks


class TransformersCorpus(GeneratedCorpus):
    """Sources and outputs in our numbers, with the special tokens of the model's tokenizer."""

    special: frozenset[int] = frozenset()

    def special_positions(self, batch: TextBatch) -> Tensor:
        ids: Any = batch.source
        return torch.isin(ids.ids, torch.tensor(sorted(self.special)))


class Seq2SeqTarget(GenerationProbeTarget):
    """An encoder-decoder and its outputs for some texts: every next token is a decision."""

    metric_name, position_name = "BLEU", "source tokens"

    def __init__(self, loaded: LoadedTransformers, model: Seq2SeqAdapter, pairs: Sequence[TextPair]) -> None:
        if model.without_cache or model.alignment_site not in model.cross_sites:
            raise DataError(f"{loaded.name}: faithfulness tests need a cross-attention as alignment site")
        self.loaded, self.pairs = loaded, pairs
        self.model = model  # type: ignore[assignment]
        ids = model.ids
        self.outputs = self._generate(NO_HOOKS)
        sources = [ids.to_ours(loaded.text.encode(pair.source)) for pair in pairs]
        self.corpus = TransformersCorpus(sources, [ids.to_ours(output) for output in self.outputs])
        known = [i for i in loaded.text.special if i in ids.ours]
        object.__setattr__(self.corpus, "special", frozenset(ids.to_ours(known)))

    def _generate(self, hooks: Hooks) -> list[list[int]]:
        model: Any = self.model
        start = int(model.ids.table[2])
        sources = [text_source(self.loaded, pair.source) for pair in self.pairs]
        return [generate(model, s.tensors, DecodingOptions(), hooks=hooks, start=start).ids[0] for s in sources]

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return BLEU of the outputs: unchanged, and with all weights uniform or permuted."""
        references = [pair.target for pair in self.pairs]
        scores = {}
        for name, hooks in edit_hooks(self.model.alignment_site, seed).items():
            outputs = self.outputs if name == "unchanged" else self._generate(hooks)
            texts = [self.loaded.text.decode(ids) for ids in outputs]
            scores[name] = evaluate(["bleu"], texts, references)[0].value
        return scores


@dataclass(frozen=True)
class LabelProbe:
    """The labels of several texts; `token_weights` and `valid` begin after the token that the head reads."""

    target: ClassifierTarget
    weights: Tensor
    readable: Tensor
    valid: Tensor
    token_weights: Tensor
    probabilities: Tensor
    items: list[int]
    step: int = 0

    def predict(self, weights: Tensor) -> Tensor:
        """Return the distributions of the labels under other weights, with gradients."""
        return in_chunks(weights, self._predict_chunk)

    def _predict_chunk(self, weights: Tensor) -> Tensor:
        rows, count = weights.shape[:2]
        flat = weights.flatten(0, 1)[:, None]

        def replace(site: str, output: AttentionOutput, _: Tensor) -> Override | None:
            assert output.weights is not None
            return Override(flat.to(output.weights.dtype)) if site == POOL else None

        tensors = self.target.batch([self.target.sources[item] for item in self.items])
        repeated = {name: x.repeat_interleave(count, dim=0) for name, x in tensors.items()}
        return self.target.logits(repeated, Hooks(edit=replace)).softmax(dim=-1).view(rows, count, -1)


class ClassifierTarget:
    """A classifier and its labels of some texts."""

    decision_name, metric_name, position_name, has_decisions = "label", "accuracy", "tokens", True

    def __init__(self, loaded: LoadedTransformers, model: EncoderAdapter, pairs: Sequence[TextPair]) -> None:
        if loaded.family.head != "classify":
            raise DataError(f"{loaded.name} has no classification head, so it decides nothing that could be tested")
        self.loaded, self.model, self.pairs = loaded, model, pairs
        ids = [loaded.text.encode(pair.source) for pair in pairs]
        model.find_read_position(self._tensors([ids[0]]))
        if model.reads_position != 0:
            raise DataError(f"{loaded.name}: its head does not read the first token, so it has no weights to test")
        self.first = ids[0][:1]
        self.sources: list[list[int]] = [row[1:] for row in ids]

    def _tensors(self, rows: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        width = max(map(len, rows))
        pad = int(self.loaded.text.inner.pad_token_id or 0)
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": (torch.arange(width) < lengths[:, None]).long()}

    def batch(self, sources: Sequence[Sequence[int]]) -> dict[str, Tensor]:
        """Return sources as input of the model, with the token that its head reads."""
        return self._tensors([[*self.first, *source] for source in sources])

    def logits(self, tensors: dict[str, Tensor], hooks: Hooks = NO_HOOKS) -> Tensor:
        """Return the logits (row, label)."""
        logits = self.model.run(tensors, hooks).logits
        assert logits is not None
        return logits[:, 0]

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        """Return the only step of each text: its label."""
        return [{0} for _ in self.sources]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[LabelProbe]:
        """Yield probes of the texts; texts of similar length share a batch."""
        special = torch.tensor(sorted(self.loaded.text.special))
        for rows in self._batches([i for i, item_steps in enumerate(steps) if item_steps], PROBE_ROWS):
            tensors = self.batch([self.sources[row] for row in rows])
            with torch.no_grad():
                result = self.model.run(tensors, Hooks(Detail.WEIGHTS, frozenset({POOL})))
            weights = result.attentions[POOL].weights
            assert weights is not None
            assert result.logits is not None
            weights, readable = weights[:, 0], tensors["attention_mask"].bool()
            valid = readable & ~torch.isin(tensors["input_ids"], special)
            probabilities = result.logits[:, 0].softmax(dim=-1)
            mean = weights.mean(dim=1)[:, 1:]
            yield LabelProbe(self, weights, readable, valid[:, 1:], mean, probabilities, rows)

    def _batches(self, items: Sequence[int], size: int) -> Iterator[list[int]]:
        order = sorted(items, key=lambda i: len(self.sources[i]))
        for first in range(0, len(order), size):
            yield order[first : first + size]

    @torch.no_grad()
    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        """Return the distribution over labels of each source."""
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        found: dict[int, Tensor] = {}
        for first in range(0, len(order), PREDICT_ROWS):
            rows = order[first : first + PREDICT_ROWS]
            found.update(zip(rows, self.logits(self.batch([sources[r] for r in rows])).softmax(dim=-1), strict=True))
        return torch.stack([found[i] for i in range(len(sources))])

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        """Return gradient times input of every token, with the weights of [CLS] held constant."""
        found: dict[int, Tensor] = {}
        for rows in self._batches(sorted({item for item, _ in decisions}), PROBE_ROWS):
            tensors = self.batch([self.sources[row] for row in rows])
            with torch.enable_grad(), differentiable_output(self.model.embedding) as leaves:
                best = self.logits(tensors, frozen_weights({POOL})).softmax(dim=-1).max(dim=-1).values
                (gradient,) = torch.autograd.grad(best.sum(), leaves[0])
            importance = gradient_times_input(gradient, leaves[0])[:, 1:]
            for batch_row, row in enumerate(rows):
                found[row] = normalize_saliency(importance[batch_row, : len(self.sources[row])])
        return [found[item] for item, _ in decisions]

    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the accuracy: unchanged, and with uniform or permuted weights of the position that the head reads."""
        references = [normalize_label(pair.target) for pair in self.pairs]
        labels = [normalize_label(label) for label in self.loaded.labels]
        scores = {}
        for name, hooks in edit_hooks(POOL, seed).items():
            best: dict[int, str] = {}
            for rows in self._batches(range(len(self.sources)), PREDICT_ROWS):
                logits = self.logits(self.batch([self.sources[row] for row in rows]), hooks)
                best.update(zip(rows, (labels[i] for i in logits.argmax(dim=-1).tolist()), strict=True))
            outputs = [best[i] for i in range(len(self.sources))]
            scores[name] = evaluate(["accuracy"], outputs, references)[0].value
        return scores


class DecoderTarget:
    """A decoder-only model: it has no single decision to probe, and is measured by the perplexity of texts."""

    decision_name, metric_name, position_name, has_decisions = "next token", "perplexity", "earlier tokens", False

    def __init__(self, loaded: LoadedTransformers, model: DecoderAdapter, pairs: Sequence[TextPair]) -> None:
        self.model = model
        ids = [loaded.text.encode(pair.source) for pair in pairs]
        self.sources = [row for row in ids if len(row) > 1]

    def sample_steps(self, per_item: int, seed: int) -> list[set[int]]:
        """Return no steps."""
        return [set() for _ in self.sources]

    def probes(self, steps: Sequence[set[int]]) -> Iterator[Any]:
        """Yield nothing."""
        yield from ()

    def predict_from(self, decisions: Sequence[Decision], sources: Sequence[Sequence[int]]) -> Tensor:
        raise NotImplementedError("a decoder has no single decision")

    def saliency(self, decisions: Sequence[Decision]) -> list[Tensor]:
        raise NotImplementedError("a decoder has no single decision")

    @torch.no_grad()
    def output_metrics(self, seed: int) -> dict[str, float]:
        """Return the perplexity: unchanged, and with uniform or permuted weights of the alignment site."""
        scores = {}
        for name, hooks in edit_hooks(self.model.alignment_site, seed).items():
            total, count = 0.0, 0
            for row in self.sources:
                logp = self.model.run(torch.tensor([row[:-1]]), hooks).logits[0].float().log_softmax(dim=-1)
                total -= float(logp.gather(-1, torch.tensor(row[1:])[:, None]).sum())
                count += len(row) - 1
            scores[name] = math.exp(total / max(1, count))
        return scores
