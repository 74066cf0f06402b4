"""Chromium for the tests that open pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

REQUIRED = os.environ.get("HEEDFUL_REQUIRE_BROWSER") == "1"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; without one, skip the test, or fail where it has to be there.

    Fixtures that use this have module scope. While Playwright runs, its thread has a running event loop: a second
    Playwright or a test that uses asyncio fails then, so no browser may outlive the module that opened it.
    """
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
        except Error as error:
            unavailable(f"no Chromium here: {error.message}")
        yield browser
        browser.close()


def unavailable(reason: str) -> NoReturn:
    """Skip the test, or fail where a browser has to be there."""
    if REQUIRED:
        pytest.fail(reason)
    pytest.skip(reason)
