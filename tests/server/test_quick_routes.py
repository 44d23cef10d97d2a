"""The routes that read their parameters themselves answer and refuse as FastAPI does."""

from __future__ import annotations

import pytest
from tests.support.api_server import Api
from tests.support.stored_runs import queued

WRONG = [
    "limit=0",
    "limit=x",
    "status=nothing",
    "scenarioId=%20",
    "since=yesterday",
    "limit=1&limit=x",
    "cursor=%00",
]


@pytest.mark.parametrize("query", WRONG)
async def test_what_does_not_fit_is_refused_with_its_place(api: Api, query: str) -> None:
    answer = await api("GET", f"/api/runs?{query}")
    assert answer.status in (400, 422)
    assert answer.json["error"]["message"]


async def test_every_kind_of_parameter_narrows(api: Api) -> None:
    execution = await queued(api.studio.store, 3)
    for query, number in {
        "": 3,
        "limit=2": 2,
        "limit=1&limit=2": 2,
        f"executionId={execution.id}&status=queued": 3,
        "status=running": 0,
        "text=book": 3,
        "tag=none": 0,
        "tag=a&tag=b": 0,
        "since=2020-01-01T00:00:00Z&until=2021-01-01": 0,
        "unknown=1": 3,
    }.items():
        answer = await api("GET", f"/api/runs?{query}")
        assert (answer.status, len(answer.json["items"])) == (200, number), query


async def test_a_run_that_is_not_there_is_not_found(api: Api) -> None:
    assert (await api("GET", "/api/runs/nothing")).status == 404
    assert (await api("GET", "/api/runs/a%20b")).status == 422
    assert (await api("GET", "/api/executions?limit=501")).status == 422
