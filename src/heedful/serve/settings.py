"""The settings of a server; they travel to worker processes as JSON."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from heedful.errors import ServeError
from heedful.section import Section
from heedful.tasks.bundled import bundled_models, find_models
from heedful.tasks.model_card import read_card
from heedful.tasks.model_names import is_from_elsewhere

SETTINGS_VARIABLE = "HEEDFUL_SERVE_SETTINGS"  # JSON, for worker processes
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
MIN_KEY = 16  # characters of a key


class Limits(Section):
    """What a request may ask for; each is checked before any model works."""

    items: int = Field(128, gt=0, description="inputs per request")
    characters: int = Field(100_000, gt=0, description="characters of all inputs of a request")
    tokens: int = Field(1_000, gt=0, description="tokens per input; a model may read fewer")
    output_tokens: int = Field(1_000, gt=0, description="tokens per output")
    beam: int = Field(32, gt=0, description="hypotheses and outputs per input")
    pixels: int = Field(40_000_000, gt=0, description="pixels per image")
    body_bytes: int = Field(20_000_000, gt=0, description="bytes of a request")
    seconds: float = Field(60.0, gt=0, description="seconds per request")
    body_seconds: float = Field(20.0, gt=0, description="seconds in which a request has to arrive")
    queue: int = Field(160, gt=0, description="inputs that may wait; more are refused with 503")
    connections: int = Field(1_000, gt=0, description="open connections")


class ServeSettings(Section):
    """Everything that `heedful serve` can be told."""

    models: dict[str, str] = Field(default_factory=dict, description="name -> folder; empty: the bundled models")
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, gt=0, le=64, description="processes, which share nothing")
    threads: int = Field(0, ge=0, description="batches computed at a time per process; 0: one per processor")
    int8: bool = Field(False, description="quantize large matrices of models that generate text")
    wait: float = Field(0.008, ge=0, le=1, description="seconds for which a batch waits for more inputs")
    batch: int = Field(32, gt=0, le=1_000, description="inputs per batch")
    max_models: int = Field(8, gt=0, description="models in memory; the least recently used one leaves")
    keys: tuple[str, ...] = Field((), description="keys of which a request has to bring one")
    rate: int = Field(0, ge=0, description="requests per minute and key; 0: any number")
    allowed_hosts: tuple[str, ...] = Field((), description="names in the Host header besides those of loopback")
    origins: tuple[str, ...] = Field((), description="other origins whose pages may call (CORS)")
    session_token: str = Field("", description="token that a browser exchanges for a cookie")
    drain: float = Field(20.0, gt=0, description="seconds that begun requests have after SIGTERM")
    limits: Limits = Limits()

    def to_environment(self) -> dict[str, str]:
        """Return the environment variable by which a worker process receives the settings."""
        return {SETTINGS_VARIABLE: self.model_dump_json()}

    @classmethod
    def from_environment(cls) -> ServeSettings:
        """Return the settings of this worker process."""
        return cls.model_validate_json(os.environ[SETTINGS_VARIABLE])

    def folders(self) -> dict[str, Path | str]:
        """Return the folder of every served model by its name, or what names it elsewhere (`hf:FOLDER_OR_ID`)."""
        named = {name: folder if is_from_elsewhere(folder) else Path(folder) for name, folder in self.models.items()}
        return named or dict(bundled_models())


def is_loopback(host: str) -> bool:
    """Return whether an address is of this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_settings(settings: ServeSettings) -> None:
    """Raise ServeError if the server would be open to others without a key, or a key is easy to guess."""
    if not is_loopback(settings.host) and not settings.keys:
        raise ServeError(
            f"--host {settings.host}: other machines can reach this address, so requests need a key:"
            " --key KEY, or the variable HEEDFUL_KEY"
        )
    if any(len(key) < MIN_KEY or not key.isascii() or not key.isprintable() or " " in key for key in settings.keys):
        raise ServeError(
            f"--key: expected at least {MIN_KEY} ASCII characters without spaces, such as those that"
            " secrets.token_urlsafe() of Python returns"
        )
    for origin in settings.origins:
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
            raise ServeError(
                f'--origin "{origin}": expected scheme and host, such as https://example.org; "*" is refused'
            )


def named_folders(names: list[str]) -> Mapping[str, str]:
    """Return the folder of each model by its name; `-m` takes a folder, a bundled model, hf:FOLDER, or NAME=FOLDER."""
    folders: dict[str, str] = {}
    for text in names:
        name, equals, folder = text.partition("=")
        is_named = bool(equals) and not Path(text).exists()
        place = _find_place(folder if is_named else text)
        key = name if is_named else place.rpartition("/")[2]
        if key in folders:
            raise ServeError(f'{text}: two models are called "{key}"; give one of them another name: NAME={place}')
        folders[key] = place
    return folders


def _find_place(name: str) -> str:
    """Return the absolute folder of a model, or its name elsewhere with an absolute folder."""
    if is_from_elsewhere(name):
        prefix, _, reference = name.partition(":")
        folder = Path(reference).expanduser()
        return f"{prefix}:{folder.resolve() if folder.is_dir() else reference}"
    (path,) = find_models([name], "")
    read_card(path)
    return str(path.resolve())
