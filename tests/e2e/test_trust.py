"""What a page must never do: show what is no longer so, lose what was typed, or break on an answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from tests.e2e.browsing import overflow
from tests.e2e.editing import save
from tests.e2e.site import Site
from tests.support.projects import AGENT, make_project, scripted

TABLE = "\n\n| step | incomprehensibilities |\n|---|---|\n| one | internationalization |\n"
CODE = '\n\n```json\n{"order": 12}\n```\n'
NESTED = "\n\n" + ">" * 5000
LINES = """(cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return range.getClientRects().length;
}"""
BRIGHTNESS = """(one, field) =>
  getComputedStyle(one)[field].match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"""
FIRST, LAST = "first line\nsecond line", "goodbye"


SHAPES = """

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from evalstudio import EvaluatorContext, define_evaluator


class Circle(BaseModel):
    kind: Literal["circle"] = "circle"
    radius: float = Field(description="From the middle to the rim")


class Square(BaseModel):
    kind: Literal["square"] = "square"
    side: float = Field(description="The length of one side")


class Shapes(BaseModel):
    shape: Annotated[Circle | Square, Field(discriminator="kind", description="What is drawn")]


@define_evaluator(type="shapes", kind="assertion", config=Shapes)
def shapes(ctx: EvaluatorContext, config: Shapes) -> bool:
    \"\"\"Whether a shape was drawn.\"\"\"
    return True
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(
        tmp_path_factory.mktemp("trust") / "project",
        [
            scripted("Slow talk", "hello until=go-on"),
            {
                "name": "Turns differ",
                "script": ["good one", "bad two", "good three", "bad four"],
                "evaluators": [{"type": "regex", "gate": "always", "config": {"pattern": "good"}}],
                "stopOnFailure": False,
            },
            scripted("Hard to draw", FIRST, TABLE, CODE, "\n\nשלום עולם", LAST, NESTED),
            {"name": "Only measured", "script": ["hello"], "evaluators": [{"type": "latency"}]},
            scripted("Breaks down", "please break"),
        ],
        agent=AGENT + SHAPES,
        llmSettings={
            "provider": "openai",
            "models": {"evaluation": "gpt-x"},
            "providers": {"anthropic": {"apiKey": "abc"}, "ollama": {}},
        },
    )


@pytest.fixture(scope="module")
def done(site: Site) -> Any:
    """An execution of all but the slow scenario."""
    slow = site.named("scenarios", "Slow talk")["id"]
    own = site.named("evals", "all")["scenarioIds"]
    return site.executed(scenarioIds=[one for one in own if one != slow])


def run_of(site: Site, done: Any, name: str) -> str:
    return next(run["id"] for run in site.runs(done["id"]) if run["scenarioName"] == name)


def test_what_changed_while_a_page_was_away_is_shown_when_it_is_back(
    site: Site, project: Path, page: Page
) -> None:
    started = site.post("/api/executions", {"evalId": site.named("evals", "all")["id"]})
    page.goto(f"/executions/{started['id']}")
    slow = page.get_by_role("row").filter(has_text="Slow talk")
    expect(slow).to_contain_text("Running")
    page.get_by_role("link", name="Slow talk").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Slow talk")
    (project.parent / "go-on").touch()
    site.finished(started["id"])
    expect(page.get_by_text("echo: hello")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("5 of 5 runs done")).to_be_visible()
    expect(slow).to_contain_text("Pass")


def test_rows_of_cases_are_there_again_after_a_look_at_the_file(site: Site, page: Page) -> None:
    kept = site.post(
        "/api/scenarios", scripted("With cases", "hi {{guest}}", cases=[{"vars": {"guest": "Ann"}}])
    )
    page.goto(f"/scenarios/{kept['id']}")
    cell = page.get_by_label("guest in case 1")
    cell.fill("Bob")
    page.get_by_text("File", exact=True).click()
    expect(page.get_by_text("is kept until you leave this page")).to_be_visible()
    page.get_by_label("File of cases").fill("cases/more.csv")
    page.get_by_text("Table", exact=True).click()
    expect(cell).to_have_value("Bob")
    page.get_by_text("File", exact=True).click()
    expect(page.get_by_label("File of cases")).to_have_value("cases/more.csv")
    page.get_by_text("Table", exact=True).click()
    page.get_by_role("button", name="Remove case 1").click()
    expect(cell).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(cell).to_have_value("Bob")


