"""Guided attention: its loss against plain loops, its links from every source, and training with it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import small_models
from command_line import complaint, here, stopped
from heedful.attention import AttentionOutput, Detail, Hooks
from heedful.config import DataConfig, Recipe, TokenizerConfig
from heedful.config.guided import GuidedConfig
from heedful.data.batch import Guide, TextBatch
from heedful.data.guides import ExampleWords, attach_links, make_guide, parse_rationale, read_link_column
from heedful.data.pairs import PairFiles, TextPair
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError, TrainingError
from heedful.models import Seq2Seq
from heedful.tasks.generation_loss import generation_loss, split_text_batch
from heedful.tasks.guided import GuideMaker, guided_loss

STEP_BY_STEP = "heedful.layers.recurrent_decoder.RecurrentDecoder._fused_spec", lambda *_: None


def plain_loss(weights: Tensor, guide: Tensor, heads: list[int], loss: str) -> float:
    """The loss of each target token, one number at a time."""
    total = 0.0
    for row in range(weights.shape[0]):
        for step in range(weights.shape[1]):
            a = [sum(float(weights[row, step, h, i]) for h in heads) / len(heads) for i in range(weights.shape[3])]
            g = guide[row, step].tolist()
            if loss == "squared":
                total += sum((x - y) ** 2 for x, y in zip(a, g, strict=True)) if any(g) else 0.0
            else:
                total -= sum(y * math.log(x + 1e-6) for x, y in zip(a, g, strict=True))
    return total


@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
@pytest.mark.parametrize("heads", [(), (1,), (0, 2)])
def test_the_loss_equals_plain_loops(heads: tuple[int, ...], loss: Any) -> None:
    torch.manual_seed(1)
    weights = torch.randn(2, 3, 3, 5, dtype=torch.float64).softmax(dim=-1)
    target = (torch.rand(2, 3, 5) < 0.4).double()
    target[0, 1] = 0
    target = target / target.sum(dim=-1, keepdim=True).clamp_min(1)
    config = GuidedConfig(links="gold", heads=heads, loss=loss)
    found = guided_loss(
        {"cross": AttentionOutput(weights=weights.requires_grad_())}, frozenset({"cross"}), Guide(target, 0.5), config
    )
    expected = plain_loss(weights.detach(), target, list(heads) or [0, 1, 2], loss)
    assert found.item() == pytest.approx(0.5 * expected)


def test_links_between_words_become_weights_of_their_subwords() -> None:
    lines = ["the houses burned", "les maisons brûlaient"]
    tokenizer = Tokenizer.train(["the house the less"], TokenizerConfig(kind="bpe", vocab_size=300))
    ids = [tokenizer.encode(line) for line in lines]
    words = ExampleWords(*(tokenizer.word_ids(i) for i in ids))
    assert len(ids[0]) > 4 < len(ids[1])
    guide = make_guide([np.array([[0, 0], [1, 1], [2, 1], [7, 2], [0, 9]])], [words], 1.0).target[0]
    linked = {0: {0}, 1: {1, 2}}
    for step, target_word in enumerate(words.target):
        keys = [i for i, word in enumerate(words.source) if word in linked.get(target_word, set())]
        expected = [1 / len(keys) if i in keys else 0.0 for i in range(len(words.source))]
        assert guide[step].tolist() == pytest.approx(expected)


def guided_recipe(model: Any, **guided: Any) -> Recipe:
    recipe = Recipe.from_dict({"data.world.name": "phrases"})
    training = recipe.training.model_copy(update={"guided": GuidedConfig(links="gold", **guided)})
    return recipe.model_copy(update={"model": model.config, "training": training})


def guided_batch(model: Seq2Seq) -> TextBatch:
    batch = small_models.small_batch()
    assert batch.target is not None
    keep = batch.target.keep[:, 1:, None] & batch.source.keep[:, None]
    target = torch.rand(keep.shape) * keep
    target[:, 1] = 0
    return batch._replace(guide=Guide(target / target.sum(dim=-1, keepdim=True).clamp_min(1e-9), 0.7))


def gradients(model: Seq2Seq, batch: TextBatch, recipe: Recipe) -> dict[str, Tensor]:
    model.zero_grad()
    torch.manual_seed(3)
    torch.autograd.backward(generation_loss(model, batch, recipe).total)
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


ORDERS: list[dict[str, Any]] = [
    {"step_order": "attend-update-generate", "read_out": "deep"},
    {"step_order": "update-attend-generate", "input_feeding": "attentional", "read_out": "tanh"},
    {"step_order": "conditional", "read_out": "deep"},
]


@pytest.mark.parametrize("changes", ORDERS, ids=["attend first", "feed", "conditional"])
@pytest.mark.parametrize("score", ["additive", "general"])
def test_fused_steps_give_the_gradients_of_the_step_loop(changes: dict[str, Any], score: str) -> None:
    settings = {f"decoder__{key}": value for key, value in changes.items()}
    config = small_models.small_preset("bigru-gru", **settings, attention__score=score)
    model = small_models.build_model(config).float().train()
    recipe, batch = guided_recipe(model), guided_batch(model)
    fused = gradients(model, batch, recipe)
    unguided = gradients(model, batch._replace(guide=None), recipe)
    with patch(*STEP_BY_STEP):
        plain = gradients(model, batch, recipe)
    for name, gradient in plain.items():
        torch.testing.assert_close(fused[name], gradient, rtol=1e-3, atol=1e-4, msg=name)
    assert any(not torch.allclose(unguided[name], plain[name], atol=1e-3) for name in plain if "attention" in name)


GUIDABLE = [
    ("rnnsearch", {}),
    ("stacked-lstm", {}),
    ("luong-local", {}),
    ("bigru-gru", {"attention__coverage": True}),
    ("bigru-gru", {"attention__placement": "local-m"}),
    ("bigru-gru", {"attention__score": "location", "attention__normalizer": "sparsemax"}),
    ("bigru-gru", {"attention__placement": "hard"}),
    ("bigru-gru", {"attention__score": "scaled-dot", "attention__heads": 3}),
    ("conv-conv", {}),
    ("abs", {}),
    ("transformer", {}),
]


@pytest.mark.parametrize(("preset", "changes"), GUIDABLE)
@pytest.mark.parametrize("loss", ["cross-entropy", "squared"])
def test_every_score_and_placement_learns_to_attend_where_it_is_guided(
    preset: str, changes: dict[str, Any], loss: str
) -> None:
    torch.manual_seed(1)
    model = small_models.build_model(small_models.small_preset(preset, **changes)).float().train()
    recipe, batch = guided_recipe(model, loss=loss), guided_batch(model)
    before = gradients(model, batch._replace(guide=None), recipe)
    after = gradients(model, batch, recipe)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    assert all(gradient.isfinite().all() for gradient in after.values())


def test_parts_of_a_batch_have_the_loss_of_the_whole() -> None:
    model = small_models.build_model(small_models.small_preset("rnnsearch", dropout=0.0)).train()
    recipe, batch = guided_recipe(model), guided_batch(model)
    assert batch.target is not None
    batch = TextBatch(twice(batch.source), twice(batch.target), repeat(batch.guide))
    parts = split_text_batch(batch, 2, recipe)
    assert len(parts) == 2
    total = sum(generation_loss(model, part, recipe).total.item() for part in parts)
    assert total == pytest.approx(generation_loss(model, batch, recipe).total.item())


def twice(part: Any) -> Any:
    return type(part)(*(torch.cat([tensor, tensor.flip(0)]) for tensor in part))


def repeat(guide: Guide | None) -> Guide:
    assert guide is not None
    return guide._replace(target=torch.cat([guide.target, guide.target.flip(0)]))


def test_full_context_sees_words_that_are_written_later_and_nothing_else_does() -> None:
    model = small_models.build_model(small_models.small_preset("transformer", dropout=0.0)).float().train()
    recipe, batch = guided_recipe(model, full_context=True), guided_batch(model)
    assert batch.target is not None
    site = str(model.alignment_site)

    def first_step(ids: Tensor, full: bool) -> Tensor:
        changed = batch._replace(target=batch.target._replace(ids=ids))  # type: ignore[union-attr]
        hooks = Hooks(Detail.WEIGHTS)
        attentions = model.full_context_attentions(changed, hooks) if full else model(changed, hooks).attentions
        weights = attentions[site].weights
        assert weights is not None
        return weights[:, 0].detach()

    other = batch.target.ids.clone()
    other[:, 2] = 4 + (other[:, 2] - 3) % (small_models.VOCABULARY - 4)
    assert torch.equal(first_step(batch.target.ids, False), first_step(other, False))
    assert not torch.equal(first_step(batch.target.ids, True), first_step(other, True))
    loss = generation_loss(model, batch, recipe).total.item()
    assert loss != pytest.approx(generation_loss(model, batch, guided_recipe(model)).total.item())


def test_sites_without_links_and_unknown_ones_are_errors() -> None:
    model = small_models.build_model(small_models.small_preset("transformer")).train()
    batch = guided_batch(model)
    with pytest.raises(TrainingError, match=r'sites = "dec.0.self": self-attention has no links'):
        generation_loss(model, batch, guided_recipe(model, sites=("dec.0.self",)))
    with pytest.raises(TrainingError, match=r'sites = "dec.7.cross": no such site; did you mean "dec.2.cross"'):
        generation_loss(model, batch, guided_recipe(model, sites=("dec.7.cross",)))


def test_the_weight_of_the_loss_falls_to_0() -> None:
    maker = object.__new__(GuideMaker)
    maker.config = GuidedConfig(links="gold", weight=2.0, decay_steps=10)
    maker.steps_per_epoch, maker.batches_per_step = 4, 2
    assert [maker.weight(1, n) for n in (0, 1, 2, 7)] == [2.0, 2.0, 1.8, 1.4]
    assert [maker.weight(3, 0), maker.weight(3, 4), maker.weight(9, 0)] == [pytest.approx(0.4), 0.0, 0.0]


# Training through the command line

RECIPE = """
[data.world]
train = 300
valid = 10
test = 20
max_words = 5
[model]
preset = "rnnsearch"
embedding = 16
dropout = 0.1
[model.encoder]
hidden = 8
[model.decoder]
hidden = 16
[training]
epochs = 2
batch_tokens = 100
learning_rate = 0.02
threads = 1
"""
WITHOUT_WORLD = RECIPE.partition("[model]")[2]


def train(recipe: Path, out: Path, *overrides: str) -> str:
    """Train, and return what was logged."""
    done = here("train", recipe, *overrides, "--out", out)
    assert done.returncode == 0, done.stderr
    return done.stderr


def gold_weight(model: Path) -> float:
    report = json.loads(here("measure", "-m", model, "--test", "none", "--json").stdout)
    return float(report["gold"]["gold_weight"])


def test_guided_training_attends_to_gold_words_and_resumes_with_the_same_bits(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(RECIPE)
    train(recipe, tmp_path / "plain")
    guided = ("training.guided.links=gold", "training.guided.weight=1", "training.guided.decay_steps=1_000")
    assert "300 of 300 training examples have links" in train(recipe, tmp_path / "guided", *guided)
    assert gold_weight(tmp_path / "guided") > gold_weight(tmp_path / "plain") + 0.1
    stopped("train", recipe, *guided, "--out", tmp_path / "again")
    train(recipe, tmp_path / "again", *guided)
    files = [load_file(tmp_path / name / "model.safetensors") for name in ("guided", "again")]
    assert all(torch.equal(files[0][name], files[1][name]) for name in files[0])


PAIRS = [("a b c", "x y z"), ("b a c", "y x z"), ("c b a", "z y x"), ("a c b", "x z y")]
LINKS = ["0-0 1-1 2-2"] * 4


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A table with a header and a column of links, a file of links, and a recipe for both."""
    rows = [f"{source}\t{target}\t{links}\n" for (source, target), links in zip(PAIRS, LINKS, strict=True)]
    (tmp_path / "pairs.tsv").write_text("source\ttarget\tlinks\n" + "".join(rows))
    (tmp_path / "links.txt").write_text("".join(f"{line}\n" for line in LINKS))
    data = '[data]\ntrain = ["pairs.tsv"]\nvalid = ["pairs.tsv"]\ncolumns = ["source", "target"]\n[model]'
    (tmp_path / "r.toml").write_text(data + WITHOUT_WORLD)
    return tmp_path / "r.toml"


