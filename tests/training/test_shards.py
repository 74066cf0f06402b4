"""A batch in parts, side by side: the whole's gradient, and the same bits every time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.config import WorldConfig
from heedful.data.batch import TextBatch
from heedful.data.readers import world_pairs
from heedful.models import Seq2Seq, build
from heedful.tasks.text import TextTask, learn
from heedful.training.loop import train
from heedful.training.shards import Shards
from presets import recipe

WORLD = WorldConfig(train=300, valid=10, test=1, max_words=6)


def made(name: str = "cgru", dropout: float = 0.0, **training: object) -> tuple[TextTask, Seq2Seq]:
    plan = recipe(name, WORLD, 16, **{"batch_tokens": 200, "threads": 2, **training})
    plan = plan.model_copy(update={"model": plan.model.model_copy(update={"dropout": dropout})})
    pairs = world_pairs(WORLD)
    task = TextTask(plan, pairs, learn(pairs["train"], plan))
    torch.manual_seed(1)
    return task, build(plan.model, len(task.words.source), len(task.words.target)).train()


def first(task: TextTask) -> TextBatch:
    return next(iter(task.batches(1)))


def slopes(model: Seq2Seq) -> dict[str, Tensor]:
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


@pytest.mark.parametrize("name", ["cgru", "luong", "transformer", "seq2seq"])
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_give_the_gradient_of_the_whole(name: str, threads: int) -> None:
    task, model = made(name)
    batch = first(task)
    whole = task.loss(model, batch)
    (whole.total * 0.01).backward()  # type: ignore[no-untyped-call]
    wanted = slopes(model)
    model.zero_grad()
    shards = Shards(task, model, threads)
    parts = shards.divide(batch)
    assert [part.size for part in parts] == [-(-batch.size // 2), batch.size // 2]
    found = shards.backward(parts, 0.01, "a batch")
    assert found.tokens == whole.tokens
    torch.testing.assert_close(found.total, whole.total.detach(), rtol=1e-5, atol=1e-4)
    assert slopes(model).keys() == wanted.keys()
    for key, slope in slopes(model).items():
        torch.testing.assert_close(slope, wanted[key], rtol=1e-4, atol=1e-6, msg=key)
    shards.backward(parts, 0.01, "a batch")  # batches that make one update are added
    for key, slope in slopes(model).items():
        torch.testing.assert_close(slope, 2 * wanted[key], rtol=1e-4, atol=2e-6, msg=key)


def test_the_same_parts_give_the_same_bits_and_other_batches_drop_others() -> None:
    task, model = made(dropout=0.3)
    shards = Shards(task, model, 2)
    parts = shards.divide(first(task))
    found = []
    for what in ("one", "one", "other"):
        model.zero_grad()
        shards.backward(parts, 1.0, what)
        found.append(slopes(model))
    assert all(torch.equal(found[0][key], found[1][key]) for key in found[0])
    assert not all(torch.equal(found[0][key], found[2][key]) for key in found[0])


def test_what_draws_more_than_dropout_is_not_divided() -> None:
    sampled, _ = made(sampling=0.5)
    assert len(sampled.parts(first(sampled), 2)) == 1
    task, _ = made()
    few = first(task).rows(0, 20)
    assert len(task.parts(few, 2)) == 1


def test_two_trainings_in_two_threads_end_with_the_same_bits(tmp_path: Path) -> None:
    ended = []
    for number in range(2):
        task, model = made(dropout=0.3, epochs=2)
        train(task, model, task.recipe.training, tmp_path / str(number))
        ended.append([w.detach().clone() for w in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ended, strict=True))


def test_a_mistake_in_a_part_is_heard_and_threads_are_as_before() -> None:
    task, model = made()
    shards = Shards(task, model, 2)
    parts = [first(task), TextBatch(first(task).source)]  # nothing to write
    usual = torch.get_num_threads()
    with pytest.raises(AssertionError):
        shards.backward(parts, 1.0, "a batch")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(usual)
