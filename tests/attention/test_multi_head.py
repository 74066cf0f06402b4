"""The drop-in replacement of `torch.nn.MultiheadAttention`: equal results and gradients, recorded and edited."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heedful.attention import AttentionOutput, Detail, Hooks, MultiHeadAttention, Override, record
from heedful.errors import ShapeError

WIDTH, HEADS, BATCH, QUERIES, KEYS = 12, 3, 2, 4, 5
PADDING = torch.tensor([[False] * KEYS, [False, False, True, False, True]])
MASKS: dict[str, dict[str, Any]] = {
    "no mask": {},
    "padding": {"key_padding_mask": PADDING},
    "float padding": {"key_padding_mask": torch.zeros(BATCH, KEYS).masked_fill(PADDING, -torch.inf)},
    "mask": {"attn_mask": torch.ones(QUERIES, KEYS, dtype=torch.bool).triu(2)},
    "float mask": {"attn_mask": torch.linspace(-2, 1, QUERIES * KEYS).view(QUERIES, KEYS)},
    "mask per head": {"attn_mask": torch.rand(BATCH * HEADS, QUERIES, KEYS, generator=torch.manual_seed(3)) > 0.8},
    "both": {"attn_mask": torch.ones(QUERIES, KEYS, dtype=torch.bool).triu(2), "key_padding_mask": PADDING},
}
MODULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch first": {"batch_first": True},
    "no bias": {"bias": False},
    "other widths": {"kdim": 7, "vdim": 9},
    "learned and zero key": {"add_bias_kv": True, "add_zero_attn": True},
}


def make_modules(**options: Any) -> tuple[nn.MultiheadAttention, MultiHeadAttention]:
    """Return torch's module and ours with the same parameters, in double precision."""
    torch.manual_seed(1)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    for parameter in theirs.parameters():
        nn.init.uniform_(parameter, -0.7, 0.7)
    ours = MultiHeadAttention(WIDTH, HEADS, dtype=torch.float64, **options)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def make_inputs(options: dict[str, Any]) -> list[Tensor]:
    torch.manual_seed(2)
    widths = (QUERIES, WIDTH), (KEYS, options.get("kdim", WIDTH)), (KEYS, options.get("vdim", WIDTH))
    inputs = [torch.randn(BATCH, *shape, dtype=torch.float64) for shape in widths]
    if not options.get("batch_first"):
        inputs = [tensor.transpose(0, 1) for tensor in inputs]
    return [tensor.detach().requires_grad_() for tensor in inputs]


def outputs_and_gradients(module: nn.MultiheadAttention, options: dict[str, Any], **call: Any) -> list[Tensor]:
    inputs = make_inputs(options)
    output, weights = module(*inputs, **call)
    loss = (output**2).sum() + (0 if weights is None else (weights**3).sum())
    loss.backward()
    gradients = [x.grad for x in (*inputs, *module.parameters()) if x.grad is not None]
    return [output, *([] if weights is None else [weights]), *gradients]


@pytest.mark.parametrize(("module", "masks"), [*product(MODULES, MASKS)])
@pytest.mark.parametrize("call", [{}, {"need_weights": False}, {"average_attn_weights": False}])
def test_outputs_weights_and_gradients_are_those_of_torch(module: str, masks: str, call: dict[str, Any]) -> None:
    options = MODULES[module]
    theirs, ours = make_modules(**options)
    casted = {n: m if m.dtype == torch.bool else m.double() for n, m in MASKS[masks].items()}
    expected = outputs_and_gradients(theirs, options, **casted, **call)
    actual = outputs_and_gradients(ours, options, **casted, **call)
    assert len(actual) == len(expected)
    for ours_value, torch_value in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours_value, torch_value, atol=1e-6, rtol=0)


def test_the_signature_and_the_state_dict_are_those_of_torch() -> None:
    theirs, ours = make_modules()
    names = list(inspect.signature(nn.MultiheadAttention.forward).parameters)
    assert list(inspect.signature(MultiHeadAttention.forward).parameters) == names
    assert {n: t.shape for n, t in ours.state_dict().items()} == {n: t.shape for n, t in theirs.state_dict().items()}
    theirs.load_state_dict(ours.state_dict())
    assert isinstance(ours, nn.MultiheadAttention)


def test_dropout_draws_the_numbers_that_torch_draws() -> None:
    theirs, ours = make_modules(dropout=0.4, batch_first=True)
    outputs = []
    for module in (theirs, ours):
        torch.manual_seed(5)
        outputs.append(module(*make_inputs({"batch_first": True})))
    torch.testing.assert_close(outputs[0], outputs[1])
    ours.eval()
    torch.testing.assert_close(ours(*make_inputs({"batch_first": True}))[1].sum(dim=-1), torch.ones(2, 4).double())


def test_one_sentence_needs_no_batch_axis() -> None:
    theirs, ours = make_modules()
    inputs = [tensor[:, 0] for tensor in make_inputs({})]
    torch.testing.assert_close(ours(*inputs), theirs(*inputs))


