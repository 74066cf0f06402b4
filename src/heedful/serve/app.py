"""The application: routes, middleware and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware import Middleware

from heedful.parallel import available_cpus
from heedful.serve import libretranslate, routes_models, routes_system, routes_trace, routes_verbs
from heedful.serve.batcher import Batcher
from heedful.serve.middleware import BodyLimit, Guard, RequestContext
from heedful.serve.model_store import ModelStore
from heedful.serve.openapi import add_openapi
from heedful.serve.problems import ProblemError, add_handlers, as_problem
from heedful.serve.requests import TraceRequest, WhatIfRequest
from heedful.serve.settings import ServeSettings, check_settings
from heedful.serve.state import ServerState
from heedful.serve.statistics import Statistics

DESCRIPTION = (
    "Attention models over HTTP: translate, caption, classify and the other verbs, traces of every weight, and what"
    " changes if weights change. Errors are problem details (RFC 9457)."
)


def create_app(settings: ServeSettings) -> FastAPI:
    """Return the application; other routers and static files may be added to it before it runs."""
    check_settings(settings)
    statistics = Statistics()
    threads = settings.threads or max(1, available_cpus() // settings.workers)
    batcher = Batcher(threads, settings.wait, settings.batch, settings.limits.queue, statistics)
    store = ModelStore(settings.folders(), settings.max_models, settings.int8)
    state = ServerState(settings, store, batcher, statistics, {})

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(_warm(state))
        yield
        warming.cancel()
        batcher.draining = True
        batcher.close()

    app = FastAPI(
        title="heedful",
        version=version("heedful"),
        description=DESCRIPTION,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        middleware=[
            Middleware(RequestContext, statistics=statistics),
            Middleware(Guard, settings=settings),
            Middleware(BodyLimit, most=settings.limits.body_bytes, seconds=settings.limits.body_seconds),
        ],
    )
    app.state.heedful = state
    for module in (routes_verbs, routes_trace, routes_models, libretranslate, routes_system):
        app.include_router(module.router)
    add_handlers(app)
    add_openapi(app, [TraceRequest, WhatIfRequest, libretranslate.LibreTranslateRequest])
    return app


def create_from_environment() -> FastAPI:
    """Return the application of a worker process."""
    return create_app(ServeSettings.from_environment())


async def _warm(state: ServerState) -> None:
    """Load the models that were named, or the first translator of the bundled ones."""
    try:
        names = state.store.names if state.settings.models else [state.store.find(None, "translate")]
        for name in names[: state.settings.max_models]:
            await state.servable(name)
        state.readiness["ready"] = True
    except ProblemError:  # nothing to warm up
        state.readiness["ready"] = True
    except Exception as error:
        state.readiness["error"] = as_problem(error).detail
