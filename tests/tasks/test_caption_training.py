"""Training of captioners: the terms of the loss, a backbone that is trained too, unreadable images."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import toy_backbones
from command_line import complaint, here
from heedful.attention import AttentionOutput
from heedful.config import load_recipe
from heedful.data.batch import Padded, TextBatch
from heedful.data.images.files import ImageFile, resize_square
from heedful.data.tokenizer import UNK
from heedful.tasks.caption.assets import CaptionAssets, LoadedCaptioner, all_regions
from heedful.tasks.caption.predict import load_backbone, open_features
from heedful.tasks.caption.task import TASK
from heedful.tasks.caption.tuned_training import PixelBatch, TunedCaptionTraining
from heedful.tasks.generation_loss import doubly_stochastic_penalty, generation_loss
from heedful.tasks.model_folder import load_model
from heedful.training.types import Callbacks
from small_captioners import build_captioner, make_batch, save_scene

pytestmark = pytest.mark.usefixtures("as_users_run")
WORLD = '[data.world]\nname = "scenes"\ntrain = 24\nvalid = 6\ntest = 6\npixels = 48\n'
TRAINABLE = toy_backbones.caption_recipe(n_images=6).replace("toy-patches", "toy-trainable")


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a feature cache of this module's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HEEDFUL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def test_the_doubly_stochastic_penalty_equals_loops(tmp_path: Path) -> None:
    torch.manual_seed(1)
    weights = torch.rand(2, 3, 1, 4).softmax(dim=-1)  # caption, word, head, region
    real = torch.tensor([[True, True, False], [True, True, True]])
    expected = 0.0
    for caption in range(2):
        for region in range(4):
            mass = sum(float(weights[caption, t, 0, region]) for t in range(3) if real[caption, t])
            expected += (1 - mass) ** 2
    actual = float(doubly_stochastic_penalty(AttentionOutput(weights=weights), real))
    assert actual == pytest.approx(expected, rel=1e-6)
    model, recipe = build_captioner("caption-soft", tmp_path)
    model.train()
    training = recipe.training.model_copy(update={"doubly_stochastic": 2.0})
    penalized = recipe.model_copy(update={"training": training})
    batch = make_batch()
    assert generation_loss(model, batch, penalized).total > generation_loss(model, batch, recipe).total


def test_unknown_words_can_be_left_out_of_the_loss(tmp_path: Path) -> None:
    model, recipe = build_captioner("caption-soft", tmp_path)
    batch = make_batch()
    assert batch.target is not None
    ids = batch.target.ids.clone()
    ids[0, 2] = UNK
    batch = TextBatch(batch.source, Padded(ids, batch.target.keep))
    training = recipe.training.model_copy(update={"train_unk": False})
    every, known = (
        generation_loss(model, batch, each) for each in (recipe, recipe.model_copy(update={"training": training}))
    )
    with torch.no_grad():
        logp = model(batch).logits.log_softmax(dim=-1)
    assert known.tokens == every.tokens - 1
    assert float((every.total - known.total).detach()) == pytest.approx(-float(logp[0, 1, UNK]), abs=1e-4)


def test_a_backbone_is_trained_with_its_captioner(tmp_path: Path) -> None:
    recipe, image = tmp_path / "recipe.toml", save_scene(tmp_path / "p.png")
    recipe.write_text(TRAINABLE)
    assert here("train", recipe, "--out", tmp_path / "frozen").returncode == 0
    tune = ("data.images.tune_backbone=true", "training.init_from=frozen", "training.epochs=2")
    done = here("train", recipe, *tune, "--out", tmp_path / "tuned")
    assert "initialized from frozen" in done.stderr, done.stderr
    before = toy_backbones.TrainablePatches().net.state_dict()
    after = load_file(tmp_path / "tuned" / "model.safetensors")
    assert (before["0.weight"] - after["backbone.net.0.weight"]).abs().max() > 1e-3
    assert torch.equal(before["1.running_mean"], after["backbone.net.1.running_mean"])
    loaded: LoadedCaptioner = load_model(tmp_path / "tuned")
    pixels = resize_square(ImageFile(image).open(), toy_backbones.SIDE)[None]
    assert not torch.allclose(load_backbone(loaded)(pixels), toy_backbones.TrainablePatches()(pixels))
    for command in (("caption", image), ("evaluate",)):
        assert here(*command, "-m", tmp_path / "tuned").returncode == 0
    frozen, tuned = (open_features(load_model(tmp_path / name)) for name in ("frozen", "tuned"))
    assert frozen.key != tuned.key, "features of another backbone are not used"
    for features in (frozen, tuned):
        features.extract([ImageFile(image)])
    assert not torch.equal(frozen.load([ImageFile(image)]), tuned.load([ImageFile(image)]))
    both = ("evaluate", "-m", tmp_path / "frozen", "-m", tmp_path / "tuned")
    assert "have different backbones and cannot form an ensemble" in complaint(*both)
    train = ("train", recipe, "--out", tmp_path / "x")
    error = complaint(*train, tune[0], "data.images.backbone=toy-patches")
    assert "toy-patches cannot be trained" in error
    assert "frozen has a different shape" in complaint(*train, *tune, "model.decoder.hidden=10")


def test_gradients_flow_into_the_backbone(tmp_path: Path) -> None:
    """The loss of pixels through the backbone is that of features computed before."""
    (tmp_path / "r.toml").write_text(TRAINABLE.replace("[data.images]", "[data.images]\ntune_backbone = true"))
    recipe = load_recipe(tmp_path / "r.toml").recipe
    setup = TASK.setup_training(recipe, tmp_path, None, Callbacks())
    training = setup.task
    assert isinstance(training, TunedCaptionTraining)
    assert isinstance(setup.assets, CaptionAssets)
    model = TASK.build(recipe, setup.assets)
    batch = next(training.batches(1))
    assert isinstance(batch, PixelBatch)
    loss = training.loss(model, batch)
    features = toy_backbones.TrainablePatches().feature_maps(batch.pixels)[batch.image_of]
    expected = generation_loss(model, TextBatch(all_regions(features), batch.target), recipe)
    torch.testing.assert_close(loss.total, expected.total)
    loss.total.backward()
    gradient = model.get_parameter("backbone.net.0.weight").grad
    assert gradient is not None
    assert float(gradient.abs().sum()) > 0
    halves = [training.loss(model, batch.rows(start, 2)).total for start in (0, 1)]
    assert sum(float(half.detach()) for half in halves) == pytest.approx(float(loss.total.detach()), rel=1e-5)


def test_unreadable_training_images_are_refused_or_skipped(tmp_path: Path) -> None:
    lines = []
    for number in range(12):
        save_scene(tmp_path / f"{number}.png", number)
        lines += [f"{number}.png#{k}\ta thing is here\n" for k in range(2)]
    (tmp_path / "3.png").write_bytes(b"no image")
    (tmp_path / "c.txt").write_text("".join(lines))
    text = toy_backbones.caption_recipe().replace(WORLD, "")
    text = text.replace("[data.images]", '[data.images]\nfolder = "."\ncaptions = "c.txt"')
    (tmp_path / "r.toml").write_text(text)
    words = ("train", tmp_path / "r.toml", "data.split_valid=0.3", "--out", tmp_path / "m")
    error = complaint(*words)
    assert "images cannot be used" in error
    assert "3.png: not an image in a known format" in error
    assert not (tmp_path / "m").exists()
    assert here(*words, "data.on_error=skip").returncode == 0
