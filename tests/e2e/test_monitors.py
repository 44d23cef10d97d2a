"""Monitors in the browser: made, looked at, its alarm followed to a conversation and acknowledged."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect
from tests.e2e.editing import add_evaluator, choose, field
from tests.e2e.site import Site, in_own_loop

from evalstudio.execution.monitoring import on_conversation
from evalstudio.execution.workspace import open_workspace
from evalstudio.messages import Message
from evalstudio.project.alarms import Alarm
from evalstudio.recordings.conversation import ConversationBuilder, RecordedConversation
from evalstudio.storage.alarms import raise_alarm


async def _converse(config: Path, monitor_id: str) -> None:
    """Twelve conversations, three of them failed, and an alarm about these."""
    async with open_workspace(config) as workspace:
        for number in range(12):
            builder = ConversationBuilder()
            builder.add(Message(role="user", content="Where is my order?"))
            answer = "go away" if number % 4 == 3 else "thank you for asking"
            builder.add(Message(role="assistant", content=answer))
            talk = RecordedConversation(f"talk {number}", builder.turns, agent="shop")
            await on_conversation(workspace, talk, {}, revision=1)
        runs = [run.id for run in (await workspace.store.runs()).items if run.result.outcome == "fail"]  # pyright: ignore[reportOptionalMemberAccess]
        alarm = Alarm(
            monitor_id=monitor_id,
            monitor_name="Politeness",
            kind="rate",
            text="9 of the last 12 conversations passed",
            passed=9,
            scored=12,
            edge=0.95,
            run_ids=runs,
        )
        await workspace.store.database.write(lambda unit: raise_alarm(unit, alarm, to_deliver=False))


def test_a_monitor_is_made_and_its_alarm_leads_to_the_conversation(
    site: Site, page: Page, project: Path
) -> None:
    page.goto("/monitors")
    expect(page.get_by_role("heading", name="No monitors yet")).to_be_visible()
    page.get_by_role("link", name="New monitor").click()
    field(page, "Name").fill("Politeness")
    page.get_by_role("button", name="Add condition").click()
    field(page, "Attribute of condition 1").fill("user.tier")
    choose(page, "Test of condition 1", "is one of")
    values = page.get_by_role("combobox", name="Value of condition 1").or_(
        page.get_by_role("textbox", name="Value of condition 1")
    )
    values.fill("3")
    values.press("Enter")
    choose(page, "Test of condition 1", "is not there")
    field(add_evaluator(page, "Regex Match"), "Pattern").fill("thank you")
    field(page, "Expected pass rate").fill("2")
    field(page, "Webhook").fill("https://127.0.0.1:9/hook")
    field(page, "Quiet hours").fill("12")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("band.expected")
    field(page, "Expected pass rate").fill("0.95")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Politeness")).to_be_visible()
    expect(page.get_by_text("No conversations yet")).to_be_visible()
    made = site.named("monitors", "Politeness")
    assert [(one["attribute"], one["exists"]) for one in made["filter"]] == [("user.tier", False)]
    assert (made["band"]["expected"], made["alarm"]["quietHours"]) == (0.95, 12)
    assert made["alarm"]["webhook"]["url"] == "https://127.0.0.1:9/hook"

    in_own_loop(_converse(project, site.named("monitors", "Politeness")["id"]))
    page.reload()
    expect(
        page.get_by_text("75 % of 12 conversations passed").or_(page.get_by_text("75% of 12"))
    ).to_be_visible()
    expect(page.get_by_role("img", name="Pass rate over 1")).to_be_visible()
    alarms = page.get_by_role("region", name="Alarms")
    expect(alarms.get_by_text("9 of the last 12 conversations passed")).to_be_visible()
    alarms.get_by_role("button", name="Acknowledge").click()
    expect(alarms.get_by_text("Acknowledged")).to_be_visible()
    alarms.get_by_role("link", name="Conversation 1", exact=True).click()
    expect(page.get_by_text("go away").first).to_be_visible()

    page.goto("/monitors")
    expect(page.get_by_role("row").filter(has_text="Politeness")).to_contain_text("1")
