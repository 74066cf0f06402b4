"""A batch split over two threads: the gradient of the full batch, and the same bits every time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from heedful.config import WorldConfig
from heedful.data.batch import TextBatch
from heedful.data.pairs import world_pairs
from heedful.models import Seq2Seq, build_seq2seq
from heedful.tasks.seq2seq.assets import Seq2SeqAssets
from heedful.tasks.seq2seq.training import Seq2SeqTraining
from heedful.training.loop import train
from heedful.training.threaded_backward import ThreadedBackward
from small_presets import small_recipe

WORLD = WorldConfig(train=300, valid=10, test=1, max_words=6)


def build_task_and_model(
    preset: str = "cgru", dropout: float = 0.0, **training: object
) -> tuple[Seq2SeqTraining, Seq2Seq]:
    recipe = small_recipe(preset, WORLD, 16, **{"batch_tokens": 200, "threads": 2, **training})
    recipe = recipe.model_copy(update={"model": recipe.model.model_copy(update={"dropout": dropout})})
    pairs = world_pairs(WORLD)
    task = Seq2SeqTraining(recipe, pairs, Seq2SeqAssets.train(pairs["train"], recipe))
    torch.manual_seed(1)
    return task, build_seq2seq(recipe.model, len(task.assets.source), len(task.assets.target)).train()


def first_batch(task: Seq2SeqTraining) -> TextBatch:
    return next(iter(task.batches(1)))


def gradients(model: Seq2Seq) -> dict[str, Tensor]:
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


@pytest.mark.parametrize("preset", ["cgru", "luong", "transformer", "seq2seq"])
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_give_the_gradient_of_the_full_batch(preset: str, threads: int) -> None:
    task, model = build_task_and_model(preset)
    batch = first_batch(task)
    full = task.loss(model, batch)
    (full.total * 0.01).backward()  # type: ignore[no-untyped-call]
    expected = gradients(model)
    model.zero_grad()
    threaded = ThreadedBackward(task, model, threads)
    parts = threaded.split(batch)
    assert [part.size for part in parts] == [-(-batch.size // 2), batch.size // 2]
    loss = threaded.backward(parts, 0.01, "a batch")
    assert loss.tokens == full.tokens
    torch.testing.assert_close(loss.total, full.total.detach(), rtol=1e-5, atol=1e-4)
    assert gradients(model).keys() == expected.keys()
    for name, grad in gradients(model).items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-6, msg=name)
    threaded.backward(parts, 0.01, "a batch")  # batches of the same update add up
    for name, grad in gradients(model).items():
        torch.testing.assert_close(grad, 2 * expected[name], rtol=1e-4, atol=2e-6, msg=name)


def test_the_same_batch_gives_the_same_bits_and_another_batch_other_dropout_masks() -> None:
    task, model = build_task_and_model(dropout=0.3)
    threaded = ThreadedBackward(task, model, 2)
    parts = threaded.split(first_batch(task))
    results = []
    for seed_key in ("first", "first", "second"):
        model.zero_grad()
        threaded.backward(parts, 1.0, seed_key)
        results.append(gradients(model))
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])
    assert not all(torch.equal(results[0][name], results[2][name]) for name in results[0])


def test_batches_that_draw_more_than_dropout_and_small_batches_are_not_split() -> None:
    sampled, _ = build_task_and_model(scheduled_sampling=0.5)
    assert len(sampled.split_batch(first_batch(sampled), 2)) == 1
    task, _ = build_task_and_model()
    small = first_batch(task).rows(0, 20)
    assert len(task.split_batch(small, 2)) == 1


def test_two_threaded_trainings_end_with_the_same_bits(tmp_path: Path) -> None:
    weights = []
    for number in range(2):
        task, model = build_task_and_model(dropout=0.3, epochs=2)
        train(task, model, task.recipe.training, tmp_path / str(number))
        weights.append([w.detach().clone() for w in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


def test_an_error_in_a_part_is_raised_and_the_thread_count_stays() -> None:
    task, model = build_task_and_model()
    threaded = ThreadedBackward(task, model, 2)
    parts = [first_batch(task), TextBatch(first_batch(task).source)]  # the second has no target
    before = torch.get_num_threads()
    with pytest.raises(AssertionError):
        threaded.backward(parts, 1.0, "a batch")
    assert torch.get_num_threads() == before
