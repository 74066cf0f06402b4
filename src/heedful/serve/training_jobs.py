"""Trainings of the studio: each runs in a process of its own, and its messages are kept for pages that come later."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query, Request
from pydantic import Field
from starlette.responses import Response, StreamingResponse

from heedful.data.worlds.phrases import DIRECTIONS
from heedful.errors import nearest
from heedful.serve.problems import ProblemError, wrong_request
from heedful.serve.requests import Body, Name, Text
from heedful.serve.state import get_state, json_response
from heedful.trace.schema import Trace
from heedful.viz.film import FilmFrame, film_gif

MAX_RUNNING = 1  # at a time: a training uses the machine alone
MAX_LINE = 64_000_000  # bytes of a message, which may hold traces
MAX_VALIDATIONS = 400  # whose traces are kept
router = APIRouter(prefix="/v1/train", tags=["training"])


class TrainRequest(Body):
    """A world or data of one's own."""

    world: Literal["phrases"] | None = None
    languages: Name | None = Field(None, description="of the world: en-fr (the default), fr-vi, ...")
    data: Text | None = Field(None, description="two columns separated by a tab: source and target")
    minutes: float = Field(10, gt=0, le=600, description="training ends after this time")


@dataclass
class Job:
    """A training, its messages, and the process that runs it."""

    id: str
    folder: Path
    spec: Path
    state: str = "running"
    messages: list[dict[str, Any]] = field(default_factory=list)
    process: asyncio.subprocess.Process | None = None
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    model: str | None = None

    def describe(self) -> dict[str, Any]:
        """Return what is known without the messages."""
        return {"id": self.id, "state": self.state, "messages": len(self.messages), "model": self.model}

    def film(self, sentence: int) -> list[FilmFrame]:
        """Return what is kept of a sentence at every validation."""
        shown = [one for one in self.messages if one["event"] == "validation" and sentence < len(one.get("traces", ()))]
        return [FilmFrame(f"step {one['step']:,}", Trace.model_validate(one["traces"][sentence])) for one in shown]


class TrainingJobs:
    """All trainings of a server; they end with it."""

    def __init__(self, root: Path) -> None:
        self.root, self.jobs = root, dict[str, Job]()
        self._readers: set[asyncio.Task[None]] = set()

    def find(self, id: str) -> Job:
        """Return a job."""
        if id not in self.jobs:
            raise ProblemError(404, "no-training", f"there is no training {id}")
        return self.jobs[id]

    async def create(self, request: TrainRequest, state: Any) -> Job:
        """Start a training."""
        if (request.world is None) == (request.data is None):
            raise wrong_request("expected one of world and data")
        if request.languages not in (None, *DIRECTIONS):
            raise wrong_request(f"languages: no such pair; {nearest(str(request.languages), DIRECTIONS)}")
        self._check_free()
        id = f"training-{secrets.token_hex(3)}"
        folder = self.root / id
        folder.mkdir(parents=True)
        job: dict[str, Any] = {"out": str(folder / "model"), "settings": [f"training.max_minutes={request.minutes:g}"]}
        if request.languages is not None:
            job["languages"] = request.languages
        if request.data is not None:
            (folder / "data.tsv").write_text(request.data, encoding="utf-8")
            job["data"] = str(folder / "data.tsv")
        spec = folder / "job.json"
        spec.write_text(json.dumps(job), encoding="utf-8")
        self.jobs[id] = Job(id, folder, spec)
        await self.run(self.jobs[id], state)
        return self.jobs[id]

    def _check_free(self) -> None:
        """Raise a ProblemError if another training is running, before anything is written for the next one."""
        if sum(one.state == "running" and one.process is not None for one in self.jobs.values()) >= MAX_RUNNING:
            raise ProblemError(409, "training-runs", "another training is running; stop it first")

    async def run(self, job: Job, state: Any) -> None:
        """Start the process of a job, or start it again."""
        self._check_free()
        job.state = "running"
        job.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "heedful.serve.training_worker",
            str(job.spec),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=MAX_LINE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        reader = asyncio.create_task(self._read(job, state))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    async def stop(self, job: Job) -> None:
        """Ask a job to save a checkpoint and end."""
        if job.process is not None and job.process.returncode is None:
            job.process.send_signal(signal.SIGINT)
            await job.process.wait()

    async def close(self) -> None:
        """End all processes, and remove the files of trainings without a finished model."""
        for job in self.jobs.values():
            process = job.process
            if process is not None and process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            if job.model is None:
                shutil.rmtree(job.folder, ignore_errors=True)
        with suppress(OSError):  # a finished model is in it
            self.root.rmdir()

    async def _read(self, job: Job, state: Any) -> None:
        process = job.process
        assert process is not None
        assert process.stdout is not None
        final = "stopped"
        async for line in process.stdout:
            message = json.loads(line)
            if message["event"] == "done":
                state.store.add(job.id, Path(message["folder"]))
                job.model, message, final = job.id, {"event": "done", "model": job.id}, "done"
            elif message["event"] == "failed":
                final = "failed"
            if message["event"] != "stopped":
                await self._append(job, message)
        await process.wait()
        if final == "stopped" and process.returncode not in (0, 130, -signal.SIGINT):
            final = "failed"
        job.state, job.process = final, None
        await self._append(job, {"event": "state", "state": final})

    async def _append(self, job: Job, message: dict[str, Any]) -> None:
        async with job.changed:
            job.messages.append(message)
            shown = [one for one in job.messages if one["event"] == "validation" and "traces" in one]
            if len(shown) > MAX_VALIDATIONS:
                shown[0].pop("traces")
            job.changed.notify_all()


