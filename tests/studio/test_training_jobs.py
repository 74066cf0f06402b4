"""Trainings of the studio: started, stopped by an interrupt, refused where they cannot be."""

from __future__ import annotations

import time
from typing import Any

import pytest

from studio.conftest import WAIT, Studio

pytestmark = pytest.mark.browser


def state(studio: Studio, id: str) -> Any:
    return studio.context.request.get(f"{studio.address}/v1/train/{id}", timeout=WAIT).json()


def test_a_training_is_stopped_and_the_next_one_may_start(studio: Studio) -> None:
    job = studio.post("/v1/train", {"world": "phrases", "minutes": 1})
    assert job["state"] == "running"
    other = studio.context.request.post(f"{studio.address}/v1/train", data={"world": "phrases"})
    assert other.status == 409
    end = time.monotonic() + WAIT / 1000
    while not state(studio, job["id"])["messages"] and time.monotonic() < end:
        time.sleep(0.1)
    studio.post(f"/v1/train/{job['id']}/stop", {})
    while state(studio, job["id"])["state"] == "running" and time.monotonic() < end:
        time.sleep(0.1)
    assert state(studio, job["id"])["state"] == "stopped"


@pytest.mark.parametrize("body", [{}, {"world": "phrases", "data": "a\tb"}, {"world": "nowhere"}, {"minutes": -1}])
def test_requests_that_make_no_sense_are_refused(studio: Studio, body: dict[str, Any]) -> None:
    assert studio.context.request.post(f"{studio.address}/v1/train", data=body).status == 422


def test_unknown_trainings(studio: Studio) -> None:
    assert studio.context.request.get(f"{studio.address}/v1/train/none").status == 404
