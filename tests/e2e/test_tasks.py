"""Tasks of somebody new, each done in the browser within so many clicks, on what real runs left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from tests.e2e.browsing import Watch, check_pages, check_wide, new_context, watched
from tests.e2e.site import Site, built_ui
from tests.e2e.story import story_project, tell
from tests.support.projects import scripted


@dataclass(slots=True)
class Story:
    """A site with a past, and the ids of what happened."""

    site: Site
    ids: dict[str, str]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    built_ui()
    site = Site(story_project(tmp_path_factory.mktemp("shop")))
    site.apply()
    site.start()
    yield Story(site, tell(site))
    site.stop()


@dataclass(slots=True)
class Visitor:
    """Somebody who starts at Home; every click and every key is counted."""

    page: Page
    clicks: int = 0

    def click(self, target: Locator) -> None:
        self.clicks += 1
        target.click()

    def press(self, key: str) -> None:
        self.clicks += 1
        self.page.keyboard.press(key)


@pytest.fixture(scope="module")
def context(browser: Browser, story: Story) -> Iterator[BrowserContext]:
    context = new_context(browser, story.site.url)
    yield context
    context.close()


@pytest.fixture(scope="module")
def window(context: BrowserContext, story: Story) -> Watch:
    """One for all tasks: a visit goes Home in it, as people do, and need not load everything anew."""
    watch = watched(context, story.site.url)
    watch.page.goto("/")
    return watch


@pytest.fixture
def visitor(window: Watch) -> Iterator[Visitor]:
    watch = window
    watch.page.get_by_role("link", name="EvalStudio", exact=True).click()
    expect(watch.page.get_by_role("heading", name="Home")).to_be_visible()
    yield Visitor(watch.page)
    assert not watch.errors, f"errors in the page: {watch.errors}"
    assert not watch.outside, f"requests to other hosts: {watch.outside}"


def test_is_the_agent_better_or_worse_than_on_main(visitor: Visitor) -> None:
    card = visitor.page.get_by_role("article", name="Shop assistant")
    expect(card).to_contain_text("73%")
    expect(card).to_contain_text("22 of 30 passed")
    expect(card.get_by_label(re.compile("−20 points, 95% interval"))).to_be_visible()
    expect(card).to_contain_text("since main")
    expect(card).to_contain_text("2 regressed")
    expect(card).to_contain_text("1 requirement missed")
    assert visitor.clicks == 0


def test_which_scenario_got_worse_since_main_and_why(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(page.get_by_role("link", name="2 regressed"))
    table = page.get_by_role("table", name="Subjects")
    expect(table.get_by_role("row").filter(has_text="Refund status · shop fast")).to_contain_text("0 of 3")
    visitor.press("n")
    expect(page.get_by_role("heading", name="Refund status · shop", exact=False)).to_be_visible()
    verdicts = page.get_by_role("table", name="Verdicts").get_by_role("row")
    expect(verdicts.filter(has_text="says the right thing")).to_contain_text("no match for /on its way/")
    words = page.get_by_role("region", name="What was said differently")
    expect(words.locator("ins").filter(has_text="another")).to_be_visible()
    expect(words.locator("del").filter(has_text="find_order")).to_be_visible()
    for side in ("Base", "Candidate"):
        expect(page.get_by_role("region", name=f"{side} conversation")).to_contain_text("Where is my refund?")
    first = page.url
    visitor.press("n")
    expect(page.get_by_text("regressed, 2 of 2")).to_be_visible()
    visitor.press("p")
    expect(page).to_have_url(first)
    assert visitor.clicks <= 5


def test_open_a_conversation_that_newly_fails(visitor: Visitor) -> None:
    failures = visitor.page.get_by_role("table", name="New failures")
    row = failures.get_by_role("row").filter(has_text="Refund status").first
    expect(row).to_contain_text("3 of 3")
    expect(row).to_contain_text("0 of 3")
    visitor.click(row.get_by_role("link"))
    expect(visitor.page.get_by_text("Refunds are handled by another team.")).to_be_visible()
    assert visitor.clicks == 1


def test_find_a_scenario_by_its_name(visitor: Visitor) -> None:
    page = visitor.page
    visitor.press("Control+k")
    page.get_by_role("textbox", name=re.compile("Search scenarios")).fill("late")
    expect(page.get_by_role("option", name="Late parcel", exact=True)).to_be_visible()
    visitor.press("Enter")
    expect(page.get_by_role("heading", name="Late parcel", level=1)).to_be_visible()
    assert visitor.clicks == 2


def test_go_to_a_page_by_its_name(visitor: Visitor) -> None:
    visitor.click(visitor.page.get_by_role("button", name="Search"))
    visitor.page.get_by_role("textbox", name=re.compile("Search scenarios")).fill("settin")
    expect(visitor.page.get_by_role("option", name="Settings")).to_be_visible()
    visitor.press("Enter")
    expect(visitor.page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    assert visitor.clicks == 2


def test_which_runs_does_an_evaluator_fail(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(page.get_by_role("link", name="Evaluators"))
    visitor.click(page.get_by_role("link", name="Regex Match"))
    expect(page.get_by_role("img", name=re.compile("Passed over 4 executions"))).to_be_visible()
    expect(page.get_by_role("region", name="Where it is used")).to_contain_text("Late parcel")
    failures = page.get_by_role("table", name="Recent failures")
    expect(failures).to_contain_text("no match for /on its way/")
    assert visitor.clicks == 2


def test_which_evaluator_fails_most_this_week(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(page.get_by_role("link", name="Evaluators"))
    worst = page.get_by_role("table", name="Evaluators that fail most").get_by_role("row").nth(1)
    expect(worst).to_contain_text("says the right thing")
    expect(worst).to_contain_text("76 of 94")
    assert visitor.clicks == 1


def test_turn_this_failure_into_a_test(visitor: Visitor, story: Story) -> None:
    page = visitor.page
    failures = page.get_by_role("table", name="New failures")
    visitor.click(failures.get_by_role("row").filter(has_text="Refund status").first.get_by_role("link"))
    visitor.click(page.get_by_role("link", name="Make a scenario of it"))
    expect(page.get_by_text("Drafted from a run")).to_be_visible()
    name = page.get_by_role("textbox", name="Name").first
    expect(name).to_have_value(re.compile("Refund status"))
    name.fill("Refund is looked up")
    visitor.click(page.get_by_role("button", name="Create"))
    expect(page.get_by_role("heading", name="Refund is looked up", level=1)).to_be_visible()
    made = story.site.named("scenarios", "Refund is looked up")
    assert made["script"] == ["Hello", "Where is my refund?"]
    assert visitor.clicks == 3


def test_why_was_the_requirement_missed(visitor: Visitor) -> None:
    page = visitor.page
    latest = page.get_by_role("table", name="Executions").get_by_role("row").nth(1)
    visitor.click(latest.get_by_role("link"))
    requirements = page.get_by_role("table", name="Requirements").get_by_role("row")
    expect(requirements.filter(has_text="pass rate at least")).to_contain_text("22 of 30 passed")
    expect(requirements.filter(has_text="Missed")).to_have_count(1)
    used = page.get_by_role("table", name="Cost and tokens by role").get_by_role("row")
    expect(used.filter(has_text="Agent")).to_contain_text("not known")
    assert visitor.clicks == 1


def test_many_cases_come_from_a_spreadsheet(visitor: Visitor, story: Story) -> None:
    page = visitor.page
    body = scripted("Cities", "To {{city}}?", cases=[{"vars": {"city": "Rome"}}])
    scenario = story.site.post("/api/scenarios", body)
    page.goto(f"/scenarios/{scenario['id']}")
    visitor.click(page.get_by_role("button", name="Paste or upload"))
    dialog = page.get_by_role("dialog", name="Cases from CSV or JSONL")
    dialog.get_by_label("Text").fill("name,city\nin town,Bern,too many")
    visitor.click(dialog.get_by_role("button", name="Add cases"))
    expect(dialog.get_by_role("alert")).to_contain_text("pasted.csv:2")
    dialog.get_by_label("Text").fill("name,city\nin town,Bern\nfar away,Geneva")
    visitor.click(dialog.get_by_role("button", name="Add cases"))
    expect(page.get_by_label("city in case 3")).to_have_value("Geneva")
    visitor.click(page.get_by_role("button", name="Save", exact=True))
    expect(page.get_by_text('Saved "Cities"')).to_be_visible()
    kept = story.site.named("scenarios", "Cities")["cases"]
    assert [(one["name"], one["vars"]) for one in kept[1:]] == [
        ("in town", {"city": "Bern"}),
        ("far away", {"city": "Geneva"}),
    ]


def test_how_flaky_is_a_scenario_and_on_which_connector(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(
        page.get_by_role("region", name="Flakiest").get_by_role("link", name="Late parcel · shop fast")
    )
    visitor.click(page.get_by_text("Results", exact=True))
    expect(page.get_by_role("region", name="Flakiness")).to_contain_text("Late parcel · shop fast")
    expect(page.get_by_role("region", name="On shop fast")).to_contain_text("6 of 9")
    expect(page).to_have_url(re.compile("view=results"))
    assert visitor.clicks == 2


def test_a_scenario_as_a_file_and_a_copy_of_it(visitor: Visitor, story: Story) -> None:
    page = visitor.page
    visitor.click(page.get_by_role("link", name="Scenarios"))
    # The page before it may still be there, and links to runs of this scenario.
    visitor.click(page.locator('main a[href^="/scenarios/"]', has_text="Greeting"))
    visitor.click(page.get_by_text("YAML", exact=True))
    expect(page.get_by_label("YAML of the scenario")).to_contain_text("name: Greeting")
    visitor.click(page.get_by_role("button", name="Duplicate"))
    expect(page.get_by_role("heading", name="Greeting (copy)", level=1)).to_be_visible()
    copy = story.site.named("scenarios", "Greeting (copy)")
    assert copy["script"] == ["Hi there"]
    assert visitor.clicks == 4


def test_each_scenario_by_commit_and_connector(visitor: Visitor) -> None:
    page = visitor.page
    visitor.click(
        page.get_by_role("article", name="Shop assistant").get_by_role("link", name="Shop assistant")
    )
    matrix = page.get_by_role("table", name="Scenarios by executions")
    expect(matrix.get_by_role("columnheader").filter(has_text="c0dec0de")).to_be_visible()
    visitor.click(matrix.get_by_role("button", name="Connectors of Refund status"))
    expect(matrix.get_by_role("row").filter(has_text="shop fast")).to_contain_text("0/3")
    assert visitor.clicks == 2


def test_make_this_execution_the_baseline(visitor: Visitor, story: Story) -> None:
    page = visitor.page
    visitor.click(
        page.get_by_role("article", name="Opening hours only").get_by_role("link", name="Opening hours")
    )
    visitor.click(page.get_by_role("button", name="Set baseline"))
    expect(page.get_by_text('"main" is set')).to_be_visible()
    expect(page.get_by_role("button", name="Remove baseline main")).to_be_visible()
    kept = story.site.get(f"/api/baselines?evalId={story.site.named('evals', 'Opening hours only')['id']}")
    assert [one["executionId"] for one in kept] == [story.ids["hours"]]
    assert visitor.clicks == 2


def test_compare_two_connectors_of_one_execution(visitor: Visitor, story: Story) -> None:
    page = visitor.page
    last = story.ids["shorter"]
    query = f"base={last}&candidate={last}&baseConnector=shop&candidateConnector=shop%20fast"
    page.goto(f"/compare?{query}")
    expect(page.get_by_role("region", name="Candidate", exact=True)).to_contain_text("shop fast")
    expect(page.get_by_role("tab", name=re.compile("Unchanged"))).to_contain_text("4")
    expect(page.get_by_role("table", name="Measures")).to_contain_text("response-length")


def test_pages_are_accessible_and_nothing_moves_while_they_load(visitor: Visitor, story: Story) -> None:
    page, ids = visitor.page, story.ids
    scenario, chosen = (story.site.named(*one)["id"] for one in _NAMED)
    compared = f"/compare?base={ids['main']}&candidate={ids['shorter']}"
    page.goto(compared)
    page.get_by_role("table", name="Subjects").get_by_role("link").first.click()
    page.get_by_role("region", name="What was said differently").wait_for()
    opened = page.url.removeprefix(story.site.url)
    paths = ["/", "/compare", compared, opened, f"/scenarios/{scenario}?view=results"]
    paths += [f"/scenarios/{scenario}?view=yaml", f"/evals/{chosen}", "/evaluators/regex"]
    paths += ["/evaluators", f"/executions/{ids['shorter']}", f"/evals/{chosen}/edit"]
    check_pages(page, paths)
    page.keyboard.press("Control+k")
    page.get_by_role("option").first.wait_for()
    check_wide(page)


_NAMED = (("scenarios", "Refund status"), ("evals", "Shop assistant"))