@pytest.mark.parametrize("source", ["links=links.txt", "column=links", "links=align"])
def test_links_of_a_file_a_column_and_the_aligner_guide_alike(source: str, pairs: Path, tmp_path: Path) -> None:
    log = train(pairs, tmp_path / "m", f"training.guided.{source}", "training.epochs=1")
    assert "4 of 4 training examples have links" in log
    train(pairs, tmp_path / "gold", "training.guided.links=links.txt", "training.epochs=1")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == (tmp_path / "gold" / "model.safetensors").read_bytes()


def test_links_belong_to_rows_of_the_file_whatever_part_of_it_is_trained_on(pairs: Path) -> None:
    (pairs.parent / "extra.tsv").write_text("source\ttarget\na\tx\n")
    data = DataConfig(train=("pairs.tsv",), split_valid=0.7, columns=("source", "target"))
    train = PairFiles(data.train, pairs.parent, data, "train", PairFiles(("extra.tsv",), pairs.parent, data))
    lines = [f"{n}-{n}" for n in range(4)]
    texts = [" ".join(pair) for pair in PAIRS]
    linked = list(attach_links(train.numbered_pairs(), lines, "links", rationales=False))
    assert 0 < len(linked) - 1 < 4
    for pair in linked[:-1]:
        row = texts.index(f"{pair.source} {pair.target}")
        assert pair.links == ((row, row),)
    assert linked[-1] == TextPair("a", "x", None)


