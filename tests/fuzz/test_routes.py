"""Every route of a server that works on runs meanwhile: no 5xx, no hang, no run without an end."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.support.api_server import ServerProcess
from tests.support.fuzzing import LONGEST_GAP, Budget
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.server.app import openapi_text

# They never end by themselves, or call out.
LEFT_OUT = ["streamEvents", "testConnector", "invokeConnector"]


class HealthWatch:
    """Asks for the server's health all the time and keeps the longest wait."""

    def __init__(self, url: str) -> None:
        self.longest = 0.0
        self._url = f"{url}/api/health"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            start = time.monotonic()
            with urllib.request.urlopen(self._url, timeout=30) as answer:
                answer.read()
            self.longest = max(self.longest, time.monotonic() - start)

    def stop(self) -> float:
        self._over.set()
        self._thread.join(30)
        return self.longest


def peak_megabytes_of(pid: int) -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def open_runs(http: requests.Session, url: str) -> int:
    statuses = ("queued", "running")
    return sum(len(http.get(f"{url}/api/runs?status={one}&limit=100").json()["items"]) for one in statuses)


@pytest.mark.soak
def test_no_request_breaks_the_server_or_leaves_a_run_behind(
    tmp_path: Path, budget: Callable[[str], Budget]
) -> None:
    config = make_project(tmp_path, [scripted("talks", "hi", "there")], repetitions=2)
    apply_project(config)
    server, spent = ServerProcess(config), budget("routes")
    server.wait_ready(60)
    watch, http = HealthWatch(server.url), requests.Session()
    operations = _operations()
    ids = {noun: _first(http, server.url, noun) for noun in ("evals", "scenarios", "connectors")}

    def check(case: Any) -> None:
        noun = re.match(r"/api/(\w+)/\{id\}", case.operation.path)
        if noun and noun[1] in ids and spent.examples % 2 and case.method != "DELETE":
            case.path_parameters["id"] = ids[noun[1]]
        answer = case.call(base_url=server.url, session=http)
        assert answer.status_code < 500 or answer.status_code == 503, (case.as_curl_command(), answer.text)

    number = 0
    try:
        while spent.left:
            number += 1
            http.post(f"{server.url}/api/executions", json={"evalId": ids["evals"]})
            for operation in operations:
                spent.run(operation.as_strategy(), check, number)
        deadline = time.monotonic() + 120
        while open_runs(http, server.url) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not open_runs(http, server.url)
        longest, memory = watch.stop(), peak_megabytes_of(server.process.pid)
        print(f"\n{spent.examples} requests to {len(operations)} routes")
        print(f"{memory} MB at most, longest wait for health {longest:.2f} s")
        assert spent.examples > len(operations)
        assert longest < LONGEST_GAP
        assert memory < 512
        assert server.stop() == 0, server.log
    finally:
        watch.stop()
        http.close()
        if server.process.poll() is None:
            server.kill()


def _first(http: requests.Session, url: str, noun: str) -> str:
    return http.get(f"{url}/api/{noun}?limit=1").json()["items"][0]["id"]


def _operations() -> list[Any]:
    import schemathesis
    from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig

    project = ProjectConfig(generation=GenerationConfig(allow_x00=True))
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    schema: Any = schemathesis.openapi.from_dict(json.loads(openapi_text()), config=config)
    return [result.ok() for result in schema.exclude(operation_id=LEFT_OUT).get_all_operations()]
