"""Making, changing and deleting definitions in the web UI, and trying a scenario beside its editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.browsing import overflow, violations
from tests.e2e.editing import (
    add_evaluator,
    choose,
    field,
    make_connector,
    make_persona,
    make_scenario,
    save,
    wording_project,
)
from tests.e2e.site import Site
from tests.support.projects import scripted

MASK = "********"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two scenarios in an eval, and a plugin's evaluator."""
    return wording_project(tmp_path / "project")


@pytest.fixture
def spare(site: Site) -> Any:
    """A scenario that no eval uses."""
    return site.post(
        "/api/scenarios", scripted("Spare", "hello {{guest}}", cases=[{"vars": {"guest": "Ann"}}])
    )


def test_an_agent_a_persona_and_a_scenario_are_made_tried_and_seen_to_finish(site: Site, page: Page) -> None:
    make_connector(page)
    expect(field(page, "Value of header 1")).to_have_value(MASK)
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_text(re.compile(r"The agent answered in .* ms"))).to_be_visible()
    assert site.named("connectors", "House agent")["headers"] == {"Authorization": MASK}

    make_persona(page)
    expect(page.get_by_text("You are Hurried guest")).to_be_visible()

    make_scenario(page)
    kept = site.named("scenarios", "Says the right words")
    assert kept["personaIds"] == [site.named("personas", "Hurried guest")["id"]]
    assert [one["config"] for one in kept["evaluators"]] == [
        {
            "words": ["echo", "welcome"],
            "style": "exact",
            "shout": True,
            "tone": {"mood": "lively", "loudest": 0.25},
        },
        {"unit": "words"},
    ]

    page.get_by_role("button", name="Try it").click()
    panel = page.get_by_role("dialog", name="Try it")
    choose(page, "Connector", "House agent")
    panel.get_by_role("button", name="Run", exact=True).click()
    stand = panel.get_by_role("status", name="Where the run stands")
    expect(stand).to_contain_text("Running")
    expect(panel.get_by_text("echo: hello wait=1")).to_be_visible()
    expect(stand).to_contain_text("Running")
    expect(stand).to_contain_text("Pass")
    expect(panel.get_by_text("echo: goodbye wait=1")).to_be_visible()
    expect(panel.get_by_text("House Wording")).to_be_visible()
    panel.get_by_role("link", name="Open the run").click()
    expect(page).to_have_url(re.compile("/runs/"))


def test_the_menu_groups_what_can_be_checked_and_measured(site: Site, page: Page) -> None:
    page.goto("/scenarios/new")
    page.get_by_role("button", name="Add evaluator").click()
    items = page.get_by_role("menuitem")
    kinds = {one["type"]: one["kind"] for one in site.get("/api/evaluator-types")}
    expect(items).to_have_count(len(kinds))
    expect(page.get_by_text("Assertions", exact=True)).to_be_visible()
    expect(page.get_by_text("Metrics", exact=True)).to_be_attached()
    page.keyboard.press("Escape")
    card = add_evaluator(page, "Tool Call Count")
    expect(card.get_by_text("Metric", exact=True)).to_be_visible()
    expect(card.get_by_role("textbox")).to_have_count(1)
    page.get_by_role("button", name="Remove evaluator 1").click()
    expect(card).to_have_count(0)


class TestConflict:
    """Two people change the same scenario."""

    @pytest.fixture
    def mine(self, site: Site, spare: Any, open_page: Callable[..., Page]) -> Page:
        """A tab with unsaved changes to what another tab has saved meanwhile."""
        mine, theirs = open_page(), open_page()
        for tab in (mine, theirs):
            tab.goto(f"/scenarios/{spare['id']}")
        field(mine, "Instructions").fill("mine")
        field(theirs, "Instructions").fill("theirs")
        save(theirs)
        mine.get_by_role("button", name="Save", exact=True).click()
        expect(mine.get_by_role("dialog", name="Changed by somebody else")).to_be_visible()
        assert site.named("scenarios", "Spare")["instructions"] == "theirs"
        return mine

    def test_overwriting_keeps_ones_own(self, site: Site, mine: Page) -> None:
        mine.get_by_role("button", name="Overwrite").click()
        expect(mine.get_by_text("All changes saved")).to_be_visible()
        expect(field(mine, "Instructions")).to_have_value("mine")
        assert site.named("scenarios", "Spare")["instructions"] == "mine"

    def test_reloading_shows_the_other(self, site: Site, mine: Page) -> None:
        mine.get_by_role("button", name="Reload").click()
        expect(field(mine, "Instructions")).to_have_value("theirs")
        expect(mine.get_by_text("All changes saved")).to_be_visible()
        assert site.named("scenarios", "Spare")["instructions"] == "theirs"

    def test_one_may_go_on_editing_and_decide_later(self, site: Site, mine: Page) -> None:
        mine.keyboard.press("Escape")
        expect(field(mine, "Instructions")).to_have_value("mine")
        mine.keyboard.press("Control+s")
        expect(mine.get_by_role("dialog", name="Changed by somebody else")).to_be_visible()


