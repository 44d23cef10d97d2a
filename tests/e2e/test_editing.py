"""Making, changing and deleting definitions in the web UI, and trying a scenario beside its editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.editing import (
    MASK,
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios in an eval, and a plugin's evaluator."""
    return wording_project(tmp_path_factory.mktemp("words") / "project")


def test_an_agent_a_persona_and_a_scenario_are_made_tried_and_seen_to_finish(
    site: Site, page: Page, project: Path
) -> None:
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
    (project.parent / "heard").touch()
    expect(panel.get_by_text("echo: hello until=heard")).to_be_visible()
    expect(stand).to_contain_text("Running")
    (project.parent / "answered").touch()
    expect(stand).to_contain_text("Pass")
    expect(panel.get_by_text("echo: goodbye until=answered")).to_be_visible()
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
    expect(page.get_by_text("a message of the script must not be blank", exact=True)).to_be_visible()
    field(page, "Name").fill("Odd")
    expect(page.get_by_text("must not be blank", exact=True)).to_have_count(0)
    field(page, "Script message 1").fill("hello")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("region", name="Evaluators")).to_contain_text("nothing judges this scenario")
    add_evaluator(page, "Latency Budget").get_by_label("Max ms").fill("10")
    card = add_evaluator(page, "Regex Match")
    page.get_by_role("button", name="Create").click()
    expect(field(card, "Pattern")).to_have_attribute("aria-invalid", "true")
    expect(card.get_by_role("listitem")).to_contain_text("pattern: is missing")
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


def test_what_an_eval_requires_is_edited_and_kept(site: Site, page: Page) -> None:
    page.goto(f"/evals/{site.named('evals', 'all')['id']}/edit")
    add = page.get_by_role("button", name="Add requirement")
    first, second = (page.get_by_role("group", name=f"Requirement {number}") for number in (1, 2))
    add.click()
    first.get_by_label("At least").fill("1.5")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert", name="Not saved")).to_contain_text("requirements[0].passRate")
    expect(first.get_by_role("alert")).to_contain_text("less than or equal to 1")
    first.get_by_label("At least").fill("")
    first.get_by_label("At least").press_sequentially("0.9")
    first.get_by_label("Confidence").fill("0.95")
    add.click()
    second.get_by_label("What").click()
    page.get_by_role("option", name="No regression").click()
    expect(second.get_by_label("Baseline")).to_have_value("main")
    field(page, "Most cost").fill("2.5")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text('Saved "all"')).to_be_visible()
    kept = site.named("evals", "all")
    assert [one["passRate"] for one in kept["requirements"]] == [0.9, None]
    assert kept["budget"]["maxCost"] == 2.5
    page.goto(f"/evals/{kept['id']}/edit")
    expect(second.get_by_label("Baseline")).to_have_value("main")
    expect(first.get_by_label("Confidence")).to_have_value("0.95")
    field(page, "Repetitions").fill("2")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page).not_to_have_url(re.compile("/edit$"))
    again = site.named("evals", "all")
    assert (again["repetitions"], again["requirements"]) == (2, kept["requirements"])
