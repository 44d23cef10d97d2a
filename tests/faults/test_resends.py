"""An agent that is busy now and then: every request it counts is in the records, resends included."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

from tests.execution.test_executing import start
from tests.support.agent_server import AgentServer, Answer, Recorded, says
from tests.support.projects import make_project, scripted

from evalstudio.execution.processor import work_off
from evalstudio.execution.workspace import open_workspace
from evalstudio.storage.contract import Filters, all_runs

RUNS = 30


async def test_resends_are_in_the_records(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()

    def answer(request: Recorded) -> Answer:
        text = request.body["messages"][-1]["content"]
        asked[text] += 1
        busy = (int(text.split()[1]) + asked[text]) % 3 == 0
        return Answer(status=429, headers={"Retry-After": "0"}, json={}) if busy else says(f"echo: {text}")

    async with AgentServer(answer) as agent:
        scenarios = [scripted(f"s{n}", f"run {n} one", f"run {n} two") for n in range(RUNS)]
        config = make_project(tmp_path, scenarios)
        definitions = json.loads((tmp_path / "evals.json").read_text())
        retry = {"attempts": 4, "on": ["429"]}
        definitions["connectors"] = [
            {"name": "agent", "type": "http", "baseUrl": agent.url, "config": {"retry": retry}}
        ]
        (tmp_path / "evals.json").write_text(json.dumps(definitions))
        async with open_workspace(config) as workspace:
            await work_off(workspace, await start(workspace, tmp_path), stop=asyncio.Event())
            summaries = [run async for run in all_runs(workspace.store, Filters())]
            runs = [await workspace.store.run(one.id) for one in summaries]
    recorded: Counter[str] = Counter()
    for turn in (turn for run in runs for turn in run.turns):
        assert turn.user_message is not None
        recorded[turn.user_message.text] += len(turn.attempts or [None])
    resent = asked.total() - 2 * RUNS
    blamed = sum(run.result is None or run.result.outcome != "pass" for run in runs)
    print(
        f"\n{resent} resends: {RUNS} runs, {asked.total()} calls at the agent, "
        f"{recorded.total()} in records; lost {(asked - recorded).total()}, "
        f"doubled {(recorded - asked).total()}, blamed {blamed}"
    )
    assert resent > 10
    assert recorded == asked
    assert not blamed
