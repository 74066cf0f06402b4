"""Trainings of the studio end with the server, and one that is refused leaves nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from fastapi import FastAPI

from heedful.serve.problems import ProblemError
from heedful.serve.training_jobs import TrainRequest, add_jobs


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """A server whose trainings sleep."""
    start = asyncio.create_subprocess_exec

    async def sleep(*_: str, **options: Any) -> asyncio.subprocess.Process:
        return await start(sys.executable, "-c", "import time; time.sleep(600)", **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", sleep)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return FastAPI()


def test_trainings_end_with_the_server(app: FastAPI, tmp_path: Path) -> None:
    async def serve() -> int | None:
        jobs = add_jobs(app)
        async with app.router.lifespan_context(app):
            job = await jobs.create(TrainRequest(data="a\tb"), None)
            assert job.process is not None
            process = job.process
        return process.returncode

    assert asyncio.run(serve()) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_second_training_is_refused_before_its_data_is_written(app: FastAPI, tmp_path: Path) -> None:
    async def serve() -> None:
        jobs = add_jobs(app)
        async with app.router.lifespan_context(app):
            first = await jobs.create(TrainRequest(data="a\tb"), None)
            with pytest.raises(ProblemError, match="another training is running"):
                await jobs.create(TrainRequest(data="c\td"), None)
            assert list(jobs.jobs) == [first.id]
            assert [path.name for path in jobs.root.iterdir()] == [first.id]

    asyncio.run(serve())