def test_deleting_asks_first(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name='Delete scenario "Spare"?')
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).to_have_count(0)
    assert site.named("scenarios", "Spare")
    page.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(f"{site.url}/scenarios")
    expect(page.get_by_role("link", name="Greets the guest", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Spare", exact=True)).to_have_count(0)
    with pytest.raises(HTTPError, match="404"):
        site.get(f"/api/scenarios/{spare['id']}")


def test_what_is_in_use_says_so_and_stays(site: Site, page: Page) -> None:
    page.goto(f"/connectors/{site.named('connectors', 'agent')['id']}")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.get_by_role("alert")).to_contain_text("all")
    assert site.named("connectors", "agent")


def test_unsaved_changes_are_not_left_behind_unasked(site: Site, spare: Any, page: Page) -> None:
    page.goto("/scenarios")
    page.get_by_role("link", name="Spare", exact=True).click()
    field(page, "Instructions").fill("half done")
    page.get_by_role("link", name="Personas", exact=True).click()
    dialog = page.get_by_role("dialog", name="Leave without saving?")
    dialog.get_by_role("button", name="Stay").click()
    expect(field(page, "Instructions")).to_have_value("half done")
    page.go_back()
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Stay").click()
    expect(page).to_have_url(re.compile(spare["id"]))
    page.get_by_role("link", name="Personas", exact=True).click()
    dialog.get_by_role("button", name="Leave").click()
    expect(page).to_have_url(f"{site.url}/personas")
    page.go_back()
    expect(field(page, "Instructions")).to_have_value("")
    page.get_by_role("link", name="Connectors", exact=True).click()
    expect(page).to_have_url(f"{site.url}/connectors")


def test_what_the_server_refuses_is_shown_where_it_belongs(site: Site, page: Page) -> None:
    page.goto("/scenarios/new")
    page.get_by_role("button", name="Add script message").click()
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("must not be blank", exact=True)).to_be_visible()
    expect(page.get_by_text("message 1 of the script is blank", exact=True)).to_be_visible()
    field(page, "Name").fill("Odd")
    expect(page.get_by_text("must not be blank", exact=True)).to_have_count(0)
    field(page, "Script message 1").fill("hello")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("region", name="Evaluators")).to_contain_text("nothing judges this scenario")
    add_evaluator(page, "Latency Budget").get_by_label("Max ms").fill("10")
    card = add_evaluator(page, "Regex Match")
    page.get_by_role("button", name="Create").click()
    expect(field(card, "Pattern")).to_have_attribute("aria-invalid", "true")
    expect(card.get_by_role("listitem")).to_contain_text("pattern: Field required")
    field(card, "Pattern").fill("(")
    page.get_by_role("button", name="Create").click()
    expect(card.get_by_role("listitem")).to_contain_text("bad pattern")
    field(card, "Pattern").fill("echo")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Odd")).to_be_visible()


