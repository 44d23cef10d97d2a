"""Small projects in a temporary folder: a config, an agent as a plugin, scenarios in a file."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from evalstudio.execution.definitions import apply_files
from evalstudio.execution.workspace import open_workspace

AGENT = '''
import asyncio
import json
import os
import time

from evalstudio import ConnectorContext, ConnectorError, define_connector

FOLDER = os.path.dirname(__file__)
LOG = os.path.join(FOLDER, "agent.log")


@define_connector(type="test-agent")
async def test_agent(ctx: ConnectorContext) -> str:
    """An agent that does as it is told and writes down every call."""
    text = ctx.messages[-1].text
    with open(LOG, "a") as file:
        file.write(json.dumps({"run": ctx.run.id, "turn": ctx.run.turn, "text": text}) + "\\n")
    for word in text.split():
        if word.startswith("wait="):
            await asyncio.sleep(float(word[5:]))
        while word.startswith("until=") and not os.path.exists(os.path.join(FOLDER, word[6:])):
            await asyncio.sleep(0.05)
    if "break" in text:
        raise ConnectorError("the agent broke")
    return f"echo: {text}"
'''


def make_project(
    folder: Path,
    scenarios: list[dict[str, Any]],
    *,
    repetitions: int | None = 1,
    personas: list[dict[str, Any]] | None = None,
    agent: str = AGENT,
    connector: str = "test-agent",
    **config: Any,
) -> Path:
    """A project with one eval over these scenarios; the path of its config file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(agent)
    path = folder / "evalstudio.config.json"
    path.write_text(json.dumps({"name": "test", "plugins": ["./agent.py"], **config}))
    definitions = {
        "connectors": [{"name": "agent", "type": connector}],
        "personas": personas or [],
        "scenarios": scenarios,
        "evals": [
            {
                "name": "all",
                "scenarios": [scenario["name"] for scenario in scenarios],
                "connectors": ["agent"],
                **({} if repetitions is None else {"repetitions": repetitions}),
            }
        ],
    }
    (folder / "evals.json").write_text(json.dumps(definitions))
    return path


def apply_project(config: Path) -> None:
    """Bring the definitions of its file into its database; in a loop of its own, whatever runs here."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, _apply(config)).result()


async def _apply(config: Path) -> None:
    async with open_workspace(config) as workspace:
        await apply_files(workspace, [config.parent / "evals.json"])


def scripted(name: str, *script: str, pattern: str = "echo", **more: Any) -> dict[str, Any]:
    """A scenario whose replies must match a pattern."""
    evaluators = [{"type": "regex", "config": {"pattern": pattern}}]
    return {"name": name, "script": list(script), "evaluators": evaluators, **more}


def calls(folder: Path) -> list[dict[str, Any]]:
    """What the agent was asked, in order."""
    path = folder / "agent.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
