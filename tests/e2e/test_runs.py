"""All runs of the project, an execution's parts, and what is done with a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browsing import check_pages
from tests.e2e.site import Site
from tests.support.projects import make_project, scripted


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(
        tmp_path_factory.mktemp("runs") / "project",
        [
            scripted("Greets the guest", "hello there", tags=["polite"]),
            scripted("Names the hours", "when do you open", pattern="nine o'clock"),
            scripted("Breaks down", "please break"),
        ],
    )


@pytest.fixture(scope="module")
def done(site: Site) -> Any:
    return site.executed(repetitions=2)


def test_runs_are_narrowed_in_the_address_and_views_are_kept(site: Site, done: Any, page: Page) -> None:
    page.goto("/runs")
    table = page.get_by_role("table", name="Runs")
    expect(table).to_have_attribute("aria-rowcount", "7")
    page.get_by_label("What was said").fill("WHEN do you")
    expect(table).to_have_attribute("aria-rowcount", "3")
    expect(page).to_have_url(re.compile("said=WHEN"))
    page.get_by_role("button", name="More filters").click()
    page.get_by_label("Evaluator", exact=True).fill("regex")
    page.get_by_role("combobox", name="It found").click()
    page.get_by_role("option", name="Fail").click()
    expect(page).to_have_url(re.compile("verdict=fail"))
    expect(table).to_have_attribute("aria-rowcount", "3")
    page.get_by_role("button", name="Save view").click()
    page.get_by_label("Name of the view").fill("Wrong hours")
    page.get_by_label("Name of the view").press("Enter")

    table.get_by_role("link", name="Names the hours").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Names the hours")
    page.go_back()
    expect(table).to_have_attribute("aria-rowcount", "3")
    page.get_by_role("button", name="Clear").click()
    expect(table).to_have_attribute("aria-rowcount", "7")
    page.get_by_role("button", name="Saved views").click()
    page.get_by_role("menuitem", name="Wrong hours").click()
    expect(table).to_have_attribute("aria-rowcount", "3")


def test_an_execution_is_sorted_grouped_exported_and_run_again(site: Site, done: Any, page: Page) -> None:
    page.goto(f"/executions/{done['id']}")
    page.get_by_role("button", name="Scenario", exact=True).click()
    expect(page).to_have_url(re.compile("sort=name"))
    rows = page.get_by_role("table", name="Runs")
    expect(rows.get_by_role("row").nth(1)).to_contain_text("Breaks down")
    rows.get_by_role("link", name="Breaks down").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Breaks down")
    page.go_back()
    expect(rows.get_by_role("row").nth(1)).to_contain_text("Breaks down")

    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="regex").check()
    page.get_by_role("checkbox", name="latency").check()
    page.keyboard.press("Escape")
    expect(rows.get_by_role("columnheader", name="regex")).to_be_visible()
    expect(page).to_have_url(re.compile("columns=.*regex.*latency"))
    hours = rows.get_by_role("row").filter(has_text="Names the hours").first
    expect(hours.get_by_role("cell").nth(8)).to_have_text("Fail")
    expect(hours.get_by_role("cell").nth(9)).to_contain_text(" ms")
    page.reload()
    rows.get_by_role("button", name="regex").click()
    expect(rows.get_by_role("row").nth(1)).to_contain_text("Names the hours")

    groups = page.get_by_role("radiogroup", name="Group runs by")
    groups.get_by_text("By tag", exact=True).click()
    tags = page.get_by_role("table", name="Runs by tag").get_by_role("row")
    expect(tags.filter(has_text="polite")).to_contain_text("2 of 2")
    expect(tags.filter(has_text="no tag")).to_contain_text("0 of 2")
    groups.get_by_text("By scenario", exact=True).click()
    expect(page).to_have_url(re.compile("group=scenario"))
    group = page.get_by_role("table", name="Runs by scenario").get_by_role("row", name="Greets the guest")
    expect(group).to_contain_text("2 of 2")

    groups.get_by_text("By evaluator", exact=True).click()
    checks = page.get_by_role("table", name="Runs by evaluator").get_by_role("row")
    expect(checks.nth(1)).to_contain_text("regex")
    expect(page.get_by_role("table", name="Cost and tokens by role")).to_contain_text("Simulated user")
    expect(page.get_by_role("img", name=re.compile("^Latency: .* from .* ms"))).to_be_visible()

    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="CSV").click()
    assert "Names the hours" in Path(download.value.path()).read_text()
    expect(page.get_by_role("main").get_by_role("link", name="Compare")).to_have_attribute(
        "href", re.compile(f"/compare\\?base=.*candidate={done['id']}")
    )
    page.get_by_role("button", name="Run again").click()
    page.get_by_role("menuitem", name="What failed, errored or was cancelled").click()
    expect(page).not_to_have_url(re.compile(done["id"]))
    expect(page.get_by_text("of 2 runs done")).to_be_visible()

    page.goto(f"/executions/{done['id']}")
    page.get_by_role("checkbox", name="Select Greets the guest, repetition 1").check()
    page.get_by_role("button", name="Run again").click()
    page.get_by_role("menuitem", name="What is selected (1 row)").click()
    expect(page).not_to_have_url(re.compile(done["id"]))
    expect(page.get_by_text("1 of 1 run done")).to_be_visible()
    expect(rows.get_by_role("row").nth(1)).to_contain_text("Greets the guest")


def test_a_run_is_searched_marked_rescored_and_run_again(site: Site, done: Any, page: Page) -> None:
    runs = [run for run in site.runs(done["id"]) if run["scenarioName"] == "Names the hours"]
    page.goto(f"/runs/{runs[0]['id']}")
    page.get_by_label("Search the conversation").fill("you open")
    expect(page.get_by_text("1 of 2", exact=True)).to_be_visible()
    expect(page.locator("section[aria-label=Transcript] mark").first).to_have_text("you open")
    page.get_by_label("Why").fill("it never said nine")
    page.get_by_role("button", name="Bad").click()
    expect(page.get_by_label("Marks of people")).to_contain_text("Bad · it never said nine")
    page.get_by_role("button", name="Rescore").click()
    expect(page.get_by_text("Today's evaluators say: Fail (unchanged)")).to_be_visible()
    page.get_by_text("Definitions as they were").click()
    expect(page.get_by_label("Scenario as it was")).to_contain_text("when do you open")
    page.get_by_role("link", name="Previous run").click()
    expect(page).not_to_have_url(re.compile(runs[0]["id"]))
    page.get_by_role("link", name="Next run").click()
    expect(page).to_have_url(re.compile(runs[0]["id"]))
    page.get_by_role("button", name="Run again").click()
    expect(page).not_to_have_url(re.compile(runs[0]["id"]))
    expect(page.get_by_role("heading", level=1)).to_have_text("Names the hours")


def test_these_pages_are_accessible_and_fit_narrow_windows(site: Site, done: Any, page: Page) -> None:
    [first, *_] = site.runs(done["id"])
    grouped = f"/executions/{done['id']}?group=scenario"
    columns = f"/executions/{done['id']}?columns=%5B%22regex%22%2C%22latency%22%5D"
    check_pages(page, ["/runs?metric=latency", grouped, columns, f"/runs/{first['id']}?turn=1"])
