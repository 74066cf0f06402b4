"""One search over the `Writer` protocol: greedy, sampled and forced outputs; `beam.py` has the beam."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Generator, Tensor

from heedful.attention import PLAIN, Look, Watch
from heedful.data.batch import Padded, TextBatch
from heedful.data.tokenizer import END
from heedful.decoding.beam import beam_search
from heedful.decoding.types import Beam, Forced, Found, Greedy, Hypothesis, Method, Sample
from heedful.decoding.words import Chosen, banned, likeliest, own_sites, unpadded
from heedful.models import Engine, State, Writer


@torch.inference_mode()
def search(
    model: Writer,
    batch: TextBatch,
    how: Method,
    watch: Watch = PLAIN,
    prefix: Padded | None = None,
) -> Found:
    """Search outputs for a batch. `prefix` forces the first words of each (a sentence's own, or none)."""
    state, looks = model.encode(batch, watch)
    encoder = _encoder_looks(looks, batch.source.lengths.tolist())
    if isinstance(how, Forced):
        return Found([[h] for h in _forced(model, batch, watch)], encoder)
    if isinstance(how, Beam):
        return Found(beam_search(model, state, batch, how, watch, prefix), encoder)
    draws = how.n_best if isinstance(how, Sample) else 1
    rng = None
    if isinstance(how, Sample):
        rng = Generator(device=batch.source.keep.device).manual_seed(how.seed % 2**63)
    found: list[list[Hypothesis]] = [[] for _ in range(batch.size)]
    for _ in range(draws):
        for sentence, hypothesis in enumerate(_one_each(model, state, batch, how, watch, prefix, rng)):
            found[sentence].append(hypothesis)
    return Found([sorted(hs, key=lambda h: -h.score) for hs in found], encoder)


def _encoder_looks(looks: Mapping[str, Look], lengths: Sequence[int]) -> list[Mapping[str, Tensor]]:
    return [
        {
            site: look.weights[row, :length, :, :length]
            for site, look in looks.items()
            if look.weights is not None
        }
        for row, length in enumerate(lengths)
    ]


def _one_each(
    model: Writer,
    state: State,
    batch: TextBatch,
    how: Greedy | Sample,
    watch: Watch,
    prefix: Padded | None,
    rng: Generator | None,
) -> list[Hypothesis]:
    """One output a sentence, greedy or drawn; finished sentences leave the batch."""
    if isinstance(how, Greedy) and prefix is None and batch.size == 1 and isinstance(model, Engine):
        found = model.alone(state, how.max_length, watch)
        if found is not None:
            words, total = tuple(found.words), sum(found.logp)
            return [Hypothesis(words, total, total, tuple(found.logp), words[-1] == END, found.looks)]
    device = batch.source.keep.device
    last = torch.full((batch.size,), model.first, device=device)
    alive = torch.arange(batch.size, device=device)
    chosen: list[Chosen] = []
    for t in range(how.max_length):
        if isinstance(how, Greedy) and prefix is None:
            best = likeliest(model, state, last, 1, watch)
            picked, logp, state, looks = best.words[:, 0], best.logp[:, 0], best.state, best.looks
        else:
            stepped = model.step(state, last, watch)
            state, looks = stepped.state, stepped.looks
            picked, logp = _pick(banned(stepped), how, rng, prefix, alive, t)
        chosen.append(Chosen.of(alive, picked, logp, looks))
        going = (picked != END).nonzero().squeeze(1)
        if len(going) == 0:
            break
        last = picked
        if len(going) < len(alive):
            state, last, alive = state.select(going, going), picked[going], alive[going]
    return unpadded(chosen, batch.source.lengths.tolist(), own_sites(model.sites))


def _pick(
    scores: Tensor,
    how: Greedy | Sample,
    rng: Generator | None,
    prefix: Padded | None,
    alive: Tensor,
    t: int,
) -> tuple[Tensor, Tensor]:
    """The next word of each row, and its log-probability."""
    logp = scores.log_softmax(dim=-1)
    picked = logp.argmax(dim=-1) if isinstance(how, Greedy) else _draw(logp, how, rng)
    picked = _as_forced(picked, prefix, alive, t)
    return picked, logp.gather(-1, picked[:, None]).squeeze(1)


def _as_forced(picked: Tensor, prefix: Padded | None, alive: Tensor, t: int) -> Tensor:
    """The prefix's word where a sentence has one for this step."""
    if prefix is None or t >= prefix.ids.shape[1]:
        return picked
    return torch.where(prefix.keep[alive, t], prefix.ids[alive, t], picked)


def _draw(logp: Tensor, how: Sample, rng: Generator | None) -> Tensor:
    """A word from the sharpened, cut and renormalised distribution."""
    scores = logp / max(how.temperature, 1e-6)
    if how.top_k:
        worst = scores.topk(min(how.top_k, scores.shape[-1])).values[:, -1:]
        scores = scores.masked_fill(scores < worst, float("-inf"))
    if how.top_p < 1.0:
        order = scores.softmax(-1).sort(dim=-1, descending=True)
        before = order.values.cumsum(-1) - order.values  # mass of the words likelier than this one
        out = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, order.indices, before >= how.top_p)
        scores = scores.masked_fill(out, float("-inf"))
    return torch.multinomial(scores.softmax(-1), 1, generator=rng).squeeze(1)


def _forced(model: Writer, batch: TextBatch, watch: Watch) -> list[Hypothesis]:
    assert batch.target is not None, "forced decoding needs targets"
    stepped = model.score(batch, watch)
    looks = {site: look for site, look in stepped.looks.items() if not site.startswith("enc.")}
    gold, keep = batch.target.ids[:, 1:], batch.target.keep[:, 1:]
    logp = stepped.logits.log_softmax(dim=-1).gather(-1, gold[..., None]).squeeze(-1)
    lengths = batch.source.lengths.tolist()
    own = own_sites(model.sites)
    written = {site: look.weights for site, look in looks.items() if look.weights is not None}
    found = []
    for row in range(batch.size):
        count = int(keep[row].sum())
        values = tuple(logp[row, :count].tolist())
        mine = {
            site: weights[row, :count, :, : count if site in own else lengths[row]]
            for site, weights in written.items()
        }
        tokens = tuple(gold[row, :count].tolist())
        found.append(Hypothesis(tokens, sum(values), sum(values), values, tokens[-1] == END, mine))
    return found