def add_jobs(app: FastAPI) -> TrainingJobs:
    """Let a server train, in a temporary folder; its trainings end when it ends."""
    jobs = TrainingJobs(Path(tempfile.mkdtemp(prefix="heedful-studio-")))
    app.state.training_jobs = jobs
    app.include_router(router)
    serve = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(served: FastAPI) -> AsyncIterator[Any]:
        async with serve(served) as state:
            try:
                yield state
            finally:
                await jobs.close()

    app.router.lifespan_context = lifespan
    return jobs


def _jobs(request: Request) -> TrainingJobs:
    jobs: TrainingJobs = request.app.state.training_jobs
    return jobs


@router.post("", summary="Start a training", operation_id="train")
async def train(request: Request, body: TrainRequest) -> Response:
    """Train on a world or on data of one's own; the result is a model of this server."""
    return json_response((await _jobs(request).create(body, get_state(request))).describe())


@router.get("", summary="List the trainings", operation_id="trainings")
async def trainings(request: Request) -> Response:
    """Return all trainings of this server."""
    return json_response({"trainings": [job.describe() for job in _jobs(request).jobs.values()]})


@router.get("/{id}", summary="Describe a training", operation_id="training")
async def training(request: Request, id: str) -> Response:
    """Return the state of a training."""
    return json_response(_jobs(request).find(id).describe())


@router.post("/{id}/stop", summary="Stop a training", operation_id="stop_training")
async def stop(request: Request, id: str) -> Response:
    """Save a checkpoint and stop; the training can go on later."""
    job = _jobs(request).find(id)
    await _jobs(request).stop(job)
    return json_response(job.describe())


@router.post("/{id}/resume", summary="Go on with a training", operation_id="resume_training")
async def resume(request: Request, id: str) -> Response:
    """Go on from the last checkpoint."""
    job = _jobs(request).find(id)
    if job.state == "running":
        raise ProblemError(409, "training-runs", "this training is running")
    await _jobs(request).run(job, get_state(request))
    return json_response(job.describe())


@router.get(
    "/{id}/animation",
    summary="Animate a training",
    operation_id="training_animation",
    response_class=Response,
    responses={200: {"content": {"image/gif": {}}}},
)
async def animation(request: Request, id: str, sentence: Annotated[int, Query(ge=0, le=100)] = 0) -> Response:
    """Return the attention of one fixed sentence at every validation, as an animated GIF."""
    frames = _jobs(request).find(id).film(sentence)
    if not frames:
        raise ProblemError(404, "no-film", "this training has no validation of this sentence yet")
    return Response(await asyncio.to_thread(film_gif, frames), media_type="image/gif")


@router.get("/{id}/events", summary="Follow a training", operation_id="training_events")
async def events(request: Request, id: str) -> Response:
    """Stream its messages as server-sent events: all of those before, then new ones until it ends."""
    job = _jobs(request).find(id)

    async def stream() -> AsyncIterator[bytes]:
        position = 0
        while True:
            while position < len(job.messages):
                message = job.messages[position]
                position += 1
                yield f"id: {position}\ndata: {json.dumps(message, ensure_ascii=False)}\n\n".encode()
            if job.state != "running":
                return
            async with job.changed:
                if position == len(job.messages):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(job.changed.wait(), 10)
                    if position == len(job.messages):
                        yield b": waiting\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream", headers={"cache-control": "no-store"})
