"""A real server on a project of its own, and a real Chromium looking at it.

``site`` is the server with a small client; ``page`` a wide window on it. What a page may never do, an error
in its script or a request to another host, fails the test that showed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.e2e.browsing import Watch, chromium_path, watched
from tests.e2e.site import Site, built_ui
from tests.support.projects import make_project, scripted

# What is waited for comes at last on a busy machine too; what never comes still fails the test.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One per module: while it is open its event loop runs in this thread, in the way of async tests."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The config file of a small project; a test module may make another."""
    return make_project(
        tmp_path / "project",
        [
            scripted("Greets the guest", "hello there", "how are you"),
            scripted("Names the hours", "when do you open", pattern="nine o'clock"),
            scripted("Breaks down", "please break"),
        ],
    )


@pytest.fixture
def site(project: Path) -> Iterator[Site]:
    built_ui()
    served = Site(project)
    served.apply()
    served.start()
    yield served
    served.stop()


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Opens windows on the site: ``open_page(scheme="dark", width=400)``."""
    watches: list[Watch] = []

    def opened(*, scheme: str = "light", width: int = 1280, height: int = 800) -> Page:
        watch = watched(browser, site.url, scheme=scheme, width=width, height=height)
        watches.append(watch)
        return watch.page

    yield opened
    for watch in watches:
        watch.page.context.close()
    for watch in watches:
        assert not watch.errors, f"errors in the page: {watch.errors}"
        assert not watch.outside, f"requests to other hosts: {watch.outside}"


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


@pytest.fixture
def spare(site: Site) -> Any:
    """A scenario that no eval uses."""
    return site.post(
        "/api/scenarios", scripted("Spare", "hello {{guest}}", cases=[{"vars": {"guest": "Ann"}}])
    )
