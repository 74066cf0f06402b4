"""Wrong recipes: every problem at once, with file, section, setting and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.sections import WORLD, write
from heedful.config import decoding_options, load_recipe
from heedful.errors import ConfigError, Problem, nearest


def message(path: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, overrides)
    return str(caught.value)


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[data.world]\nnmae = "phrases"\n[model.attention]\nscroe = "dot"\nscore = "aditive"\n'
        'hidden = "many"\nwindow = 0\n[modle]\n',
    )
    text = message(path, "training.learning_rate=fast", "nonsense", "model.attention.placement=lokal-p")
    assert f"{path} [model.attention] cannot be used:" in text
    assert '  - scroe: no such setting; did you mean "score"? known: score, normalizer,' in text
    assert '  - score = "aditive": no such score; did you mean "additive"? known: additive, concat,' in text
    assert '  - hidden = "many": expected a whole number' in text
    assert "  - window = 0: must be more than 0" in text
    assert '  - nmae: no such setting; did you mean "name"?' in text
    assert '  - modle: no such section; did you mean "model"?' in text
    override = 'override "training.learning_rate=fast" [training] cannot be used:'
    assert f'{override}\n  - learning_rate = "fast": expected a number' in text
    assert 'override "nonsense" cannot be used:\n  - expected section.key=value' in text
    assert 'override "model.attention.placement=lokal-p" [model.attention]' in text
    assert 'did you mean "local-p"?' in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "data: is required"),
        ("[data]\n", "train, valid: name the files, or use a world (section [data.world])"),
        ('[data]\ntrain = ["a.tsv"]\nvalid = ["b.tsv"]\n[data.world]\n', "use files or a world, not both"),
        ('[data]\ntrain = ["a", "b", "c"]\n', "train = ['a', 'b', 'c']: at most 2 can be given"),
        (
            '[data]\ntrain = ["a"]\nsplit_valid = 0.6\nsplit_test = 0.5\n',
            "split_valid + split_test: must be less than 1",
        ),
        (
            '[data]\ntrain = ["a"]\nsplit_valid = 0.5\nsplit_test = 0.5\n',
            "must be less than 1, or no training data is left",
        ),
        ('[data]\nextra_train = ["a"]\n[data.world]\n', "extra_train: needs train"),
        ('[data]\ntrain = ["a"]\nsplit_valid = 0.1\nwhere = ["vie"]\n', 'where = ["vie"]: expected "column=value"'),
        (WORLD + "[data]\nsplit_valid = 0.1\n", "split_valid = 0.1: there is valid data already"),
        (WORLD + '[model.attention]\nscore = "dot"\ncoverage = true\n', 'coverage = true: needs score = "additive"'),
        (WORLD + '[model.attention]\nscore = "dot"\nbias = true\n', 'bias = true: needs score = "additive", not "dot"'),
        (
            WORLD + '[model.attention]\nplacement = "hard"\nnormalizer = "smoothed-softmax"\n',
            "samples from weights that sum to 1; use another normalizer",
        ),
        (
            WORLD + '[model.attention]\nscore = "dot"\n[model.decoder]\nhidden = 100\n',
            "the decoder's queries have 100 and the encoder's keys 256; use score = \"general\" for different widths",
        ),
        (WORLD + "[model.attention]\nheads = 3\n", "does not divide the query's width 128"),
        (WORLD + '[model.encoder]\nkind = "conv"\nkernel_size = 4\n', "encoder.kernel_size = 4: must be odd"),
        (WORLD + "[model]\ndropout = 1.0\n", "dropout = 1.0: must be less than 1.0"),
        (WORLD + "[model.attention]\ncoverage = 1\n", "coverage = 1: expected true or false"),
        (WORLD + "[model.attention]\nhidden = 1.5\n", "hidden = 1.5: expected a whole number"),
        (WORLD + "[model]\nencoder = 3\n", "encoder = 3: expected a section"),
        (WORLD + '[model]\npreset = "bigru"\n', 'preset = "bigru": no such preset; did you mean "bigru-gru"?'),
        (WORLD + '[task]\nkind = "trnslate"\n', 'kind = "trnslate": no such kind; did you mean "translate"? known:'),
        (WORLD + "[training]\nema = 0.9\naverage_last = 2\n", "ema, average_last: both average the weights; use one"),
        (WORLD + "[training]\nlearning_rate = inf\n", "learning_rate = inf: expected a finite number"),
        (WORLD + "[training]\nmetric = 3\n", "metric = 3: expected text in quotes"),
        (WORLD + "[model]\ncopying = true\n", "needs tokenizer.shared = true, one vocabulary for both sides"),
        (WORLD + '[training]\nrdrop = 1.0\n[model.attention]\nplacement = "hard"\n', "training.rdrop = 1: cannot be"),
        (
            WORLD + "[training]\nrdrop = 0.5\n[model]\ncopying = true\n[tokenizer]\nshared = true\n",
            "training.rdrop = 0.5: cannot be combined with model.copying = true",
        ),
        (
            '[data.world]\nname = "tastes"\ntrain = 10\nvalid = 6\ntest = 5\n',
            "valid = 6, test = 5: each user has one item held out",
        ),
        (WORLD + "[tokenizer]\nvocab_size = 4\n", "vocab_size = 4: must be at least 5 (4 are special tokens)"),
        ("[data\n", "not valid TOML"),
        ("[data]\ntrain = 3\n", "train = 3: expected a list"),
    ],
)
def test_a_wrong_recipe_is_explained(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in message(write(tmp_path, text))


def test_conflicts_are_reported_together(tmp_path: Path) -> None:
    text = message(
        write(
            tmp_path,
            WORLD + '[task]\nkind = "classify"\n'
            '[model]\npreset = "classify-mean"\ncopying = true\n[model.decoder]\nlayers = 3\n',
        )
    )
    assert "decoder: a classifier has no decoder; remove this section; tie_embeddings, copying:" in text


def test_a_file_that_is_not_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "first.toml").touch()
    assert 'there is no such file; did you mean "first.toml"?' in message(tmp_path / "frist.toml")
    assert "this is a folder; a recipe is a TOML file" in message(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'name = "caf\xe9"')
    assert "not UTF-8 text (byte 11)" in message(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("epochs=3", "expected section.key=value"),
        ("training.epochs", "expected section.key=value"),
        ("training..epochs=3", "expected section.key=value"),
        ("training.epochs.more=3", "epochs = {'more': 3}: expected a whole number"),
        ("data.world.name.x=3", "name is a setting, not a section"),
    ],
)
def test_a_wrong_override_is_explained(override: str, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path, '[data.world]\nname = "phrases"\n')
    text = message(path, override)
    assert f'override "{override}"' in text
    assert expected in text


def test_decoding_options_are_checked_by_the_rules_of_the_recipe() -> None:
    with pytest.raises(ConfigError) as caught:
        decoding_options({"beam": 0, "top_p": 2.0, "bema": 3}, "the command line")
    text = str(caught.value)
    assert text.startswith("the command line [decoding] cannot be used:\n")
    for line in (
        "beam = 0: must be more than 0",
        "top_p = 2.0: must be at most 1.0",
        'bema: no such setting; did you mean "beam"?',
    ):
        assert f"  - {line}" in text


def test_problems_are_grouped_by_source_and_section() -> None:
    error = ConfigError([Problem("a.toml", "data", "x"), Problem("b.toml", "", "y"), Problem("a.toml", "data", "z")])
    assert str(error) == "a.toml [data] cannot be used:\n  - x\n  - z\nb.toml cannot be used:\n  - y"
    assert len(error.problems) == 3


def test_the_nearest_name_ignores_case() -> None:
    assert nearest("Dot", ["additive", "dot"]) == 'did you mean "dot"? known: additive, dot'
    assert nearest("", []) == "known: "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[" + ".".join(["a"] * 3000) + "]\n", "nested too deeply"),
        ("[data]\nx = " + "[" * 5000, "not valid TOML"),
        ("[data]\nin_memory = " + "9" * 5000, "not valid TOML"),
        (WORLD + "pixels = 0x" + "f" * 5000, "pixels = a number of too many digits"),
        (WORLD + f'[model]\npreset = "{"x" * 5000}"\n', f'preset = "{"x" * 199}…: no such preset'),
        ("#" * 1_000_001, "larger than 1,000,000 bytes, so not a recipe"),
    ],
    ids=["sections", "lists", "digits", "hexadecimal", "text", "file"],
)
def test_absurd_recipes_have_short_errors(tmp_path: Path, text: str, expected: str) -> None:
    error = message(write(tmp_path, text))
    assert expected in error
    assert len(error) < 2_000


def test_an_override_of_a_deep_setting_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, WORLD)
    assert "expected section.key=value" in message(path, f"data.train.{'a.' * 3000}a=1")
    assert "max_steps = " in message(path, f"training.max_steps={'9' * 5000}")


@pytest.mark.parametrize(
    ("setting", "limit"),
    [
        ("decoding.beam", 1_000),
        ("decoding.n_best", 1_000),
        ("decoding.max_length", 10_000),
        ("decoding.batch_size", 10_000),
        ("model.encoder.hidden", 65_536),
        ("model.encoder.layers", 256),
        ("model.decoder.max_positions", 1_000_000),
        ("data.world.pixels", 2_048),
    ],
)
def test_sizes_have_an_upper_bound(tmp_path: Path, setting: str, limit: int) -> None:
    path, name = write(tmp_path, WORLD), setting.rpartition(".")[2]
    load_recipe(path, [f"{setting}={limit}"])
    assert f"{name} = {limit + 1}: must be at most {limit}" in message(path, f"{setting}={limit + 1}")
    if setting.startswith("decoding."):
        with pytest.raises(ConfigError, match=f"{name} = 10000000: must be at most {limit}"):
            decoding_options({name: 10_000_000})