@pytest.mark.parametrize("line", ["x", "-1", "²", "1000001", "1" * 5_000])
def test_a_rationale_is_numbers_of_words(line: str) -> None:
    with pytest.raises(DataError, match="expected numbers of words from 0"):
        parse_rationale(f"0 {line}")


def test_a_number_of_a_column_has_few_digits(pairs: Path) -> None:
    with pytest.raises(DataError, match="no such name"):
        read_link_column(pairs, "1" * 5_000, DataConfig(train=("pairs.tsv",), split_valid=0.5))


def test_rationales_guide_the_pooling_attention(tmp_path: Path) -> None:
    texts = [(f"a{n % 7} b{n % 5} {word} c{n % 3}", word) for n in range(80) for word in ("good", "bad")]
    (tmp_path / "texts.tsv").write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in texts))
    (tmp_path / "words.txt").write_text("0\n" * len(texts))  # as nobody would attend by himself
    data = '[task]\nkind = "classify"\n[data]\ntrain = ["texts.tsv"]\nvalid = ["texts.tsv"]\n'
    model = '[model]\npreset = "classify-learned"\nembedding = 8\n[model.encoder]\nhidden = 4\n'
    (tmp_path / "r.toml").write_text(f"{data}{model}[training]\nepochs = 4\nlearning_rate = 0.05\nthreads = 1\n")
    train(tmp_path / "r.toml", tmp_path / "m", "training.guided.links=words.txt", "training.guided.weight=1")
    words = ("measure", "-m", tmp_path / "m", "--data", tmp_path / "texts.tsv", "--gold", tmp_path / "words.txt")
    report = json.loads(here(*words, "--test", "none", "--json").stdout)
    assert report["gold"]["gold_weight"] > 0.7
    assert report["gold"]["gold_weight_uniform"] == pytest.approx(0.25)


