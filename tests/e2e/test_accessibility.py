"""The pages of definitions: axe finds nothing wrong, in both themes, and they fit a phone's width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.e2e.browsing import check_pages, check_wide
from tests.e2e.editing import wording_project
from tests.e2e.site import Site


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios in an eval, and a plugin's evaluator."""
    return wording_project(tmp_path_factory.mktemp("words") / "project")


def test_pages_of_definitions(site: Site, page: Page) -> None:
    connector = site.named("connectors", "agent")
    guest = {"name": "Guest", "headers": {"X-Token": "hush"}, "connectorIds": [connector["id"]]}
    persona = site.post("/api/personas", guest)
    everything: list[Any] = [
        {"type": one["type"], "config": {}}
        for one in site.get("/api/evaluator-types")
        if one["kind"] == "metric"
    ]
    wording = {"type": "house-wording", "config": {"words": ["echo"]}}
    rules = {"type": "rule-based", "config": {"rules": [{"config": {"type": "length", "min": 1}}]}}
    site.put_scenario(
        "Greets the guest",
        script=["hello {{guest}}"],
        cases=[{"vars": {"guest": "Ann"}}],
        evaluators=[wording, rules, *everything],
        personaIds=[persona["id"]],
    )
    full = site.named("scenarios", "Greets the guest")
    site.executed()
    paths = ["/scenarios", f"/scenarios/{full['id']}", "/scenarios/new", "/personas"]
    paths += [f"/personas/{persona['id']}", "/connectors", f"/connectors/{connector['id']}"]
    paths += ["/connectors/new", "/settings", "/evaluators/house-wording", "/evaluators/latency"]
    check_pages(page, paths)


def test_menus_panels_and_dialogs_are_accessible(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    page.get_by_role("button", name="Add evaluator").click()
    page.get_by_role("menuitem").first.wait_for()
    check_wide(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Try it").click()
    panel = page.get_by_role("dialog", name="Try it")
    panel.get_by_role("button", name="Run", exact=True).click()
    panel.get_by_role("link", name="Open the run").wait_for()
    check_wide(page)
    panel.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for()
    check_wide(page)
