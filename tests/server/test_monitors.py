"""Monitors over the API and from the command line of another machine."""

from __future__ import annotations

from typing import Any

from tests.support.api_server import Api

MONITOR: dict[str, Any] = {
    "name": "Politeness",
    "evaluators": [{"type": "regex", "config": {"pattern": "thank you"}}],
    "alarm": {"webhook": {"url": "http://127.0.0.1:9/hook", "secret": "a long secret"}},
}


async def test_a_monitor_is_made_read_and_deleted_with_its_secret_masked(api: Api) -> None:
    made = await api.made("/api/monitors", MONITOR)
    where = f"/api/monitors/{made['id']}"
    assert made["alarm"]["webhook"]["secret"] == "********"
    stored = await api.studio.store.get("monitor", made["id"])
    assert stored.alarm.webhook is not None
    assert str(stored.alarm.webhook.secret).startswith("sealed:")
    body = {key: made[key] for key in made.keys() - {"id", "version", "createdAt", "updatedAt"}}
    kept = (await api("PUT", where, body | {"samplingRate": 0.5})).json
    assert kept["alarm"]["webhook"]["secret"] == "********"
    moved = {**body, "alarm": {"webhook": {"url": "http://elsewhere.example/hook", "secret": "********"}}}
    assert (await api("PUT", where, moved)).json["alarm"]["webhook"]["secret"] is None
    series = await api.found(f"{where}/series?days=7&bucket=hour")
    assert (series["standing"], series["points"], series["learnFrom"]) == ("learning", [], 500)
    assert await api.found(f"{where}/alarms") == {"items": [], "cursor": None}
    assert (await api("POST", f"{where}/restart")).status == 204
    assert (await api("DELETE", where)).status == 204
    for method, path in (("GET", "/series"), ("GET", "/alarms"), ("POST", "/restart")):
        assert (await api(method, where + path)).status == 404
    assert (await api("POST", "/api/alarms/none/acknowledge")).status == 404


async def test_what_is_wrong_with_a_monitor_is_said_with_its_place(api: Api) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"evaluators": []}, "nothing judges"),
        ({"evaluators": [{"type": "regexx"}]}, "regexx"),
        ({"scenarioIds": ["nope"], "evaluators": []}, "nope"),
        ({"samplingRate": 1.5}, "samplingRate"),
        ({"band": {"expected": 0.01}}, "cannot drop"),
        ({"alarm": {"webhook": {"url": "ftp://x"}}}, "http"),
        ({"alarm": {"webhook": {"url": "http://x/?token=abc"}}}, "literal secret"),
        ({"alarm": {"webhook": {"url": "http://x/", "secret": "${EVALSTUDIO_TOKEN}"}}}, "server itself"),
        ({"alarm": {"webhook": {"url": "http://x/", "secret": "${HOME}-long"}}}, "HOME"),
    ]
    for change, words in wrong:
        answer = await api("POST", "/api/monitors", {**MONITOR, **change})
        assert answer.status == 422, (change, answer.text)
        assert words in answer.text, (change, answer.text)
