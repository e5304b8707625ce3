"""A real browser: Debian's chromium, driven by Playwright.

Tests with it are skipped where either is missing: ``apt-get install chromium`` and ``pip install
playwright``.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The browser, started once."""
    driver = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab that fails the test on any error or request for anything but the page."""
    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(120_000)  # a busy machine
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: errors.append(r.url) if r.url.startswith("http") else None)
    yield page
    context.close()
    assert not errors
