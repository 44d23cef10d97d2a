"""The HTML report in Chromium with the network off: it shows all, asks for nothing and runs nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.reporting.test_reports import HOSTILE, Source, made, source

from evalstudio.reporting.reports import write_reports, writer_for


def _written(report: Source, path: Path) -> None:
    with path.open("w", encoding="utf-8", errors="replace") as file:
        asyncio.run(write_reports(report, [writer_for("html", file)]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_works_offline_and_hostile_text_is_text(
    browser: Browser, tmp_path: Path, scheme: str
) -> None:
    path = tmp_path / "report.html"
    report = source([made(1, "pass", "steady"), made(1, "fail", HOSTILE, HOSTILE)], title="nightly")
    # The event loop of the browser runs in this thread.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(_written, report, path).result()
    context = browser.new_context(offline=True, color_scheme=scheme)  # pyright: ignore[reportArgumentType]
    page = context.new_page()
    said: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    assert page.locator("h1").inner_text() == "nightly: failed"
    assert page.locator("svg").count() >= 1
    page.locator("summary").first.click()
    assert "alert(1)" in page.locator("details pre").nth(1).inner_text()
    assert page.locator("script").count() == 0
    assert (said, requests) == ([], [path.as_uri()])
    context.close()
