"""The micro-batcher: same bits in every batch, joined requests, a bounded queue, and inputs that fail by themselves."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from heedful.config import DecodingOptions
from heedful.decoding import NEVER, StopCondition
from heedful.errors import DataError
from heedful.parallel import limit_torch_threads
from heedful.serve.batcher import Batcher, Entry, choose_batch
from heedful.serve.problems import ProblemError
from heedful.serve.servables import make_servable
from heedful.serve.settings import Limits
from heedful.serve.statistics import Statistics
from heedful.tasks.model_folder import load_model
from heedful.tasks.seq2seq.api import TextGenerator
from heedful.tasks.seq2seq.predict import make_predictor, make_records
from serve.local import running
from small_models import random_model_folder, small_preset

WORDS = "the black cat sleeps a small dog eats fish she sees red house".split()
LINES = [" ".join(WORDS[(n * 5 + k) % len(WORDS)] for k in range(1 + n * 7 % 13)) for n in range(12)]
OPTIONS = [
    DecodingOptions(max_length=12),
    DecodingOptions(method="beam", beam=2, max_length=12),
    DecodingOptions(method="beam", beam=5, n_best=3, coverage_penalty=0.2, max_length=12),
]
RECURRENT = {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 128, "attention__hidden": 64}
HEADS = {"encoder__heads": 4, "decoder__heads": 4, "encoder__feedforward": 128, "decoder__feedforward": 128}
EXACT = {
    "cgru": RECURRENT,
    "bigru-gru": RECURRENT,
    "transformer": {"embedding": 64, "encoder__hidden": 64, "decoder__hidden": 64, **HEADS},
}


def numbers(records: Sequence[dict[str, Any]]) -> list[Any]:
    return [[(o["text"], o["score"], o["token_logp"], o.get("alignment")) for o in r["outputs"]] for r in records]


@pytest.mark.parametrize("preset", EXACT)
@pytest.mark.usefixtures("as_users_run")
def test_outputs_have_the_same_bits_in_every_batch(preset: str, tmp_path: Path) -> None:
    loaded = random_model_folder(tmp_path / "m", small_preset(preset, **EXACT[preset]))
    servable = make_servable("m", TextGenerator(loaded), int8=False)
    assert servable.joins

    def check() -> None:
        for options in OPTIONS:
            alone = [servable.run([line], options, True, NEVER)[0] for line in LINES]
            for bucket in {servable.bucket(len(line.split())) for line in LINES}:
                rows = [row for row, line in enumerate(LINES) if servable.bucket(len(line.split())) == bucket]
                together = servable.run([LINES[row] for row in rows], options, True, NEVER)
                assert numbers(together) == numbers([alone[row] for row in rows])

    with ThreadPoolExecutor(1, initializer=limit_torch_threads, initargs=(1,)) as pool:
        pool.submit(check).result()


@pytest.mark.usefixtures("as_users_run")
def test_models_that_cannot_have_the_same_bits_are_not_batched(tmp_path: Path) -> None:
    loaded = random_model_folder(tmp_path / "m", small_preset("luong"))
    servable = make_servable("m", TextGenerator(loaded), int8=False)
    together = servable.run(LINES, OPTIONS[1], True, NEVER)
    if not servable.joins:  # oneDNN's LSTM
        assert numbers(together) == numbers([servable.run([line], OPTIONS[1], True, NEVER)[0] for line in LINES])


def test_requests_are_joined_and_keep_their_order(folder: Path) -> None:
    bodies = [{"inputs": LINES[n : n + 3], "options": {"beam": 3, "max_length": 9}} for n in range(8)]
    with running(folder, wait=0.5, batch=64) as local:
        alone = [local.post("/v1/translate", body).json() for body in bodies]
        together: dict[int, Any] = {}

        def send(number: int) -> None:
            together[number] = local.post("/v1/translate", bodies[number]).json()

        threads = [threading.Thread(target=send, args=[number]) for number in range(len(bodies))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [together[number] for number in range(len(bodies))] == alone
        sizes = local.get("/metrics").text
        batches = float(next(x for x in sizes.splitlines() if x.startswith("heedful_batch_size_count")).split()[1])
        assert batches < 8 * 3 + 8 * 3  # each bucket of each request by itself would be more


def test_nothing_of_the_process_changes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servable = make_servable("m", TextGenerator(load_model(folder)), int8=False)
    changes: list[Any] = []
    monkeypatch.setattr(type(os.environ), "__setitem__", lambda _, *change: changes.append(change))
    monkeypatch.setattr("torch.set_num_threads", changes.append)
    items = servable.prepare(LINES, Limits())
    servable.run([item.payload for item in items], OPTIONS[1], False, NEVER)
    assert changes == []


def test_samples_do_not_depend_on_other_requests(folder: Path) -> None:
    options = {"method": "sample", "seed": 3, "max_length": 9}
    with running(folder) as local:
        alone = local.post("/v1/translate", {"inputs": LINES[:1], "options": options}).json()["outputs"]
        together = local.post("/v1/translate", {"inputs": LINES[:4], "options": options}).json()["outputs"]
    assert together[0] == alone[0]


def test_int8_is_within_its_tolerance(folder: Path) -> None:
    loaded = load_model(folder)
    predictor = make_predictor([loaded], int8=True, threads=1)
    alone = [make_records(predictor, [line], [None], OPTIONS[1])[0]["outputs"][0]["logp"] for line in LINES]
    records = make_records(predictor, LINES, [None] * len(LINES), OPTIONS[1])
    assert [record["outputs"][0]["logp"] for record in records] == pytest.approx(alone, abs=0.1)


def make_batcher(queue: int = 4, threads: int = 1, wait: float = 0.0) -> Batcher:
    return Batcher(threads, wait, 8, queue, Statistics())


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    release = threading.Event()

    def work(payloads: Sequence[Any], stop: StopCondition) -> Sequence[Any]:
        release.wait(60)
        return payloads

    async def scenario() -> None:
        batcher = make_batcher(queue=4)
        first = asyncio.ensure_future(batcher.run(work, [("k", 0, 1)]))
        await asyncio.sleep(0)
        waiting = [asyncio.ensure_future(batcher.run(work, [(n, n, 1)])) for n in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await batcher.run(work, [("k", 9, 1)])
        assert refused.value.status == 503
        assert int((refused.value.headers or {})["Retry-After"]) >= 1
        waiting[0].cancel()  # a client that leaves frees its place
        await asyncio.gather(waiting[0], return_exceptions=True)
        another = asyncio.ensure_future(batcher.run(work, [("k", 9, 1)]))
        await asyncio.sleep(0)
        release.set()
        assert await first == [0]
        assert await another == [9]
        assert [await task for task in waiting[1:]] == [[1], [2], [3]]
        assert batcher.waiting == batcher.running == 0
        assert not batcher.groups
        batcher.close()

    asyncio.run(scenario())


def test_an_input_fails_by_itself() -> None:
    def work(payloads: Sequence[Any], stop: StopCondition) -> Sequence[Any]:
        if "poison" in payloads:
            raise DataError("this input cannot be used")
        return [payload.upper() for payload in payloads]

    async def scenario() -> None:
        batcher = make_batcher(wait=0.2)
        batcher._last_size = 8
        tasks = [asyncio.ensure_future(batcher.run(work, [("k", text, 1)])) for text in ("a", "poison", "b")]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert (results[0], results[2]) == (["A"], ["B"])
        assert isinstance(results[1], DataError)
        batcher.close()

    asyncio.run(scenario())


def test_a_batch_stops_when_all_its_clients_have_left() -> None:
    stopped, started = threading.Event(), threading.Event()

    def work(payloads: Sequence[Any], stop: StopCondition) -> Sequence[Any]:
        started.set()
        while not stop.is_met():
            stopped.wait(0.001)
        stopped.set()
        return payloads

    async def scenario() -> None:
        batcher = make_batcher(wait=0.05)
        tasks = [asyncio.ensure_future(batcher.run(work, [("k", n, 1)])) for n in range(2)]
        await asyncio.to_thread(started.wait, 60)
        tasks[0].cancel()
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await asyncio.to_thread(stopped.wait, 60)
        batcher.close()

    asyncio.run(scenario())


def test_a_batch_has_the_oldest_input_and_those_of_similar_length() -> None:
    async def scenario() -> list[int]:
        future: Any = asyncio.get_running_loop().create_future()
        entries = [Entry("k", None, length, future, 0.0) for length in (10, 90, 11, 50, 9, 12)]
        return [entry.length for entry in choose_batch(entries, 4)]

    assert asyncio.run(scenario()) == [10, 11, 9, 12]
