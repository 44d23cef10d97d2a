"""Our spans, read back from a consumer that others wrote: Phoenix, in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from tests.support.agent_server import AgentServer, says
from tests.support.command_line import evalstudio

pytestmark = pytest.mark.soak

# A first start migrates its database, which takes minutes on a busy machine.
_START_SECONDS = 900.0
# A Phoenix that is there already, to try this test without installing one.
_INSTALLED = "EVALSTUDIO_TEST_PHOENIX"


def _command(folder: Path) -> str:
    if known := os.environ.get(_INSTALLED):
        return known
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", "arize-phoenix"], check=True)
    return str(folder / "bin" / "phoenix")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _read(url: str) -> Any:
    with urlopen(url, timeout=10) as answer:
        body = answer.read()
    return json.loads(body) if body else None


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    folder = tmp_path_factory.mktemp("phoenix")
    command = _command(folder / "venv")
    url = f"http://127.0.0.1:{(port := _free_port())}"
    own = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(_free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen([command, "serve"], env=os.environ | own, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                with urlopen(f"{url}/healthz", timeout=5):
                    break
            except (URLError, OSError):
                assert process.poll() is None, (folder / "log").read_text()[-2_000:]
                assert time.monotonic() < deadline, (folder / "log").read_text()[-2_000:]
                time.sleep(0.5)
        yield url
    finally:
        process.terminate()
        process.wait(30)


async def test_phoenix_shows_the_tree_of_an_eval(tmp_path: Path, phoenix: str) -> None:
    async with AgentServer(says("a refund", usage={"prompt_tokens": 7, "completion_tokens": 3})) as agent:
        definitions = {
            "connectors": [{"name": "shop", "type": "http", "baseUrl": agent.url}],
            "scenarios": [
                {
                    "name": "refund",
                    "script": ["Money back", "Thanks"],
                    "evaluators": [{"type": "regex", "gate": "always", "config": {"pattern": "refund"}}],
                }
            ],
            "evals": [
                {"name": "nightly", "scenarios": ["refund"], "connectors": ["shop"], "repetitions": 50}
            ],
        }
        (tmp_path / "evals.json").write_text(json.dumps(definitions))
        variables = {
            "EVALSTUDIO_TELEMETRY": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": phoenix,
            # It takes traces alone.
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        }
        done = await asyncio.to_thread(
            lambda: evalstudio("eval", "run", "-f", "evals.json", cwd=tmp_path, **variables)
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "telemetry" not in done.stderr
    spans = await _spans(phoenix, 1 + 50 * (1 + 2 * 2))
    by_id = {span["context"]["span_id"]: span for span in spans}
    parents = {(by_id[s["parent_id"]]["name"] if s["parent_id"] else "", s["name"]) for s in spans}
    assert {
        ("", "execution nightly"),
        ("execution nightly", "run refund"),
        ("run refund", "turn 1"),
        ("run refund", "turn 2"),
        ("turn 1", "invoke_agent shop"),
        ("turn 1", "evaluate regex"),
    } <= parents
    calls = [span for span in spans if span["name"] == "invoke_agent shop"]
    assert len(calls) == 100
    assert {span["span_kind"] for span in calls} == {"AGENT"}
    assert "Money back" in json.dumps([span["attributes"] for span in calls])


async def _spans(url: str, least: int) -> list[dict[str, Any]]:
    """All spans, once at least so many have arrived, the execution's and every parent among them."""
    deadline = time.monotonic() + 60
    while True:
        spans: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = _read(f"{url}/v1/projects/default/spans?limit=500{cursor}")
            spans += page["data"]
            if not page.get("next_cursor"):
                break
            cursor = f"&cursor={page['next_cursor']}"
        names = {span["name"] for span in spans}
        ids = {None, *(span["context"]["span_id"] for span in spans)}
        whole = all(span["parent_id"] in ids for span in spans)
        if len(spans) >= least and "execution nightly" in names and whole:
            return spans
        assert time.monotonic() < deadline, f"{len(spans)} spans: {sorted(names)}"
        await asyncio.sleep(0.5)
