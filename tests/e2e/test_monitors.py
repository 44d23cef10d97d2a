"""Monitors in the browser: made, looked at, its alarm followed to a conversation and acknowledged."""

from __future__ import annotations

import zlib
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.e2e.editing import add_evaluator, choose, field
from tests.e2e.site import Site, in_own_loop
from tests.support.intake import chat_span, request_of, tool_span

from evalstudio.base.json_text import json_bytes
from evalstudio.execution.intake import read_conversation, summary_of
from evalstudio.execution.monitoring import on_conversation
from evalstudio.execution.workspace import open_workspace
from evalstudio.messages import Message
from evalstudio.project.alarms import Alarm
from evalstudio.recordings.conversation import ConversationBuilder, RecordedConversation
from evalstudio.recordings.spans import read_json
from evalstudio.storage.alarms import raise_alarm
from evalstudio.storage.production import ConversationLimits, NewSpan


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


async def _receive(config: Path) -> None:
    """A conversation of production with a call of a tool, judged."""
    said = chat_span(
        7, 1, conversation="session-7", said=[("user", "Can I still book?")], answer="thank you, you can"
    )
    request = request_of(said, tool_span(7, 2, "call-1", conversation="session-7"), service="booking-service")
    async with open_workspace(config) as workspace:
        spans = [
            NewSpan(
                bytes.fromhex(one.trace_id + one.span_id),
                bytes.fromhex(one.trace_id),
                one.conversation_id,
                zlib.compress(json_bytes(one.to_json())),
                1_000,
            )
            for one in read_json(request, "traces")
        ]
        await workspace.store.add_spans(spans, ConversationLimits(100, 1_000_000))
        (claimed,) = await workspace.store.claim_conversations("test", -60_000, 10, 60_000)
        whole = await read_conversation(workspace, claimed.id, claimed.name)
        await workspace.store.describe_conversation(claimed.id, claimed.revision, summary_of(whole))
        await on_conversation(workspace, whole.conversation, whole.attributes, revision=claimed.revision)
        await workspace.store.hand_over(claimed.id, claimed.revision)


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
    expect(page.get_by_text("75% of 12")).to_be_visible()
    expect(page.get_by_role("img", name="Pass rate over 1")).to_be_visible()
    alarms = page.get_by_role("region", name="Alarms")
    expect(alarms.get_by_text("9 of the last 12 conversations passed")).to_be_visible()
    alarms.get_by_role("button", name="Acknowledge").click()
    expect(alarms.get_by_text("Acknowledged")).to_be_visible()
    alarms.get_by_role("link", name="Conversation 1", exact=True).click()
    expect(page.get_by_text("go away").first).to_be_visible()

    page.goto("/monitors")
    expect(page.get_by_role("row").filter(has_text="Politeness")).to_contain_text("1")

    in_own_loop(_receive(project))
    page.get_by_role("link", name="Production conversations").click()
    row = page.get_by_role("row").filter(has_text="session-7")
    expect(row).to_contain_text("booking-service")
    expect(row).to_contain_text("Politeness")
    search = page.get_by_label("Search production conversations")
    search.fill("no such words")
    expect(page.get_by_text('Nothing matches "no such words".')).to_be_visible()
    search.fill("booking-serv")
    row.get_by_role("link", name="Can I still book?").click()
    talk = page.get_by_role("region", name="Conversation", exact=True)
    expect(talk.get_by_text("thank you, you can")).to_be_visible()
    expect(talk.get_by_text("look", exact=True).first).to_be_visible()
