"""`heedful studio`."""

from __future__ import annotations

from typing import Annotated

import typer

from heedful.cli.serve import SERVED_MODELS


def studio(
    *,
    model: SERVED_MODELS = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65535,
            help="Port to listen on; 0: a free one (default: 8765, or a free one if it is taken).",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the studio in the browser.")] = True,
    max_models: Annotated[int, typer.Option(metavar="N", min=1, help="Models in memory at a time.")] = 8,
) -> None:
    """Open the studio in the browser: type, see where the model looks, change a weight, compare, train.

    The server listens on this machine only, and lets in who has the token of the printed address.
    """
    from heedful.errors import ServeError

    try:
        from heedful.serve.run import run
        from heedful.serve.settings import ServeSettings, named_folders
        from heedful.serve.studio import create_studio, free_port, open_studio
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("heedful"):
            raise
        raise ServeError(f"heedful studio needs {error.name}: pip install 'heedful[serve]'") from None
    import secrets

    token = secrets.token_urlsafe(24)
    settings = ServeSettings(
        models=dict(named_folders(model or [])),
        port=free_port() if port is None else port,
        session_token=token,
        max_models=max_models,
    )
    run(settings, create_studio, lambda address: open_studio(f"{address}/session?token={token}", browser))