def test_a_causal_mask_is_made() -> None:
    _, ours = make_modules(batch_first=True)
    x = torch.randn(1, 4, WIDTH, dtype=torch.float64)
    weights = ours(x, x, x, is_causal=True)[1]
    assert bool((weights.triu(1) == 0).all())


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_query_without_keys_gets_zeros_and_gradients_stay_finite(need_weights: bool) -> None:
    _, ours = make_modules(batch_first=True)
    inputs = make_inputs({"batch_first": True})
    padding = torch.tensor([[True] * KEYS, [False] * KEYS])
    output, _ = ours(*inputs, key_padding_mask=padding, need_weights=need_weights)
    assert bool((output[0] == 0).all())
    assert bool((output[1] != 0).all())
    output.sum().backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in (*inputs, *ours.parameters()) if p.grad is not None)


def convert(model: nn.Module) -> nn.Module:
    """Replace the attention of torch's Transformer layers."""
    for layer in model.modules():
        for name in ("self_attn", "multihead_attn"):
            if hasattr(layer, name):
                setattr(layer, name, MultiHeadAttention.from_torch(getattr(layer, name)))
    return model


@pytest.fixture
def transformer() -> nn.Module:
    torch.manual_seed(4)
    return nn.Transformer(8, 2, 1, 2, 16, batch_first=True).eval()


def test_the_attention_inside_a_model_is_recorded(transformer: nn.Module) -> None:
    source, target = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    expected = transformer(source, target)
    convert(transformer)
    with torch.no_grad(), record(transformer) as outputs:
        actual = transformer(source, target)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)
    assert set(outputs) == {
        "encoder.layers.0.self_attn",
        *(f"decoder.layers.{n}.{kind}" for n in (0, 1) for kind in ("self_attn", "multihead_attn")),
    }
    (cross,) = outputs["decoder.layers.1.multihead_attn"]
    assert cross.weights is not None
    assert cross.weights.shape == (2, 3, 2, 5)
    torch.testing.assert_close(cross.weights.sum(dim=-1), torch.ones(2, 3, 2))
    assert cross.scores is not None
    torch.testing.assert_close(cross.scores.softmax(dim=-1), cross.weights)
    assert cross.context is not None
    assert cross.head_contexts is not None
    assert (cross.context.shape, cross.head_contexts.shape) == ((2, 3, 8), (2, 3, 2, 4))
    transformer(source, target)
    assert len(outputs["encoder.layers.0.self_attn"]) == 1, "nothing is recorded outside the block"


def test_hooks_choose_sites_and_details_and_edit_weights(transformer: nn.Module) -> None:
    convert(transformer)
    site = "decoder.layers.0.multihead_attn"

    def attend_to_the_first(name: str, output: AttentionOutput, positions: Tensor) -> Override | None:
        assert output.weights is not None
        assert positions.tolist() == [[0, 1, 2]] * 2 or name != site
        weights = torch.zeros_like(output.weights)
        weights[..., 0] = 1.0
        return Override(weights) if name == site else None

    source, target = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    plain = transformer(source, target)
    with record(transformer, Hooks(Detail.WEIGHTS, frozenset({site}), attend_to_the_first)) as outputs:
        edited = transformer(source, target)
    assert set(outputs) == {site}
    weights = outputs[site][0].weights
    assert weights is not None
    assert bool((weights[..., 0] == 1).all())
    assert outputs[site][0].scores is None
    assert not torch.allclose(plain, edited)


def test_each_thread_records_its_own_calls() -> None:
    _, ours = make_modules(batch_first=True)

    def count(calls: int) -> int:
        with record(ours) as outputs:
            for _ in range(calls):
                ours(*make_inputs({"batch_first": True}))
        return len(outputs["attention"])

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(count, [3, 1, 5])) == [3, 1, 5]


def test_a_converted_module_shares_its_parameters() -> None:
    theirs, _ = make_modules(batch_first=True, kdim=7, vdim=9)
    ours = MultiHeadAttention.from_torch(theirs)
    assert {id(p) for p in ours.parameters()} == {id(p) for p in theirs.parameters()}
    inputs = make_inputs({"batch_first": True, "kdim": 7, "vdim": 9})
    torch.testing.assert_close(ours(*inputs), theirs(*inputs))


@pytest.mark.parametrize(
    ("shapes", "masks", "message"),
    [
        (((2, 4, 11), (2, 5, 12), (2, 5, 12)), {}, r"query has shape \(2, 4, 11\), .* needs \(batch, position, 12\)"),
        (((2, 4, 12), (3, 5, 12), (3, 5, 12)), {}, "they need one batch size"),
        (((2, 4, 12), (2, 5, 12), (2, 6, 12)), {}, "key and value one length"),
        (((2, 4, 12),) * 3, {"key_padding_mask": PADDING}, r"key_padding_mask has shape \(2, 5\), .* need \(2, 4\)"),
        (((2, 4, 12),) * 3, {"attn_mask": torch.zeros(3, 3)}, r"attn_mask has shape \(3, 3\), .* need \(4, 4\)"),
    ],
)
def test_wrong_shapes_are_named(shapes: Any, masks: dict[str, Tensor], message: str) -> None:
    attention = MultiHeadAttention(WIDTH, HEADS, batch_first=True)
    with pytest.raises(ShapeError, match=message):
        attention(*(torch.zeros(shape) for shape in shapes), **masks)