def test_all_counts_of_an_execution_are_the_same(site: Site, done: Any, page: Page) -> None:
    page.goto(f"/executions/{done['id']}")
    expect(page.get_by_label("1 pass, 1 not checked, 1 fail, 1 error")).to_be_visible()
    expect(page.get_by_role("group", name="Passed of scored")).to_contain_text("1 of 2")
    expect(page.get_by_role("group", name="Passed of attempted")).to_contain_text("1 of 3")
    rows = page.get_by_role("table", name="Runs")
    for chip, number in (("Pass", 1), ("Not checked", 1), ("Fail", 1), ("Error", 1), ("All", 4)):
        page.get_by_text(f"{chip} {number}", exact=True).click()
        expect(rows).to_have_attribute("aria-rowcount", str(number + 1))


def test_a_chip_opens_the_result_of_its_own_turn(site: Site, done: Any, page: Page) -> None:
    page.goto(f"/runs/{run_of(site, done, 'Turns differ')}")
    failures = page.get_by_label("Evaluators that did not pass")
    expect(failures.get_by_text("regex")).to_be_visible()
    expect(failures.get_by_role("link", name="turn 2")).to_be_visible()
    failures.get_by_role("link", name="turn 2").click()
    expect(page).to_have_url(re.compile("turn=2"))
    expect(page.locator('[aria-current="step"]')).to_have_text("Turn 2")

    page.get_by_label("Evaluators after turn 4").get_by_role("button", name="regex").click()
    fourth = page.get_by_label("regex after turn 4")
    expect(fourth).to_contain_text("Fail")
    expect(fourth).to_contain_text('"turn": 4')
    page.get_by_label("Evaluators after turn 3").get_by_role("button", name="regex").click()
    third = page.get_by_label("regex after turn 3")
    expect(third).to_contain_text("Pass")
    expect(third).to_contain_text('"turn": 3')
    latency = page.get_by_label("Evaluators after turn 3").get_by_role("button", name="latency")
    expect(latency).to_contain_text(re.compile(r"latency [\d.]+ ms"))
    page.reload()
    expect(page.locator('[aria-current="step"]')).to_have_text("Turn 2")


def test_a_transcript_shows_what_was_said_as_it_was_said(site: Site, done: Any, page: Page) -> None:
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.set_viewport_size({"width": 400, "height": 9000})
    page.goto(f"/runs/{run_of(site, done, 'Hard to draw')}")
    talk = page.get_by_label("Transcript")
    expect(talk.get_by_text("goodbye").last).to_be_visible()
    assert "first line\nsecond line" in talk.locator("article[data-role=user]").first.inner_text()

    word = talk.get_by_role("cell", name="internationalization").first
    assert word.evaluate(LINES) == 1, "the word was broken over lines"
    assert overflow(page) <= 0

    hebrew = talk.get_by_text("שלום עולם").last
    assert hebrew.evaluate("(one) => getComputedStyle(one).direction") == "rtl"

    code = talk.locator("pre").last
    assert code.evaluate(BRIGHTNESS, "backgroundColor") < 200 < 400 < code.evaluate(BRIGHTNESS, "color")

    expect(talk.get_by_text(">" * 5000).last).to_be_visible()
    expect(talk.locator("blockquote")).to_have_count(0)


