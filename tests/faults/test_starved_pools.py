"""Agents in plain code that hang hold their threads: healthy ones beside them are never blamed for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults.ledger import compare
from tests.faults.trial import begin
from tests.support.projects import AGENT, scripted

HANGING = '''

@define_connector(type="hanging-agent", timeout=4)
def hanging_agent(ctx: ConnectorContext) -> str:
    """An agent in plain code that never answers where it is told so."""
    text = ctx.messages[-1].text
    with open(LOG, "a") as file:
        file.write(json.dumps({"run": ctx.run.id, "turn": ctx.run.turn, "text": text}) + "\\n")
    if "hang" in text:
        time.sleep(3600)
    return f"echo: {text}"
'''


async def starve(folder: Path, hung: int, healthy: int) -> None:
    """So many calls hang at once, each in a thread; healthy runs of the same agent go on beside them."""
    scenarios = [
        scripted("hangs", "hang"),
        *(scripted(f"healthy {n}", "one", "two") for n in range(healthy // hung)),
    ]
    trial = await begin(
        folder,
        hung * len(scenarios),
        0,
        {"type": "sqlite"},
        scenarios,
        agent=AGENT + HANGING,
        connector="hanging-agent",
    )
    with trial.cleaned_up():
        trial.worker(concurrency=hung + 8)
        assert await trial.end() == [0], trial.log[-2000:]
        ledger = await compare(trial.config, trial.runs, innocent="healthy")
        ledger.check(f"{hung} hung threads")
        runs = await trial.look()
    faults = {run.result.fault for run in runs if run.scenario_name == "hangs" and run.result}
    assert faults == {"agent"}


async def test_hung_threads(tmp_path: Path) -> None:
    await starve(tmp_path, hung=40, healthy=40)


@pytest.mark.soak
async def test_hundreds_of_hung_threads(tmp_path: Path) -> None:
    await starve(tmp_path, hung=400, healthy=800)
