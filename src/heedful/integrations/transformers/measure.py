"""`heedful measure` of transformers models: alignment, statistics of the weights, and the faithfulness tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from heedful.attention import Detail, Hooks
from heedful.data.batch import EncodedPair, collate
from heedful.data.line_file import LineFile
from heedful.data.pairs import LABEL_ROLES, TEXT_ROLES, PairFiles, TextPair
from heedful.decoding import force_decode
from heedful.errors import DataError
from heedful.integrations.transformers.decoder import DecoderAdapter
from heedful.integrations.transformers.encoder import POOL, EncoderAdapter
from heedful.integrations.transformers.inputs import text_source
from heedful.integrations.transformers.loaded import LoadedTransformers
from heedful.integrations.transformers.probes import ClassifierTarget, DecoderTarget, Seq2SeqTarget
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.integrations.transformers.trace import target_ids
from heedful.metrics.alignment import score_alignment
from heedful.tasks.classify.measure import describe_weights as describe_text_weights
from heedful.tasks.gold_words import PositionWeights, score_gold_words
from heedful.tasks.seq2seq.measure import PairWeights, describe_weights, score_gold
from heedful.trace.schema import LINK_METHODS, LinkMethod, Links, entropy_ratio, read_links, word_links

ROWS = 25  # pairs per batch
SHIFT = 1  # a token is part of the next step's query


class Choice(NamedTuple):
    """The site, head (None: mean) and link method with the lowest alignment error on some pairs."""

    site: str
    head: int | None
    method: LinkMethod
    aer: float


class TransformersMeasureAdapter:
    """Measures cross-attention of encoder-decoders, what a classifier reads, and self-attention of decoders."""

    unit = "texts"

    def load_items(self, loaded: LoadedTransformers, data: Sequence[str], split: str) -> list[TextPair]:
        if loaded.family.modality != "text":
            raise DataError(f"{loaded.name} reads {loaded.family.modality}; only models of text can be measured")
        if not data:
            raise DataError(f"{loaded.name} is a model of transformers and comes without data; give --data")
        if isinstance(loaded.model, DecoderAdapter):  # texts, without targets
            if len(data) > 1:
                raise DataError(f"--data: expected one text file, got {len(data)}")
            return [TextPair(line, "") for line in LineFile(Path(data[0]))]
        is_classifier = isinstance(loaded.model, EncoderAdapter)
        return list(PairFiles(data, Path.cwd(), roles=LABEL_ROLES if is_classifier else TEXT_ROLES))

    def read_gold(self, path: Path, base: int) -> list[Links]:
        return read_links(path, base)

    def describe_attention(
        self, loaded: LoadedTransformers, items: Sequence[TextPair], gold: Sequence[Links] | None
    ) -> dict[str, Any]:
        if isinstance(loaded.model, Seq2SeqAdapter):
            return _describe_seq2seq(loaded, loaded.model, items, gold)
        if isinstance(loaded.model, EncoderAdapter):
            return _describe_classifier(loaded, loaded.model, items, gold)
        if gold is not None:
            raise DataError("--gold: a model without an encoder has no input to link its output to")
        return {"attention": _describe_decoder(loaded, items)}

    def make_probe_target(self, loaded: LoadedTransformers, items: Sequence[TextPair]) -> Any:
        if isinstance(loaded.model, Seq2SeqAdapter):
            return Seq2SeqTarget(loaded, loaded.model, items)
        if isinstance(loaded.model, EncoderAdapter):
            return ClassifierTarget(loaded, loaded.model, items)
        return DecoderTarget(loaded, loaded.model, items)


def forced_weights(
    loaded: LoadedTransformers, model: Seq2SeqAdapter, pairs: Sequence[TextPair], sites: Sequence[str]
) -> dict[str, list[PairWeights]]:
    """Return the weights (step, head, position) of each site and pair while the references are forced."""
    text = loaded.text
    sources = [text.encode(pair.source) for pair in pairs]
    targets = [target_ids(loaded, model, pair.target) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda i: len(sources[i]))
    found: dict[str, dict[int, PairWeights]] = {site: {} for site in sites}
    hooks = Hooks(Detail.WEIGHTS, frozenset(sites))
    for first in range(0, len(order), ROWS):
        rows = order[first : first + ROWS]
        encoded = [EncodedPair(model.ids.to_ours(sources[row]), model.ids.to_ours(targets[row])) for row in rows]
        for row, hypothesis in zip(rows, force_decode(model, collate(encoded), hooks), strict=True):
            words = text.input_word_ids(pairs[row].source, sources[row]), text.word_ids(targets[row])
            for site, by_row in found.items():
                by_row[row] = PairWeights(hypothesis.attentions[site].double().numpy(), *words)
    return {site: [by_row[i] for i in range(len(pairs))] for site, by_row in found.items()}


def choose_alignment(weights: dict[str, list[PairWeights]], gold: Sequence[Links]) -> Choice:
    """Return the site, head and link method with the lowest alignment error rate."""
    choices = []
    for site, pairs in weights.items():
        heads: list[int | None] = [None, *range(pairs[0].weights.shape[1])]
        for head in heads:
            of_head = [take_head(pair, head) for pair in pairs]
            for method in LINK_METHODS:
                links = [word_links(p.weights, p.source, p.target, method, SHIFT) for p in of_head]
                choices.append(Choice(site, head, method, score_alignment(links, gold).aer))
    return min(choices, key=lambda choice: choice.aer)


def take_head(pair: PairWeights, head: int | None) -> PairWeights:
    """Return the weights (step, position) of one head, or the mean of all."""
    return pair._replace(weights=pair.weights.mean(axis=1) if head is None else pair.weights[:, head])


def _describe_seq2seq(
    loaded: LoadedTransformers, model: Seq2SeqAdapter, items: Sequence[TextPair], gold: Sequence[Links] | None
) -> dict[str, Any]:
    """Describe the alignment site; with gold links, the best site and head, found on the first half of the pairs."""
    alignment = str(model.alignment_site)
    sites = list(model.cross_sites) if gold is not None and alignment in model.cross_sites else [alignment]
    weights = forced_weights(loaded, model, items, sites)
    report: dict[str, Any] = {"attention": describe_weights([take_head(pair, None) for pair in weights[alignment]])}
    if gold is None:
        return report
    half = len(items) // 2
    if not half:
        raise DataError("--gold: at least two pairs are needed: the best head is found on the first half of them")
    choice = choose_alignment({site: pairs[:half] for site, pairs in weights.items()}, gold[:half])
    held_out = [take_head(pair, choice.head) for pair in weights[choice.site][half:]]
    report["gold"] = score_gold(held_out, gold[half:], SHIFT)
    chosen = {"site": choice.site, "head": choice.head, "method": choice.method, "aer": choice.aer}
    report["gold"]["chosen"] = {**chosen, "found_on": half, "measured_on": len(items) - half}
    return report


def _describe_classifier(
    loaded: LoadedTransformers, model: EncoderAdapter, items: Sequence[TextPair], gold: Sequence[Links] | None
) -> dict[str, Any]:
    """Describe the weights of the position that the head reads."""
    texts = []
    for item in items:
        source = text_source(loaded, item.source)
        with torch.no_grad():
            weights = model.run(source.tensors, Hooks(Detail.WEIGHTS, frozenset({POOL}))).attentions[POOL].weights
        assert weights is not None
        mean = weights[0, 0].mean(dim=0).double().numpy()
        texts.append(PositionWeights(mean, [token.word for token in source.side.tokens]))
    report: dict[str, Any] = {"attention": describe_text_weights(texts)}
    if gold is not None:
        report["gold"] = score_gold_words(texts, gold)
    return report


def _describe_decoder(loaded: LoadedTransformers, items: Sequence[TextPair]) -> dict[str, float]:
    """Return statistics of all sites: entropy, the weight on the first token (a sink), on the token itself."""
    entropy, first, own, previous = [], [], [], []
    model: Any = loaded.model
    for item in items:
        ids = loaded.text.encode(item.source)
        if len(ids) < 3:
            continue
        with torch.no_grad():
            found = model.run(torch.tensor([ids]), Hooks(Detail.WEIGHTS)).attentions
        for output in found.values():
            weights = output.weights[0].mean(dim=1).double().numpy()[2:]  # the first two have hardly a choice
            rows = np.arange(len(weights))
            entropy.append(np.mean([entropy_ratio(row[None, : i + 3])[0] for i, row in enumerate(weights)]))
            first.append(weights[:, 0].mean())
            own.append(weights[rows, rows + 2].mean())
            previous.append(weights[rows, rows + 1].mean())
    if not entropy:
        raise DataError("the texts are too short to measure: at least three tokens are needed")
    names = ("entropy_ratio", "first_token_weight", "own_weight", "previous_token_weight")
    return {n: float(np.mean(v)) for n, v in zip(names, (entropy, first, own, previous), strict=True)}


ADAPTER = TransformersMeasureAdapter()
