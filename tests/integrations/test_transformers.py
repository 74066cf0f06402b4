"""Models of transformers: the same numbers as their own attention, every site recorded, and edits that work."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

import heedful
from heedful.attention import Detail, Hooks
from heedful.data.batch import TextBatch, pad
from heedful.errors import HeedfulError, ModelError, TraceError
from heedful.integrations.transformers.model import TransformersModel
from heedful.integrations.transformers.seq2seq import Seq2SeqAdapter
from heedful.trace.schema import Trace
from integrations import tiny_transformers as tiny

ENCODER_DECODERS = ["marian", "t5", "bart", "mbart"]
ENCODERS = [
    "BertForSequenceClassification",
    "BertModel",
    "BertForMaskedLM",
    "RobertaForSequenceClassification",
    "DistilBertForSequenceClassification",
    "DistilBertModel",
]


def encoder_decoder(kind: str) -> TransformersModel:
    tokenizer = tiny.tokenizer()
    size = len(tokenizer)
    model = tiny.bart(size, kind == "mbart") if "bart" in kind else getattr(tiny, kind)(size)
    return heedful.from_transformers(model, tokenizer, name=kind)


def encoder(kind: str) -> TransformersModel:
    tokenizer = tiny.tokenizer("wordpiece", "<s> $A </s>")
    return heedful.from_transformers(tiny.bert(len(tokenizer), kind), tokenizer, name=kind)


def text(kind: str) -> str:
    return "The <mask> sleeps on the old chair." if "Masked" in kind else tiny.SENTENCE


@pytest.mark.parametrize("kind", [*ENCODER_DECODERS, *ENCODERS])
def test_numbers_are_those_of_the_models_own_attention(kind: str) -> None:
    model = encoder_decoder(kind) if kind in ENCODER_DECODERS else encoder(kind)
    checks = model.check(text(kind))
    assert checks.pop("logits") < 1e-5
    assert max(checks.values()) < 1e-5
    assert {"row_sum", "weights", "context"} <= set(checks)


@pytest.mark.parametrize("kind", ENCODER_DECODERS)
def test_every_site_of_an_encoder_decoder_is_recorded(kind: str) -> None:
    trace = encoder_decoder(kind).trace(tiny.SENTENCE)
    names = [f"enc.{i}.self" for i in range(3)] + [f"dec.{i}.{kind}" for i in range(3) for kind in ("self", "cross")]
    assert [record.site for record in trace.sites] == names
    assert trace.alignment_site == "dec.1.cross"  # the penultimate layer
    assert {record.heads for record in trace.sites} == {4}
    assert trace.source.words == tiny.SENTENCE.split()
    assert trace.source.tokens[-1].role == "end"
    assert len(trace.counterfactuals) == 2 * len(trace.source.tokens) * len(trace.target.tokens)
    assert trace.detail == "steps"
    assert trace.site("dec.1.cross").scores is not None
    assert trace.site("dec.0.cross").scores is None


def test_an_output_is_that_of_generate(tmp_path: Path) -> None:
    model = encoder_decoder("marian")
    ids = torch.tensor([model.loaded.text.encode(tiny.SENTENCE)])
    for options, own in (({}, {}), ({"beam": 3}, {"num_beams": 3}), ({"max_length": 4}, {"max_new_tokens": 4})):
        expected = model.model.generate(input_ids=ids, **own)[0, 1:].tolist()  # type: ignore[operator]
        trace = model.trace(tiny.SENTENCE, **options)
        assert [token.id for token in trace.target.tokens] == [i for i in expected if i != tiny.PAD]
        assert model(tiny.SENTENCE, **options) == trace.target.text
    assert len(model(tiny.SENTENCE, n_best=3)) == 3
    trace.save(tmp_path / "trace.json")
    assert Trace.load(tmp_path / "trace.json").id == trace.id


def test_log_probabilities_are_those_of_the_model() -> None:
    model = encoder_decoder("bart")
    trace = model.trace(tiny.SENTENCE, target="Le chat dort.")
    target = [token.id for token in trace.target.tokens]
    ids = torch.tensor([[token.id for token in trace.source.tokens]])
    with torch.no_grad():
        logits = model.model(input_ids=ids, decoder_input_ids=torch.tensor([[tiny.END, *target[:-1]]])).logits[0]
    logp = logits.log_softmax(-1)[range(len(target)), target]
    assert torch.allclose(torch.tensor([step.logp for step in trace.steps]), logp, atol=1e-5)
    assert trace.target.text == "Le chat dort."
    assert trace.target.words == ["Le", "chat", "dort."]


def test_an_edit_changes_weights_and_output_and_nothing_before_its_step() -> None:
    model = encoder_decoder("marian")
    before = model.trace(tiny.SENTENCE)
    after = model.trace(tiny.SENTENCE, edits="onehot:step=2,position=1")
    assert after.parent == before.id
    assert after.matrix()[2].tolist() == [0, 1, *[0] * (len(after.source.tokens) - 2)]
    assert [t.id for t in after.target.tokens[:2]] == [t.id for t in before.target.tokens[:2]]
    assert after.steps[1].logp == pytest.approx(before.steps[1].logp, abs=1e-5)
    assert abs(after.steps[2].top[0].logp - before.steps[2].top[0].logp) > 1e-4
    one = next(c for c in before.counterfactuals if (c.op, c.step, c.position) == ("onehot", 2, 1))
    assert one.top[0].id == after.steps[2].top[0].id
    assert one.top[0].logp == pytest.approx(after.steps[2].top[0].logp, abs=1e-3)
    masked = model.trace(tiny.SENTENCE, target="Le chat dort.", edits="mask-head@enc.1.self:head=2")
    assert masked.weights("enc.1.self")[:, 2].max() == 0
    assert masked.weights("enc.1.self")[:, 1].sum(-1).min() == pytest.approx(1, abs=1e-5)


def test_edits_of_sites_and_steps_that_do_not_exist_are_errors() -> None:
    model = encoder_decoder("marian")
    with pytest.raises(TraceError, match="no such site"):
        model.trace(tiny.SENTENCE, edits="uniform@dec.9.cross")
    with pytest.raises(TraceError, match="out of range"):
        model.trace(tiny.SENTENCE, edits="onehot:position=99")
    with pytest.raises(HeedfulError, match="coverage_penalty"):
        model.trace(tiny.SENTENCE, coverage_penalty=0.5)
    with pytest.raises(HeedfulError, match="reads at most 40"):
        model.trace("cat " * 60)


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "DistilBertForSequenceClassification"])
def test_the_row_that_a_classifier_reads_is_its_alignment(kind: str) -> None:
    model = encoder(kind)
    trace = model.trace(tiny.SENTENCE, detail="full")
    assert trace.target.text in ("bad", "fair", "good")
    assert model(tiny.SENTENCE) == trace.target.text
    assert trace.alignment_site == "pool"
    assert (trace.weights("pool")[0] == trace.weights("enc.2.self")[0]).all()
    assert len(trace.counterfactuals) == 2 * len(trace.source.tokens)
    edited = model.trace(tiny.SENTENCE, edits="onehot:position=2")
    assert edited.matrix()[0].argmax() == 2
    assert edited.weights("enc.2.self")[0, :, 2].min() == 1
    one = next(c for c in trace.counterfactuals if (c.op, c.position) == ("onehot", 2))
    logp = {c.id: c.logp for c in edited.steps[0].top}
    assert all(c.logp == pytest.approx(logp[c.id], abs=1e-4) for c in one.top)
    forced = model.trace(tiny.SENTENCE, target="bad")
    assert forced.target.text == "bad"
    assert forced.steps[0].forced
    with pytest.raises(HeedfulError, match="no such label"):
        model.trace(tiny.SENTENCE, target="worse")


def test_other_heads_and_none() -> None:
    trace = encoder("BertForMaskedLM").trace("The <mask> sleeps on the <mask> chair.")
    assert trace.matrix().shape == (2, len(trace.source.tokens))
    assert len(trace.target.tokens) == 2
    with pytest.raises(HeedfulError, match="fills in <mask>"):
        encoder("BertForMaskedLM").trace(tiny.SENTENCE)
    tags = encoder("BertForTokenClassification").trace(tiny.SENTENCE)
    assert len(tags.target.tokens) == len(tags.source.tokens) - 2
    plain = encoder("BertModel").trace(tiny.SENTENCE)
    assert plain.target.text == "<s>"
    with pytest.raises(ModelError, match="no classification head"):
        encoder("BertModel")(tiny.SENTENCE)


@pytest.mark.parametrize("kind", ENCODER_DECODERS)
def test_a_step_is_the_row_of_a_whole_run(kind: str) -> None:
    adapter = encoder_decoder(kind).loaded.model
    assert isinstance(adapter, Seq2SeqAdapter)
    batch = TextBatch(pad([[5, 6, 7, 8, 9, 3], [7, 8, 3]]), pad([[2, 7, 8, 9, 3], [2, 11, 12, 3]]))
    assert batch.target is not None
    hooks = Hooks(Detail.WEIGHTS)
    with torch.no_grad():
        whole = adapter(batch, hooks)
        state, _ = adapter.initial_state(batch, hooks)
        for t in range(3):
            output = adapter.step(state, batch.target.ids[:, t], hooks)
            state = output.state
            assert torch.allclose(output.logits[:, 0], whole.logits[:, t], atol=1e-5)
            for site, attention in output.attentions.items():
                row, expected = attention.weights, whole.attentions[site].weights
                assert row is not None
                assert expected is not None
                assert torch.allclose(row[:, 0], expected[:, t, :, : row.shape[-1]], atol=1e-6)
        beam = adapter.step(state.expand_to_beam(2), batch.target.ids[:, 3].repeat_interleave(2), hooks)
        assert torch.allclose(beam.logits[0], beam.logits[1], atol=1e-6)


def test_padding_gets_no_weight_and_padded_queries_get_zeros() -> None:
    adapter = encoder_decoder("marian").loaded.model
    assert isinstance(adapter, Seq2SeqAdapter)
    with torch.no_grad():
        _, attentions = adapter.initial_state(TextBatch(pad([[5, 6, 7, 8, 3], [5, 3]])), Hooks(Detail.WEIGHTS))
        _, alone = adapter.initial_state(TextBatch(pad([[5, 3]])), Hooks(Detail.WEIGHTS))
    weights, single = attentions["enc.0.self"].weights, alone["enc.0.self"].weights
    assert weights is not None
    assert single is not None
    assert float(weights[1, :, :, 2:].abs().max()) == 0
    assert torch.allclose(weights[1, :2, :, :2], single[0], atol=1e-6)


def implementation(model: TransformersModel) -> set[Any]:
    configs: list[Any] = [module.config for module in model.model.modules() if hasattr(module, "config")]
    return {config._attn_implementation for config in configs}


def test_the_users_implementation_is_back_also_after_an_error() -> None:
    model = encoder_decoder("marian")
    assert implementation(model) == {"sdpa"}
    hooks_before = [len(module._forward_hooks) for module in model.model.modules()]
    model.trace(tiny.SENTENCE)
    with pytest.raises(TraceError), torch.no_grad():
        model.trace(tiny.SENTENCE, edits="onehot:position=99")
    assert implementation(model) == {"sdpa"}
    assert [len(module._forward_hooks) for module in model.model.modules()] == hooks_before
    model.model.set_attn_implementation("eager")
    model.trace(tiny.SENTENCE)
    assert implementation(model) == {"eager"}


def test_threads_record_the_same_model_at_the_same_time() -> None:
    model = encoder_decoder("marian")
    lines = [" ".join(tiny.SENTENCE.split()[: n % 6 + 1]) for n in range(12)]
    expected = [model.trace(line, what_if=False).matrix() for line in lines]
    found: dict[int, Any] = {}
    implementations: list[Any] = []

    def run(number: int) -> None:
        found[number] = model.trace(lines[number], what_if=False).matrix()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(lines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    implementations += implementation(model)
    assert implementations == ["sdpa"]
    for number, matrix in enumerate(expected):
        assert abs(found[number] - matrix).max() < 1e-6


def test_the_models_own_attentions_are_ours() -> None:
    """transformers returns no weights with its default implementation; with "eager" they are those of the trace."""
    model = encoder("BertModel")
    trace = model.trace(tiny.SENTENCE)
    ids = torch.tensor([[token.id for token in trace.source.tokens]])
    with torch.no_grad():
        assert not any(x is not None for x in model.model(input_ids=ids, output_attentions=True).attentions or ())
        model.model.set_attn_implementation("eager")
        attentions = model.model(input_ids=ids, output_attentions=True).attentions
    for layer, weights in enumerate(attentions):
        assert abs(trace.weights(f"enc.{layer}.self") - weights[0].transpose(0, 1).numpy()).max() < 1e-6


def test_a_model_in_training_mode_is_refused() -> None:
    model = encoder("BertModel")
    model.model.train()
    with pytest.raises(ModelError, match="training mode"):
        model.trace(tiny.SENTENCE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["marian", "BertForSequenceClassification"])
def test_all_six_faithfulness_tests_run(kind: str) -> None:
    model = encoder_decoder(kind) if kind == "marian" else encoder(kind)
    target = "Le chat dort." if kind == "marian" else "good"
    tests = model.measure([("The cat sleeps.", target)], tests="all", steps=1)["faithfulness"]
    names = {"correlation", "permutation", "uniform", "counterfactual", "erasure", "input_erasure"}
    assert names <= set(tests)
    assert tests["counterfactual"]["decisions"] == tests["decisions"] == 1
