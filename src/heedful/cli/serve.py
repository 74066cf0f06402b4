"""`heedful serve`."""

from __future__ import annotations

from typing import Annotated

import typer

SERVED_MODELS = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        metavar="MODEL",
        help="Model folder, bundled model, or NAME=FOLDER; may be repeated (default: all bundled models).",
        show_default=False,
    ),
]


def serve(
    *,
    model: SERVED_MODELS = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port to listen on; 0: a free one.")] = 8000,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            envvar="HEEDFUL_KEY",
            help="Key that requests have to bring (Authorization: Bearer KEY); may be repeated."
            " Needed for other addresses than loopback. The variable keeps it out of the process list.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[int, typer.Option(metavar="N", min=0, help="Requests per minute and key; 0: any number.")] = 0,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name by which the server is called, besides localhost; may be repeated."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Origin whose pages may call the server (CORS); may be repeated."),
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Quantize large weight matrices to int8.")] = False,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Number of processes.")] = 1,
    threads: Annotated[
        int, typer.Option(metavar="N", min=0, help="Batches computed at a time per process; 0: one per processor.")
    ] = 0,
    max_models: Annotated[int, typer.Option(metavar="N", min=1, help="Models in memory at a time.")] = 8,
    max_seconds: Annotated[float, typer.Option(metavar="S", min=0.1, help="Time limit of a request, in seconds.")] = 60,
    queue: Annotated[int, typer.Option(metavar="N", min=1, help="Inputs that may wait; more are refused.")] = 160,
    drain: Annotated[
        float, typer.Option(metavar="S", min=1, help="Seconds that begun requests have after SIGTERM or Ctrl-C.")
    ] = 20,
) -> None:
    """Answer HTTP requests: all commands that use models, and traces. The API is described by /openapi.json."""
    from heedful.errors import ServeError

    try:
        from heedful.serve.run import run
        from heedful.serve.settings import Limits, ServeSettings, named_folders
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("heedful"):
            raise
        raise ServeError(f"heedful serve needs {error.name}: pip install 'heedful[serve]'") from None
    from heedful.cli.options import warn_if_int8_is_slow

    warn_if_int8_is_slow(int8)
    settings = ServeSettings(
        models=dict(named_folders(model or [])),
        host=host,
        port=port,
        keys=tuple(key or ()),
        rate=rate,
        allowed_hosts=tuple(allow_host or ()),
        origins=tuple(origin or ()),
        int8=int8,
        workers=workers,
        threads=threads,
        max_models=max_models,
        drain=drain,
        limits=Limits(seconds=max_seconds, queue=queue),
    )
    run(settings)
