"""Traces of plain PyTorch modules, and of weights that were recorded by others."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from torch import nn

from heedful import record
from heedful.attention import Detail, Hooks
from heedful.errors import TraceError
from heedful.trace.edits import build_edit_hook, parse_edit
from heedful.trace.schema import Trace


def transformer() -> nn.Transformer:
    torch.manual_seed(1)
    return nn.Transformer(16, 4, 2, 2, 32, batch_first=True).eval()


def test_a_transformer_of_torch_is_recorded_and_computes_the_same() -> None:
    model = transformer()
    source, target = torch.randn(2, 5, 16), torch.randn(2, 3, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    with torch.no_grad():
        expected = model(source, target, tgt_mask=mask)
        with record(model, tokens="a b c d e".split(), target_tokens="x y z".split()) as traces:
            output = model(source, target, tgt_mask=mask)
        after = model(source, target, tgt_mask=mask)
    assert torch.allclose(output, expected, atol=1e-5)
    assert torch.equal(after, expected)
    assert all("forward" not in vars(module) for module in model.modules())
    assert len(traces) == 2
    trace = traces[1]
    assert len(trace.sites) == 6
    assert trace.alignment_site == "decoder.layers.1.multihead_attn"
    assert trace.matrix().shape == (3, 5)
    assert np.triu(trace.weights("decoder.layers.0.self_attn").max(axis=1), 1).max() == 0
    layer = model.decoder.layers[0].self_attn
    assert isinstance(layer, nn.MultiheadAttention)
    with torch.no_grad():
        normal = model.decoder.layers[0]
        own = layer(target, target, target, attn_mask=mask, average_attn_weights=False)[1]
    assert normal is not None
    assert own is not None
    assert np.abs(trace.weights("decoder.layers.0.self_attn") - own[1].transpose(0, 1).numpy()).max() < 1e-6


def test_weights_of_plain_modules_can_be_edited_and_errors_leave_nothing_behind() -> None:
    model = transformer()
    source, target = torch.randn(1, 5, 16), torch.randn(1, 3, 16)
    site = "decoder.layers.0.multihead_attn"
    edit = build_edit_hook([parse_edit(f"onehot@{site}:step=1,position=2")], site)
    with torch.no_grad(), record(model, hooks=Hooks(Detail.WEIGHTS, edit=edit)) as traces:
        model(source, target)
    assert traces[0].matrix(site)[1].tolist() == [0, 0, 1, 0, 0]
    assert [token.text for token in traces[0].source.tokens] == ["0", "1", "2", "3", "4"]
    with pytest.raises(TraceError, match="2 texts, but the model attended to 5"), record(model, tokens=["a", "b"]):
        model(source, target)
    assert all("forward" not in vars(module) and not module._forward_hooks for module in model.modules())
    with pytest.raises(TraceError, match=r"no nn\.MultiheadAttention"), record(nn.Linear(2, 2)):
        pass


def test_other_threads_are_not_recorded() -> None:
    model = transformer()
    with torch.no_grad(), record(model) as traces:
        thread = threading.Thread(target=lambda: model(torch.randn(1, 4, 16), torch.randn(1, 2, 16)))
        thread.start()
        thread.join()
    assert traces == []


def test_tuples_of_output_attentions_become_a_trace() -> None:
    rng = np.random.default_rng(1)
    layers = tuple(torch.tensor(rng.dirichlet(np.ones(3), (1, 2, 3)), dtype=torch.float32) for _ in range(4))
    trace = Trace.from_attentions(layers, ["<s>", "a", "cat"])
    assert [record.site for record in trace.sites] == [f"enc.{i}.self" for i in range(4)]
    assert np.allclose(trace.weights("enc.2.self"), layers[2][0].transpose(0, 1))
    causal = tuple(torch.tril(layer) / torch.tril(layer).sum(-1, keepdim=True) for layer in layers)
    assert Trace.from_attentions(causal, ["a", "b", "c"]).alignment_site == "dec.3.self"
    cross = tuple(torch.full((1, 2, 2, 3), 1 / 3) for _ in range(2))
    both = Trace.from_attentions(layers, ["a", "b", "c"], cross_attentions=cross, target_tokens=["x", "y"])
    assert both.alignment_site == "dec.1.cross"
    assert both.matrix().shape == (2, 3)
    steps = tuple(tuple(layer[:, :, t : t + 1] for layer in cross) for t in range(2))  # as `generate` returns them
    joined = Trace.from_attentions(None, ["a", "b", "c"], cross_attentions=steps, target_tokens=["x", "y"])
    assert np.array_equal(joined.weights("dec.1.cross"), both.weights("dec.1.cross"))


def test_given_weights_that_cannot_be_a_trace_say_why() -> None:
    layer = torch.full((1, 2, 3, 3), 1 / 3)
    with pytest.raises(TraceError, match='attn_implementation="eager"'):
        Trace.from_attentions((), ["a"])
    with pytest.raises(TraceError, match="3 queries and 3 keys, but there are 2 and 2 tokens"):
        Trace.from_attentions((layer,), ["a", "b"])
    with pytest.raises(TraceError, match="several rows of a batch"):
        Trace.from_attentions((layer.repeat(2, 1, 1, 1),), ["a", "b", "c"])
    with pytest.raises(TraceError, match="target_tokens"):
        Trace.from_attentions(None, ["a"], cross_attentions=(layer,))
    with pytest.raises(TraceError, match="finite"):
        Trace.from_attentions((layer * torch.nan,), ["a", "b", "c"])
