"""The API against its own description, on both databases; and the description against the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, settings
from tests.support.api_server import ServerProcess
from tests.support.postgres import PostgresServer
from tests.support.projects import make_project, scripted

from evalstudio.server.app import create_app, openapi_text

# Read, not made: every process that collects the tests comes by here. That it is up to date is a test.
KEPT = Path(__file__).parents[2] / "web" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(KEPT.read_text())
OPERATIONS = [
    (path, method, operation)
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
]
# One never ends, the others call out.
_LEFT_OUT = ["streamEvents", "testConnector", "invokeConnector"]
AIMED_AT = [
    (path, method) for path, method, operation in OPERATIONS if operation["operationId"] not in _LEFT_OUT
]
SETTINGS = settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
)


class Served:
    """A server with something in it, and the ids of what is there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = requests.Session()
        self.ids: dict[str, str] = {}
        self._turn = 0

    def fill(self) -> None:
        """One of everything, made anew where it is gone."""
        connector = self._made(
            "connectors", {"name": "agent", "type": "test-agent", "headers": {"X-Key": "s"}}
        )
        persona = self._made("personas", {"name": "Ada"})
        scenario = self._made("scenarios", scripted("talks", "hi", personaIds=[persona], tags=["a"]))
        body = {"name": "all", "scenarioIds": [scenario], "connectorIds": [connector]}
        wanted = self._made("evals", body)
        self._made("executions", {"evalId": wanted})
        self.ids["runs"] = self._first("runs")
        config = {"evaluatorConfigs": [{"type": "regex", "config": {"pattern": "x"}}]}
        self._made("evaluations", {"input": {"response": "x"}, "config": config})

    def _made(self, noun: str, body: dict[str, Any]) -> str:
        answer = self.http.post(f"{self.url}/api/{noun}", json=body)
        found = answer.json().get("id") if answer.status_code == 201 else self._first(noun)
        self.ids[noun] = found
        return found

    def _first(self, noun: str) -> str:
        return self.http.get(f"{self.url}/api/{noun}?limit=1").json()["items"][0]["id"]

    def aim(self, path: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Every other request is about something that exists."""
        self._turn += 1
        noun = re.match(r"/api/(\w+)/\{id\}", path)
        if noun and self._turn % 2 and noun[1] in self.ids:
            return {**parameters, "id": self.ids[noun[1]]}
        return dict(parameters)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[list[Served]]:
    """One server on each database: what is sent to one is sent to the other."""
    folder = tmp_path_factory.mktemp("served")
    storage = {"type": "postgres", "connectionString": postgres.new_database()}
    with (
        _serve(make_project(folder / "sqlite", [])) as on_sqlite,
        _serve(make_project(folder / "postgres", [], storage=storage)) as on_postgres,
    ):
        yield [on_sqlite, on_postgres]


@contextmanager
def _serve(config: Path) -> Iterator[Served]:
    server = ServerProcess(config, "--no-processor")
    try:
        server.wait_ready()
        found = Served(server.url)
        found.fill()
        yield found
        found.http.close()
    finally:
        assert server.stop() == 0, server.log


@pytest.fixture(scope="module")
def schema() -> Any:
    """Imported and built here: it takes seconds, and every process that collects the tests would pay."""
    import schemathesis
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
    from tests.support import generating as generating

    project = ProjectConfig(generation=GenerationConfig(allow_x00=True, max_examples=SETTINGS.max_examples))
    return schemathesis.openapi.from_dict(
        DOCUMENT, config=SchemathesisConfig(projects=ProjectsConfig(default=project))
    )


@pytest.mark.parametrize(("path", "method"), AIMED_AT, ids=lambda part: part)
def test_no_request_breaks_it_or_gets_an_answer_it_does_not_describe(
    path: str, method: str, schema: Any, served: list[Served]
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.generation.hypothesis.builder import (
        HypothesisTestConfig,
        HypothesisTestMode,
        create_test,
    )
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]

    def check(case: Any) -> None:
        parameters = case.path_parameters
        for one in served:
            case.path_parameters = one.aim(path, parameters)
            case.call_and_validate(base_url=one.url, session=one.http, checks=checks)

    modes = [HypothesisTestMode.EXAMPLES, HypothesisTestMode.FUZZING]
    config = HypothesisTestConfig(project=schema.config, modes=modes, settings=SETTINGS)
    create_test(operation=schema[path][method], test_func=check, config=config)()


class TestTheDescription:
    def test_in_web_is_up_to_date(self) -> None:
        assert KEPT.read_text() == openapi_text(), "Run: .venv/bin/python scripts/openapi"

    def test_names_every_operation_readably_and_once(self) -> None:
        names = [operation["operationId"] for _, _, operation in OPERATIONS]
        assert len(names) == len(set(names))
        assert all(re.fullmatch(r"[a-z]+[A-Za-z]*", name) for name in names)

    def test_says_what_every_operation_does_and_how_it_may_fail(self) -> None:
        for path, method, operation in OPERATIONS:
            assert operation.get("description") or operation.get("summary"), path
            statuses = operation["responses"]
            assert {"400", "401", "403", "422", "431", "503"} <= set(statuses), (path, method)
            if "{id}" in path:
                assert "404" in statuses, (path, method)
            for status, answer in statuses.items():
                if status[0] == "4":
                    assert answer["content"]["application/json"]["schema"]["$ref"].endswith("ErrorAnswer")

    def test_has_the_enums(self) -> None:
        text = json.dumps(DOCUMENT)
        for word in (
            "on_max_messages",
            "eventually",
            "assertion",
            "queued",
            "changed_meanwhile",
            "simulator",
        ):
            assert f'"{word}"' in text

    def test_needs_no_page_from_elsewhere(self) -> None:
        app = create_app()
        paths = {getattr(route, "path", "") for route in app.routes}
        assert not paths & {"/docs", "/redoc"}

    def test_builds_what_reads_a_body_with_the_app(self) -> None:
        """FastAPI hides a warning of pydantic while it does; built at the first request, it would be told."""
        bodies = [field for route in create_app().routes if (field := getattr(route, "body_field", None))]
        assert bodies
        assert [one.field_info.annotation for one in bodies if not one._type_adapter.pydantic_complete] == []