def test_half_written_json_is_not_saved(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    field(page, "Context").fill('{"order": ')
    field(page, "Instructions").fill("more")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert", name="Not saved")).to_contain_text("Context: This is not JSON yet")
    field(page, "Context").fill('{"order": 3}')
    save(page)
    assert site.named("scenarios", "Spare")["context"] == {"order": 3}


def test_messages_are_put_in_order_with_buttons_and_keys(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    for number, text in enumerate(("second", "third"), 2):
        page.get_by_role("button", name="Add script message").click()
        field(page, f"Script message {number}").fill(text)
    page.get_by_role("button", name="Move script message 3 up").click()
    field(page, "Script message 2").press("Alt+ArrowUp")
    expect(field(page, "Script message 1")).to_be_focused()
    page.get_by_role("button", name="Remove script message 3").click()
    for number, (role, text) in enumerate((("assistant", "Welcome!"), ("system", "Be kind.")), 1):
        page.get_by_role("button", name="Add seed message").click()
        page.get_by_label(f"Role of seed message {number}").select_option(role)
        field(page, f"Seed message {number}").fill(text)
    field(page, "Seed message 2").press("Alt+ArrowUp")
    save(page)
    kept = site.named("scenarios", "Spare")
    assert kept["script"] == ["third", "hello {{guest}}"]
    assert [(one["role"], one["content"]) for one in kept["messages"]] == [
        ("system", "Be kind."),
        ("assistant", "Welcome!"),
    ]


def test_cases_are_a_table_with_a_column_for_each_placeholder(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    field(page, "Script message 1").fill("hello {{guest}}, table for {{people}}")
    field(page, "people in case 1").fill("4")
    page.get_by_role("button", name="Add case").click()
    field(page, "Name of case 2").fill("ünïcode 🙂")
    field(page, "guest in case 2").fill('"007"')
    field(page, "people in case 2").fill("many")
    field(page, "Ground truth of case 2").fill('{"booked": true}')
    save(page)
    first, second = site.named("scenarios", "Spare")["cases"]
    assert first["vars"] == {"guest": "Ann", "people": 4}
    assert second["name"] == "ünïcode 🙂"
    assert second["vars"] == {"guest": "007", "people": "many"}
    assert second["groundTruth"] == {"booked": True}
    page.get_by_text("File", exact=True).click()
    field(page, "File of cases").fill("../outside.csv")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert", name="Not saved")).to_contain_text("leads out of the project folder")


def test_criteria_limits_and_gates_are_kept(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    field(page, "Success criteria").fill("The guest is greeted")
    field(page, "Failure criteria").fill("The guest is insulted")
    page.get_by_label("After every turn, and end the conversation when met").check()
    field(page, "Most messages").fill("6")
    page.get_by_label("Stop at the first failure").uncheck()
    card = page.get_by_role("region", name="Evaluator 1: Regex Match")
    card.get_by_label("Gate").select_option("finally")
    field(card, "Name").fill("echoes")
    page.get_by_role("button", name="Add criterion").click()
    weighted = page.get_by_role("region", name="Weighted criteria")
    field(weighted, "Name").fill("kindness")
    weighted.get_by_role("combobox", name="Scale").fill("numeric")
    field(weighted, "Weight").fill("2.5")
    field(weighted, "Lowest score").fill("1")
    field(weighted, "Highest score").fill("10")
    save(page)
    kept = site.named("scenarios", "Spare")
    assert kept["failureCriteriaMode"] == "every_turn"
    assert (kept["maxMessages"], kept["stopOnFailure"]) == (6, False)
    assert (kept["evaluators"][0]["gate"], kept["evaluators"][0]["name"]) == ("finally", "echoes")
    [criterion] = kept["criteria"]
    assert (criterion["scale"], criterion["weight"], criterion["range"]) == ("numeric", 2.5, [1, 10])


def test_a_secret_is_replaced_only_when_it_is_typed_anew(site: Site, page: Page) -> None:
    make_connector(page)
    field(page, "Name").fill("Renamed agent")
    save(page)
    assert site.named("connectors", "Renamed agent")["headers"] == {"Authorization": MASK}
    page.get_by_role("button", name="Add header").click()
    field(page, "Name of header 2").fill("authorization")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("This header is already there", exact=True)).to_be_visible()
    field(page, "Name of header 2").fill("X-Team")
    field(page, "Value of header 2").fill("${TEAM}")
    save(page)
    assert site.named("connectors", "Renamed agent")["headers"]["X-Team"] == "${TEAM}"


def test_scenarios_are_found_by_words_and_tags(site: Site, spare: Any, page: Page) -> None:
    site.executed()
    page.goto("/scenarios")
    rows = page.get_by_role("main").get_by_role("listitem")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="Greets the guest")).to_contain_text("Pass")
    expect(rows.filter(has_text="Spare")).to_contain_text("Never ran")
    field(page, "Search scenarios").fill("HOURS")
    expect(rows).to_have_count(1)
    field(page, "Search scenarios").fill("")
    choose(page, "Only with these tags", "polite")
    expect(rows).to_have_count(1)


def test_thousands_of_scenarios_scroll(site: Site, page: Page) -> None:
    for number in range(600):
        site.post("/api/scenarios", scripted(f"Number {number}", "hello"))
    page.goto("/scenarios")
    expect(page.get_by_text("602 scenarios")).to_be_visible()
    assert page.get_by_role("main").get_by_role("listitem").count() < 60
    page.mouse.move(600, 500)
    for _ in range(30):
        page.mouse.wheel(0, 3_000)
    expect(page.get_by_role("link", name="Greets the guest", exact=True)).to_be_visible()


def test_the_catalogue_and_the_settings_tell_what_is_there(site: Site, page: Page) -> None:
    page.goto("/evaluators")
    field(page, "Search evaluators").fill("words of the house")
    page.get_by_role("link", name="House Wording").click()
    expect(page.get_by_role("row").filter(has_text="tone.mood")).to_contain_text('"calm" | "lively"')
    expect(page.get_by_role("row").filter(has_text="words")).to_contain_text("required")
    expect(page.locator("pre")).to_contain_text('"type": "house-wording"')
    page.goto("/settings")
    expect(page.get_by_text("SQLite")).to_be_visible()
    expect(page.get_by_text("No model is set up")).to_be_visible()
    expect(page.get_by_text("./wording.py", exact=True)).to_be_visible()
    page.get_by_role("link", name="house-wording").click()
    expect(page.get_by_role("heading", name="House Wording")).to_be_visible()


def test_what_is_not_there_says_so(site: Site, page: Page) -> None:
    for noun in ("scenarios", "personas", "connectors"):
        page.goto(f"/{noun}/nowhere")
        expect(page.get_by_role("alert")).to_contain_text("Not found")
    page.goto("/evaluators/nowhere")
    expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    page.goto("/personas")
    expect(page.get_by_role("heading", name="No personas yet")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_editing_pages_are_accessible_and_fit_narrow_windows(
    site: Site, spare: Any, open_page: Callable[..., Page], scheme: str
) -> None:
    persona = site.post("/api/personas", {"name": "Guest", "headers": {"X-Token": "hush"}})
    connector = site.named("connectors", "agent")
    everything: list[Any] = [
        {"type": one["type"], "config": {}}
        for one in site.get("/api/evaluator-types")
        if one["kind"] == "metric"
    ]
    wording = {"type": "house-wording", "config": {"words": ["echo"]}}
    rules = {"type": "rule-based", "config": {"rules": [{"config": {"type": "length", "min": 1}}]}}
    site.put_scenario(
        "Greets the guest", evaluators=[wording, rules, *everything], personaIds=[persona["id"]]
    )
    full = site.named("scenarios", "Greets the guest")
    site.executed()
    paths = ["/scenarios", f"/scenarios/{full['id']}", f"/scenarios/{spare['id']}", "/scenarios/new"]
    paths += ["/personas", f"/personas/{persona['id']}", "/personas/new", "/connectors"]
    paths += [f"/connectors/{connector['id']}", "/connectors/new", "/evaluators", "/settings"]
    paths += ["/evaluators/house-wording", "/evaluators/rule-based", "/evaluators/latency"]
    for width in (1280, 400):
        page = open_page(scheme=scheme, width=width)
        for path in paths:
            page.goto(path)
            page.get_by_role("heading", level=1).wait_for()
            expect(page.locator("[aria-busy], .mantine-Skeleton-root")).to_have_count(0)
            assert not violations(page), (path, width, violations(page))
            assert overflow(page) <= 0, (path, width)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_menus_panels_and_dialogs_are_accessible(
    site: Site, spare: Any, open_page: Callable[..., Page], scheme: str
) -> None:
    page = open_page(scheme=scheme)
    page.goto(f"/scenarios/{spare['id']}")
    page.get_by_role("button", name="Add evaluator").click()
    page.get_by_role("menuitem").first.wait_for()
    assert not violations(page), violations(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Try it").click()
    panel = page.get_by_role("dialog", name="Try it")
    panel.get_by_role("button", name="Run", exact=True).click()
    panel.get_by_role("link", name="Open the run").wait_for()
    assert not violations(page), violations(page)
    panel.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for()
    assert not violations(page), violations(page)
