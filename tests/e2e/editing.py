"""A project with a plugin's evaluator, and the moves people make in the editors."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect
from tests.support.projects import make_project, scripted

MASK = "********"
WORDING = '''
from typing import Literal

from pydantic import BaseModel, Field

from evalstudio import EvaluationResult, EvaluatorContext, define_evaluator


class Tone(BaseModel):
    mood: Literal["calm", "lively"] = "calm"
    loudest: float = Field(0.5, ge=0, le=1)


class Wording(BaseModel):
    words: list[str] = Field(min_length=1, description="Words that must be there")
    style: Literal["loose", "exact"] = "loose"
    atLeast: int = Field(1, ge=1, le=10)
    shout: bool = False
    tone: Tone = Field(default_factory=Tone)


@define_evaluator(label="House Wording")
def house_wording(ctx: EvaluatorContext[Wording]) -> EvaluationResult:
    """The agent speaks in the words of the house."""
    found = [word for word in ctx.config.words if word in ctx.response]
    if len(found) >= ctx.config.atLeast:
        return EvaluationResult.passed(f"found {found}")
    return EvaluationResult.failed("not our words")
'''


def wording_project(folder: Path) -> Path:
    """Two scenarios in an eval, and an evaluator whose config has every kind of field."""
    scenarios = [
        scripted("Greets the guest", "hello there", "how are you", tags=["polite"]),
        scripted("Names the hours", "when do you open"),
    ]
    config = make_project(folder, scenarios, plugins=["./agent.py", "./wording.py"])
    (folder / "wording.py").write_text(WORDING)
    return config


def field(where: Page | Locator, name: str) -> Locator:
    """A field for text or numbers, by its whole name."""
    return where.get_by_role("textbox", name=name, exact=True)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option, exact=True).click()


def add_evaluator(page: Page, label: str) -> Locator:
    """The card of an evaluator picked from the menu."""
    page.get_by_role("button", name="Add evaluator").click()
    page.get_by_role("menuitem", name=re.compile(f"^{label}")).click()
    return page.get_by_role("region", name=re.compile(f"^Evaluator \\d+: {label}$")).last


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("All changes saved")).to_be_visible()


def make_connector(page: Page) -> None:
    page.goto("/connectors/new")
    field(page, "Name").fill("House agent")
    choose(page, "Type", "Test Agent")
    page.get_by_role("button", name="Add header").click()
    field(page, "Name of header 1").fill("Authorization")
    field(page, "Value of header 1").fill("Bearer hush-hush")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="House agent")).to_be_visible()


def make_persona(page: Page) -> None:
    page.goto("/personas/new")
    field(page, "Name").fill("Hurried guest")
    field(page, "Description").fill("Has no time at all")
    field(page, "Wants").fill("A table, now")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Hurried guest")).to_be_visible()


def fill_wording(card: Locator) -> None:
    """Every kind of field a schema can ask for."""
    field(card, "Word").fill("echo")
    card.get_by_role("button", name="Add word").click()
    field(card, "Word").last.fill("welcome")
    choose(card.page, "Style", "exact")
    field(card, "At least").fill("1")
    card.get_by_label("Shout").check()
    tone = card.get_by_role("group", name="Tone")
    choose(card.page, "Mood", "lively")
    field(tone, "Loudest").fill("0.25")


def make_scenario(page: Page) -> None:
    """Two turns that wait for a file each, a persona, an assertion of the plugin and a metric."""
    page.goto("/scenarios/new")
    field(page, "Name").fill("Says the right words")
    page.get_by_role("button", name="Add script message").click()
    field(page, "Script message 1").fill("hello until=heard")
    page.get_by_role("button", name="Add script message").click()
    field(page, "Script message 2").fill("goodbye until=answered")
    choose(page, "Personas", "Hurried guest")
    page.keyboard.press("Escape")
    fill_wording(add_evaluator(page, "House Wording"))
    add_evaluator(page, "Response Length")
    choose(page, "Unit", "words")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Says the right words")).to_be_visible()
