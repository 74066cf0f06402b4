"""Every read-out against its equation in plain loops."""

from __future__ import annotations

import pytest
import torch

import small_models
from heedful.layers.readout import Output, ReadOut
from layers.loops import plus, tanh, times

STATE, CONTEXT, WORD = 6, 4, 6
# the step orders and feedings that the configuration asks for
READ_OUTS = ("linear", "tanh", "affine", "deep", "added", "maxout")


def make_read_out(kind: str, context: int = CONTEXT) -> ReadOut:
    torch.manual_seed(0)
    config = small_models.small_preset("bigru-gru", decoder__read_out=kind, tie_embeddings="none")
    return ReadOut(config, context, 11).double().eval()


def features_by_loops(read_out: ReadOut, s: list[float], c: list[float], word: list[float]) -> list[float]:
    if read_out.kind == "linear":
        return [*s, *c]
    weight, bias = read_out.projection.weight, read_out.projection.bias
    if read_out.kind in ("tanh", "affine"):
        vector = times(weight, [*s, *c], bias)
        return tanh(vector) if read_out.kind == "tanh" else vector
    if read_out.kind == "added":
        return tanh(plus(word, times(weight, [*s, *c], bias)))
    mixed = times(weight, [*s, *c, *word], bias)
    return tanh(mixed) if read_out.kind == "deep" else [max(mixed[i : i + 2]) for i in range(0, len(mixed), 2)]


@pytest.mark.parametrize("kind", READ_OUTS)
@pytest.mark.parametrize("context", [CONTEXT, 0], ids=["with context", "without attention"])
def test_features_follow_the_equation(kind: str, context: int) -> None:
    read_out = make_read_out(kind, context)
    torch.manual_seed(1)
    s, c, word = (torch.randn(2, 3, size, dtype=torch.float64) for size in (STATE, context, WORD))
    features, vector = read_out(s, c if context else None, word)
    for row in range(2):
        for step in range(3):
            expected = features_by_loops(read_out, *(t[row, step].tolist() for t in (s, c, word)))
            assert features[row, step].tolist() == pytest.approx(expected, abs=1e-12)
    assert (vector is not None) == (kind in ("tanh", "affine"))
    assert features.shape[-1] == read_out.output.width
    assert read_out.output(features).shape == (2, 3, 11)


def test_only_the_tanh_read_out_has_no_bias() -> None:
    assert [kind for kind in READ_OUTS[1:] if make_read_out(kind).projection.bias is None] == ["tanh"]


def test_a_tied_output_layer_uses_the_embedding() -> None:
    embedding = torch.nn.Embedding(11, 6)
    output = Output(6, 11, embedding)
    assert output.weight is embedding.weight
    x = torch.randn(2, 6)
    torch.testing.assert_close(output(x), x @ embedding.weight.T)