def test_what_cannot_be_drawn_is_shown_as_it_was_stored(site: Site, done: Any, page: Page) -> None:
    def broken(route: Route) -> None:
        run = route.fetch().json()
        run["messages"][1]["tool_calls"] = [{"id": "c1", "type": "function", "function": None}]
        run["output"]["evaluation"] = {
            "successMet": True,
            "failureMet": False,
            "confidence": 0.9,
            "reasoning": "It **did** well:\n- polite",
        }
        route.fulfill(json=run)

    page.route("**/api/runs/*", broken)
    page.goto(f"/runs/{run_of(site, done, 'Hard to draw')}")
    expect(page.get_by_text("here it is as it was stored")).to_be_visible()
    expect(page.get_by_role("cell", name="internationalization").last).to_be_visible()
    expect(page.locator("aside strong", has_text="did")).to_be_visible()
    expect(page.locator("aside li", has_text="polite")).to_be_visible()


def test_the_chosen_eval_and_enter_and_steps(site: Site, done: Any, project: Path, page: Page) -> None:
    (project.parent / "go-on").unlink(missing_ok=True)
    page.goto("/executions")
    page.get_by_role("combobox", name="Eval").click()
    page.get_by_role("option", name="all").click()
    expect(page).to_have_url(re.compile("eval=all"))
    page.get_by_role("link", name="Evals", exact=True).click()
    page.get_by_role("button", name="Run all").click()
    page.get_by_label("Repetitions").press("Enter")
    expect(page).to_have_url(re.compile("/executions/"))
    page.get_by_role("button", name="Cancel").click()
    page.go_back()
    page.go_back()
    expect(page).to_have_url(re.compile("eval=all"))
    expect(page.get_by_role("combobox", name="Eval")).to_have_value("all")

    page.route("**/api/executions?*", lambda route: route.fulfill(json={"items": [], "cursor": None}))
    page.goto("/")
    ticks = page.get_by_label("done", exact=True)
    expect(ticks).to_have_count(2)
    expect(page.get_by_role("region", name="Run an eval").get_by_label("done")).to_have_count(0)


def test_settings_tell_a_key_that_is_needed_from_one_that_is_set(
    site: Site, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    page.goto("/settings")
    models = page.get_by_role("region", name="Models")
    for word in ("Key needed", "Key is set", "No key needed"):
        expect(models.get_by_text(word, exact=True)).to_be_visible()
    expect(models.get_by_text("OPENAI_API_KEY")).to_be_visible()


def test_an_option_of_a_plugins_union_is_chosen_and_kept(site: Site, page: Page) -> None:
    shape = {"shape": {"kind": "circle", "radius": 2}}
    kept = site.post(
        "/api/scenarios",
        {"name": "Draws", "script": ["hi"], "evaluators": [{"type": "shapes", "config": shape}]},
    )
    page.goto(f"/scenarios/{kept['id']}")
    expect(page.get_by_label("Radius")).to_have_value("2")
    page.get_by_role("combobox", name="Shape").click()
    page.get_by_role("option", name="Square").click()
    page.get_by_label("Side").fill("3")
    save(page)
    [used] = site.named("scenarios", "Draws")["evaluators"]
    assert used["config"] == {"shape": {"kind": "square", "side": 3}}


def test_a_plugin_that_cannot_be_loaded_is_told_where_it_matters(site: Site, done: Any, page: Page) -> None:
    broken = {"name": "./broken.py", "path": None, "evaluators": [], "connectors": []}
    error = "Traceback\nNameError: name 'agnt' is not defined"
    page.route("**/api/plugins", lambda route: route.fulfill(json=[broken | {"error": error}]))
    for path in ("/", "/evals", f"/evals/{done['evalId']}", f"/executions/{done['id']}"):
        page.goto(path)
        expect(page.get_by_text("1 plugin could not be loaded")).to_be_visible()
        expect(page.get_by_text("name 'agnt' is not defined")).to_be_visible()


def test_a_page_not_yet_loaded_says_that_the_server_is_away_and_heals(site: Site, page: Page) -> None:
    page.goto("/evals")
    expect(page.get_by_role("table", name="Evals")).to_be_visible()
    page.route("**/*", lambda route: route.abort("connectionrefused"))
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_text("The server does not answer").last).to_be_visible()
    page.unroute_all()
    expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    expect(page.get_by_text("Project and storage")).to_be_visible()
    expect(page.get_by_text("The server does not answer")).to_have_count(0)
