"""A real server on a project of its own, and a real Chromium looking at it.

``site`` is the server with a small client; ``page`` a wide window on it. What a page may never do, an error
in its script or a request to another host, fails the test that showed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from tests.e2e.browsing import Watch, chromium_path, new_context, watched
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config file of a small project, shared by the tests of a module; a module may make another."""
    return make_project(
        tmp_path_factory.mktemp("e2e") / "project",
        [
            scripted("Greets the guest", "hello there", "how are you"),
            scripted("Names the hours", "when do you open", pattern="nine o'clock"),
            scripted("Breaks down", "please break"),
        ],
    )


@pytest.fixture(scope="module")
def site(project: Path) -> Iterator[Site]:
    """Its server. A test that changes what others look at puts it back (``Site.changed``)."""
    built_ui()
    served = Site(project)
    served.apply()
    served.start()
    yield served
    served.stop()


@pytest.fixture(scope="module")
def contexts(browser: Browser, site: Site) -> Iterator[dict[str, BrowserContext]]:
    """By theme: the windows of a module share what was loaded once."""
    made: dict[str, BrowserContext] = {}
    yield made
    for context in made.values():
        context.close()


@pytest.fixture
def open_page(
    browser: Browser, site: Site, contexts: dict[str, BrowserContext]
) -> Iterator[Callable[..., Page]]:
    """Opens windows on the site: ``open_page(scheme="dark")``."""
    watches: list[Watch] = []

    def opened(*, scheme: str = "light") -> Page:
        if scheme not in contexts:
            contexts[scheme] = new_context(browser, site.url, scheme=scheme)
        watches.append(watched(contexts[scheme], site.url))
        return watches[-1].page

    yield opened
    for watch in watches:
        watch.page.close()
    for watch in watches:
        assert not watch.errors, f"errors in the page: {watch.errors}"
        assert not watch.outside, f"requests to other hosts: {watch.outside}"


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    return open_page()


@pytest.fixture
def spare(site: Site) -> Iterator[Any]:
    """A scenario that no eval uses; gone after the test."""
    made = site.post(
        "/api/scenarios", scripted("Spare", "hello {{guest}}", cases=[{"vars": {"guest": "Ann"}}])
    )
    yield made
    with suppress(HTTPError):
        site.delete(f"/api/scenarios/{made['id']}")
