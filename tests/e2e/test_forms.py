"""The forms of the definitions, the lists that lead to them, and the catalogue of evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.editing import MASK, choose, field, make_connector, save, wording_project
from tests.e2e.site import Site, in_own_loop
from tests.support.projects import scripted

from evalstudio.execution.workspace import open_workspace
from evalstudio.project.entities import StoredScenario
from evalstudio.storage.contract import DefinitionWrite


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenarios in an eval, and a plugin's evaluator."""
    return wording_project(tmp_path_factory.mktemp("words") / "project")


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
    field(page, "Context of case 2").fill('{"table": 7}')
    save(page)
    first, second = site.named("scenarios", "Spare")["cases"]
    assert first["vars"] == {"guest": "Ann", "people": 4}
    assert second["name"] == "ünïcode 🙂"
    assert second["vars"] == {"guest": "007", "people": "many"}
    assert second["groundTruth"] == {"booked": True}
    assert second["context"] == {"table": 7}
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
    card.get_by_label("When it must hold").select_option("finally")
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


def test_the_gate_shown_is_the_one_the_config_yields(site: Site, spare: Any, page: Page) -> None:
    page.goto(f"/scenarios/{spare['id']}")
    card = page.get_by_role("region", name="Evaluator 1: Regex Match")
    gate = card.get_by_label("When it must hold")
    expect(gate.locator("option").first).to_have_text("As usual: on at least one turn")
    card.get_by_label("Must match").uncheck()
    expect(gate.locator("option").first).to_have_text("As usual: on every turn")
    expect(card.get_by_text("It must hold on every turn")).to_be_visible()
    page.goto("/evaluators/regex")
    expect(page.get_by_text("unless its config says otherwise")).to_be_visible()


def test_choices_are_shown_as_they_are_written(site: Site, spare: Any, page: Page) -> None:
    site.put_scenario("Spare", evaluators=[{"type": "lexical-similarity"}])
    page.goto(f"/scenarios/{spare['id']}")
    card = page.get_by_role("region", name="Evaluator 1: Lexical Similarity")
    card.get_by_role("combobox", name="Algorithm").click()
    expect(page.get_by_role("option", name="jaro-winkler", exact=True)).to_be_visible()


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
    field(page, "Value of header 2").fill("${EVALSTUDIO_PUBLIC_TEAM}")
    save(page)
    assert site.named("connectors", "Renamed agent")["headers"]["X-Team"] == "${EVALSTUDIO_PUBLIC_TEAM}"


def test_scenarios_are_found_by_words_and_tags(site: Site, spare: Any, page: Page) -> None:
    site.executed()
    page.goto("/scenarios")
    table = page.get_by_role("table", name="Scenarios")
    expect(table).to_be_visible()
    heads = [one.inner_text() for one in table.get_by_role("columnheader").all()]
    assert heads == ["Name", "Last result", "Last run", "Changed"]
    rows = table.get_by_role("row").filter(has=page.get_by_role("cell"))
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="Greets the guest")).to_contain_text("Pass")
    expect(rows.filter(has_text="Spare")).to_contain_text("never ran")
    field(page, "Search scenarios").fill("HOURS")
    expect(rows).to_have_count(1)
    expect(page.get_by_text("1 of 3 scenarios")).to_be_visible()
    field(page, "Search scenarios").fill("")
    choose(page, "Only with these tags", "polite")
    expect(rows).to_have_count(1)
    rows.get_by_role("link").first.click()
    page.get_by_role("heading", level=1, name="Greets the guest").wait_for()
    page.go_back()
    expect(page).to_have_url(f"{site.url}/scenarios?tags=polite")
    expect(rows).to_have_count(1)


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


async def _write_scenarios(config: Path, number: int) -> None:
    async with open_workspace(config) as workspace:
        made = [StoredScenario.model_validate(scripted(f"Number {one}", "hello")) for one in range(number)]
        await workspace.store.apply([DefinitionWrite("scenario", put=one) for one in made])


def test_thousands_of_scenarios_scroll(site: Site, page: Page) -> None:
    # The last test of this module: the others count the scenarios.
    in_own_loop(_write_scenarios(site.config, 600))
    page.goto("/scenarios")
    expect(page.get_by_text("602 scenarios")).to_be_visible()
    table = page.get_by_role("table", name="Scenarios")
    expect(table).to_have_attribute("aria-rowcount", "603")
    assert table.get_by_role("row").count() < 60
    page.mouse.move(600, 500)
    for _ in range(30):
        page.mouse.wheel(0, 3_000)
    expect(page.get_by_role("link", name="Greets the guest", exact=True)).to_be_visible()
