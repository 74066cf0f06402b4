"""Time limits and cancellation of searches, and models whose output is not finite."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from torch import Tensor

import small_models
from heedful.config import DecodingOptions
from heedful.data.batch import EncodedPair, TextBatch, collate, pad
from heedful.data.tokenizer import END
from heedful.decoding import Ensemble, StopCondition, force_decode, search, search_all
from heedful.errors import DecodingCancelledError, DecodingError, DecodingTimeoutError
from heedful.inference.engine import Engine
from heedful.inference.optimize import optimize_for_inference
from heedful.layers.recurrent_decoder import RecurrentDecoder
from heedful.models import AutoregressiveModel, Seq2Seq

SOURCES = [[4, 5, 6, 7, END], [8, END]]
METHODS = [
    {},
    {"method": "beam", "beam": 3},
    {"method": "sample", "n_best": 2},
]


def small_model(seed: int = 1, preset: str = "rnnsearch") -> Seq2Seq:
    return small_models.randomize_weights(small_models.build_model(small_models.small_preset(preset)), seed)


def output_bias(model: Seq2Seq) -> Tensor:
    assert isinstance(model.decoder, RecurrentDecoder)
    return model.decoder.read_out.output.bias.data


def endless(model: Seq2Seq) -> Seq2Seq:
    """Return a model that never generates the end token."""
    output_bias(model)[END] = -1e6
    return model


MODELS: list[Callable[[], AutoregressiveModel]] = [
    lambda: endless(small_model()),
    lambda: Ensemble([endless(small_model(1)), endless(small_model(2))]),
    lambda: optimize_for_inference(endless(small_model()).float()),
]


@pytest.mark.parametrize("make", MODELS, ids=["model", "ensemble", "int8"])
@pytest.mark.parametrize("method", METHODS, ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:1]], ids=["batch", "sentence"])
def test_every_search_ends_between_two_steps(
    make: Callable[[], AutoregressiveModel], method: dict[str, object], sources: list[list[int]]
) -> None:
    calls = 0

    def should_stop() -> bool:
        nonlocal calls
        calls += 1
        return calls > 5

    options = DecodingOptions.model_validate({"max_length": 20, **method})
    model = make()
    in_chunks = isinstance(model, Engine) and len(sources) == 1 and options.method == "greedy"
    steps = "128 of at most 400" if in_chunks else "4 of at most 20"  # an engine computes 32 steps per call
    options = options.model_copy(update={"max_length": 400 if in_chunks else 20})
    with pytest.raises(DecodingCancelledError, match=f"decoding was cancelled after {steps} steps"):
        search(model, TextBatch(pad(sources)), options, stop=StopCondition(should_stop=should_stop))


@pytest.mark.parametrize("method", METHODS, ids=["greedy", "beam", "sample"])
def test_a_condition_that_is_not_met_changes_nothing(method: dict[str, object]) -> None:
    model, options = small_model(), DecodingOptions.model_validate({"max_length": 8, **method})
    for sources in (SOURCES, SOURCES[:1]):
        batch = TextBatch(pad(sources))
        free = search(model, batch, options).hypotheses
        limited = search(model, batch, options, stop=StopCondition(1e6, threading.Event())).hypotheses
        assert [[h.tokens for h in row] for row in limited] == [[h.tokens for h in row] for row in free]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_time_limit_says_how_many_inputs_were_done(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("heedful.stopping.monotonic", lambda: now)
    stop = StopCondition(max_seconds=2.0)

    def end_time(count: int) -> None:
        nonlocal now
        now += count

    options = DecodingOptions(max_length=4, batch_size=1)
    with pytest.raises(
        DecodingTimeoutError,
        match=r"took longer than 2 s and was stopped after \d of at most 4 steps; [23] of 40 inputs were done",
    ):
        search_all(
            small_model(), lambda rows: TextBatch(pad([SOURCES[0]])), [1] * 40, options, on_progress=end_time,
            threads=threads, stop=stop,
        )  # fmt: skip


def test_an_event_of_another_thread_cancels_a_search() -> None:
    cancelled = threading.Event()
    batches = 0

    def make_batch(rows: object) -> TextBatch:
        nonlocal batches
        batches += 1
        if batches == 2:
            cancelled.set()
        return TextBatch(pad([SOURCES[0]]))

    options = DecodingOptions(max_length=4, batch_size=1)
    with pytest.raises(DecodingCancelledError, match=r"after 0 of at most 4 steps; 1 of 9 inputs were done"):
        search_all(small_model(), make_batch, [1] * 9, options, stop=StopCondition(should_stop=cancelled))
    assert batches == 2, "no batch is made after that"


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_is_a_positive_number(seconds: float) -> None:
    with pytest.raises(DecodingError, match="expected a number of seconds above 0"):
        StopCondition(seconds)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("method", METHODS, ids=["greedy", "beam", "sample"])
@pytest.mark.parametrize("sources", [SOURCES, SOURCES[:1]], ids=["batch", "sentence"])
def test_an_output_that_is_not_finite_is_an_error(
    number: float, method: dict[str, object], sources: list[list[int]]
) -> None:
    """Sampling raised an error of PyTorch; greedy and beam search returned words."""
    model = small_model()
    output_bias(model)[5] = number
    options = DecodingOptions.model_validate({"max_length": 8, **method})
    for prefix in (None, pad([[6]] * len(sources))):
        with pytest.raises(DecodingError, match="the model's output is not finite in step 1;"):
            search(model, TextBatch(pad(sources)), options, prefix=prefix)
    with pytest.raises(DecodingError, match="the model's output is not finite in step 1;"):
        force_decode(model, collate([EncodedPair(source, [6, END]) for source in sources]))


def test_an_engine_whose_output_is_not_finite_is_an_error() -> None:
    model = small_model()
    output_bias(model)[5] = float("nan")
    engine = optimize_for_inference(model.float())
    with pytest.raises(DecodingError, match="the model's output is not finite in step 1;"):
        search(engine, TextBatch(pad(SOURCES[:1])), DecodingOptions(max_length=3))