WRONG = [
    (("training.guided.weight=2",), "set either links"),
    (("training.guided.links=gold", "training.guided.column=x"), "set either links"),
    (("training.guided.links=gold",), 'links = "gold" needs a generated world'),
    (("training.guided.links=nothing.txt",), "nothing.txt does not exist"),
    (("training.guided.column=lnks",), 'training.guided.column = "lnks": no such column; did you mean "links"?'),
    (("training.guided.links=short.txt",), "short.txt: has 1 lines, but the training data has at least 2 rows"),
    (("training.guided.links=wrong.txt",), 'wrong.txt, line 2: "0+0": expected a link such as 3-4'),
    (("training.guided.links=empty.txt",), "none of the training examples has links"),
    (("training.guided.links=align", "model.attention.placement=uniform"), "has the same weights whatever is learned"),
    (("training.guided.links=align", "training.guided.heads=[1]"), "heads = [1]: the attention has 1, from 0"),
    (("training.guided.links=align", "training.guided.full_context=true"), "full_context = true needs"),
    (("training.guided.links=align", "model.preset=seq2seq"), "this model has no attention that could be guided"),
    (("training.guided.links=align", "training.guided.losss=squared"), 'did you mean "loss"?'),
]


@pytest.mark.parametrize(("overrides", "message"), WRONG)
def test_mistakes_are_explained(overrides: tuple[str, ...], message: str, pairs: Path, tmp_path: Path) -> None:
    for name, text in {"short": "0-0\n", "wrong": "0-0\n0+0\n0-0\n0-0\n", "empty": "\n\n\n\n"}.items():
        (tmp_path / f"{name}.txt").write_text(text)
    assert message in complaint("train", pairs, *overrides, "--out", tmp_path / "m")
    assert not (tmp_path / "m" / "model.json").exists()


def test_check_explains_the_settings(pairs: Path) -> None:
    text = here("check", pairs, "training.guided.links=align").stdout
    assert "[training.guided]" in text
    assert re.search(r'loss = "cross-entropy" +# loss between .*one of: cross-entropy, squared', text)
