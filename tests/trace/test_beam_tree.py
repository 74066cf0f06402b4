"""The tree of a beam search: hypotheses that can be counted by hand, and attention weights that are their own."""

from __future__ import annotations

import math

import pytest
import torch

import small_models
from decoding.markov_model import A, B, C, MarkovModel
from heedful.attention import Detail, Hooks
from heedful.config import DecodingOptions
from heedful.data.batch import EncodedPair, TextBatch, collate, pad
from heedful.data.tokenizer import END, START
from heedful.decoding import force_decode, search
from heedful.trace.beam_tree import WEIGHTS, build_beam_tree
from heedful.trace.schema import BeamNode


def path(nodes: list[BeamNode], node: BeamNode) -> tuple[int, ...]:
    """Return the tokens from the first one to a node."""
    return (*(path(nodes, nodes[node.parent]) if node.parent >= 0 else ()), node.token)


def test_every_hypothesis_that_the_beam_kept_is_a_node() -> None:
    """The beam of two keeps "A" and "B", then "A C" and "A" ended; "B" is pruned."""
    model = MarkovModel({START: {A: 0.8, B: 0.2}, A: {C: 0.6, END: 0.4}, B: {C: 0.5, END: 0.5}})
    options = DecodingOptions(method="beam", beam=2, n_best=2, length_penalty=0.0, max_length=9)
    result = search(model, TextBatch(pad([[END]])), options)
    assert result.beam is not None
    outputs = [hypothesis.tokens for hypothesis in result.hypotheses[0]]
    tree, tensors = build_beam_tree(result.beam, None, outputs, str)
    states = {path(tree.nodes, node): node.state for node in tree.nodes}
    assert states == {
        (A,): "active",
        (B,): "pruned",
        (A, C): "active",
        (A, END): "finished",
        (A, C, END): "finished",
    }
    expected = {(A,): 0.8, (B,): 0.2, (A, C): 0.48, (A, END): 0.32, (A, C, END): 0.48}
    for node in tree.nodes:
        assert node.total_logp == pytest.approx(math.log(expected[path(tree.nodes, node)]))
        assert node.score == (pytest.approx(node.total_logp) if node.state == "finished" else None)
        assert node.step == len(path(tree.nodes, node)) - 1
    assert [path(tree.nodes, tree.nodes[best]) for best in tree.best] == outputs == [(A, C, END), (A, END)]
    assert (tree.beam_size, tree.weights, tensors) == (2, None, {})


def test_hypotheses_of_the_last_step_are_not_pruned() -> None:
    model = MarkovModel({START: {A: 0.6, B: 0.4}, A: {A: 1.0}, B: {B: 1.0}})
    options = DecodingOptions(method="beam", beam=2, max_length=2)
    result = search(model, TextBatch(pad([[END]])), options)
    assert result.beam is not None
    tree, _ = build_beam_tree(result.beam, None, [result.hypotheses[0][0].tokens], str)
    assert [node.state for node in tree.nodes] == ["active"] * 4


def test_the_weights_of_a_node_are_those_of_its_hypothesis() -> None:
    model = small_models.randomize_weights(small_models.build_model(small_models.small_preset("rnnsearch")), 5)
    source, hooks = [4, 5, 6, END], Hooks(Detail.WEIGHTS)
    options = DecodingOptions(method="beam", beam=4, max_length=5)
    result = search(model, TextBatch(pad([source])), options, hooks)
    assert result.beam is not None
    tree, tensors = build_beam_tree(result.beam, "cross", [], str)
    weights = torch.tensor(tensors[WEIGHTS].array())
    assert len(weights) == len(tree.nodes) > 10
    for node in tree.nodes:
        tokens = list(path(tree.nodes, node))
        forced = force_decode(model, collate([EncodedPair(source, tokens)]), hooks)[0]
        torch.testing.assert_close(weights[node.id], forced.attentions["cross"][-1].float())
