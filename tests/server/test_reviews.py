"""Reviews, rescored executions and drafts over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.api_server import Api, serving

from evalstudio.client import AsyncClient

ASKED = {"role": "user", "content": "Book a table"}
BOOKED = {"role": "assistant", "content": "Booked."}
SCENARIO = {
    "name": "booking",
    "script": ["Book a table"],
    "evaluators": [{"type": "regex", "config": {"pattern": "Booked"}}],
}


async def scenario(api: Api) -> str:
    return (await api.made("/api/scenarios", SCENARIO))["id"]


async def test_conversations_are_reviewed_scored_again_and_drafted(project: Path) -> None:
    async with serving(project) as api, AsyncClient(api.url) as client:
        scenario_id = await scenario(api)
        started = await client.review(
            [[ASKED, BOOKED], {"id": "b", "messages": [ASKED]}], scenarioId=scenario_id
        )
        done = await client.wait(started.id, timeout=30)
        counts = done.counts
        assert (done.source, counts.passed, counts.errored, done.partial) == ("recorded", 1, 1, None)
        listed = (await api.found("/api/executions?source=recorded"))["items"]
        assert [one["id"] for one in listed] == [done.id]
        assert (await api.found("/api/executions?whole=true"))["items"] == []

        strict = [{"type": "regex", "config": {"pattern": "Sorry"}}]
        again = await client.wait((await client.rescore(done.id, evaluators=strict)).id, timeout=30)
        assert (again.source, again.rescored_from, again.counts.failed) == ("rescored", done.id, 1)
        comparison = await client.compare(done.id, again.id)
        assert comparison.candidate.rescored_from == done.id

        [passed] = [
            run for run in await client.runs(executionId=done.id) if run.result and run.result.success
        ]
        draft = await client.draft_scenario(passed.id)
        assert draft.script == ["Book a table"]


async def test_a_file_of_the_project_is_reviewed_and_no_other(project: Path) -> None:
    lines = '[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Booked."}]\n{"x": 1}\n'
    (project.parent / "chats.jsonl").write_text(lines)
    async with serving(project) as api, AsyncClient(api.url) as client:
        scenario_id = await scenario(api)
        started = await client.review(file="chats.jsonl", scenarioId=scenario_id)
        done = await client.wait(started.id, timeout=30)
        assert (done.counts.passed, done.partial) == (1, "unreadable")
        for path in ("../evalstudio.config.json", "data/secret.key", "missing.jsonl", "/etc/passwd"):
            refused = await api("POST", "/api/reviews", {"scenarioId": scenario_id, "file": path})
            assert refused.status == 422, refused.text


async def test_what_cannot_be_reviewed_is_refused_with_its_place(api: Api) -> None:
    scenario_id = await scenario(api)

    async def refused(**body: Any) -> str:
        answer = await api("POST", "/api/reviews", body)
        assert answer.status == 422, answer.text
        return answer.text

    good = [[ASKED, BOOKED]]
    assert "conversations[1]" in await refused(scenarioId=scenario_id, conversations=[*good, {"x": 1}])
    assert "one of them" in await refused(conversations=good)
    assert "one of them" in await refused(scenarioId=scenario_id)
    assert "scenarioId" in await refused(scenarioId="none", conversations=good)
    assert (await api.found("/api/executions"))["items"] == []


async def test_the_same_key_starts_one_review(api: Api) -> None:
    body = {"scenarioId": await scenario(api), "conversations": [[ASKED, BOOKED]]}
    first = await api("POST", "/api/reviews", body, headers={"Idempotency-Key": "k"})
    second = await api("POST", "/api/reviews", body, headers={"Idempotency-Key": "k"})
    assert (first.status, second.status) == (201, 201)
    assert first.json["id"] == second.json["id"]
