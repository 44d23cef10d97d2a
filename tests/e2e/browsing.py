"""Windows that are watched: errors, requests to other hosts, long tasks, accessibility, width."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from playwright.sync_api import Browser, BrowserContext, Page, expect

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
# The first is the same browser without what draws its own windows: a page costs a third less CPU in it.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Every rule once in each theme, wide in one and narrow in the other. What only wide windows show, such as the
# navigation, is much the same on all pages: its colours in the dark are looked at on the first.
_COLOURS = ("color-contrast", "link-in-text-block")
_Look = tuple[int, Literal["light", "dark"], tuple[str, ...]]
_LOOKS: tuple[_Look, ...] = ((1280, "light", ()), (400, "dark", ()))
_WIDE_IN_THE_DARK: _Look = (1280, "dark", _COLOURS)
MOST_SHIFT = 0.05

_OBSERVING = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({ type: 'layout-shift', buffered: true });
"""
# The trace holds all windows of the browser, its own too: the mark tells which process draws the page.
_MARK = "the page that is measured"
_TRACED = ["devtools.timeline", "disabled-by-default-devtools.timeline"]


@dataclass(slots=True)
class Watch:
    """A window and what it must not have done."""

    page: Page
    errors: list[str] = field(default_factory=list[str])
    outside: list[str] = field(default_factory=list[str])


def chromium_path() -> str:
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    assert found, "The browser tests need Chromium: sudo apt-get install chromium"
    return found


def new_context(browser: Browser, url: str, *, scheme: str = "light") -> BrowserContext:
    """Where windows on a site are opened; they share what was loaded."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": 1280, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    context.set_default_timeout(15_000)
    context.add_init_script(_OBSERVING)
    return context


def watched(context: BrowserContext, url: str) -> Watch:
    """A new window; what goes wrong in it is written down."""
    watch = Watch(_new_tab(context))
    watch.page.on("pageerror", lambda error: watch.errors.append(str(error)))
    watch.page.on(
        "request",
        lambda request: (
            None if request.url.startswith((url, "data:", "blob:")) else watch.outside.append(request.url)
        ),
    )
    return watch


def _new_tab(context: BrowserContext) -> Page:
    """Beside an empty page that stays: a browser's window takes longer to open than most tests take."""
    empty = context.pages[0] if context.pages else context.new_page()
    with context.expect_page() as opened:
        empty.evaluate("() => { window.open('about:blank', '_blank', 'noopener'); }")
    return opened.value


@contextmanager
def measured_tasks(page: Page) -> Iterator[list[float]]:
    """The milliseconds that each task of the page's main thread took, longest first; filled at the end.

    It is the time that the thread had a processor (`tdur` of the trace): on a busy machine the clock
    also counts how long other processes kept the page waiting, which says nothing about the page.
    """
    browser = page.context.browser
    assert browser is not None
    times: list[float] = []
    browser.start_tracing(page=page, categories=_TRACED)
    try:
        yield times
        page.evaluate("(mark) => console.timeStamp(mark)", _MARK)
    finally:
        trace = browser.stop_tracing()
    times += sorted(_task_times(json.loads(trace)["traceEvents"]), reverse=True)


def _task_times(events: list[dict[str, Any]]) -> list[float]:
    marked = {
        event["pid"] for event in events if event.get("args", {}).get("data", {}).get("message") == _MARK
    }
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [event for event in events if event["name"] == "RunTask" and event["pid"] in marked]
    times = [task["tdur"] / 1_000 for task in tasks if (task["pid"], task["tid"]) in main and "tdur" in task]
    assert times, "the trace has no task of the page"
    return times


def violations(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """What axe finds wrong with the page as it is shown now, by all of its rules or by some; each with the
    first place it was found at."""
    assert AXE.exists(), "axe-core is not installed; run: make web"
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = cast("dict[str, Any]", page.evaluate("(options) => axe.run(document, options)", options))
    return [
        f"{one['id']}: {one['help']} at {one['nodes'][0]['target']} {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
    ]


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    measure = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    return int(page.evaluate(measure))


def check_pages(page: Page, paths: list[str]) -> None:
    """Nothing moves while a page loads; in both themes, wide and narrow, axe finds nothing wrong and nothing
    is wider than the window."""
    for place, path in enumerate(paths):
        page.goto(path)
        page.get_by_role("heading", level=1).wait_for()
        expect(page.locator("[aria-busy], .mantine-Skeleton-root")).to_have_count(0)
        shift = page.evaluate("window.shifted")
        assert shift <= MOST_SHIFT, (path, shift)
        _check_looks(page, path, (_WIDE_IN_THE_DARK, *_LOOKS) if place == 0 else _LOOKS)
        page.set_viewport_size({"width": 1280, "height": 800})
        page.emulate_media(color_scheme="light", reduced_motion="reduce")


def check_wide(page: Page) -> None:
    """What is open now, a menu or a dialog, is right in both themes."""
    _check_looks(page, page.url, ((1280, "light", ()), _WIDE_IN_THE_DARK))
    page.emulate_media(color_scheme="light", reduced_motion="reduce")


def _check_looks(page: Page, path: str, looks: Sequence[_Look]) -> None:
    for width, scheme, rules in looks:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 800})
        assert not (found := violations(page, rules)), (path, scheme, width, found)
        assert overflow(page) <= 0, (path, scheme, width)
