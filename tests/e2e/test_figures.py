"""The same numbers at the command line, over the API and in the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.e2e.site import Site, built_ui
from tests.support.command_line import evalstudio
from tests.support.projects import apply_project, make_project, scripted

# Fails or breaks from the second call with the same words on, and reports its tokens.
AGENT = """
import asyncio
from collections import Counter
from pathlib import Path

from evalstudio import ConnectorContext, ConnectorError, ConnectorResponse, Message, define_connector

calls = Counter()


@define_connector(type="test-agent")
async def test_agent(ctx: ConnectorContext) -> ConnectorResponse:
    text = ctx.messages[-1].text
    calls[text] += 1
    if "wait" in text:
        for _ in range(1200):
            await asyncio.sleep(0.1)
            if (Path(__file__).parent / "go-on").exists():
                break
    if calls[text] > 1 and "break" in text:
        raise ConnectorError("the agent broke")
    reply = "something else" if calls[text] > 1 and "miss" in text else f"echo: {text}"
    usage = {"input_tokens": 400, "output_tokens": 100, "total_tokens": 500}
    return ConnectorResponse([Message(role="assistant", content=reply)], tokens_usage=usage)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scenarios = [scripted("Misses", "miss"), scripted("Breaks", "break"), scripted("Holds", "hello")]
    config = make_project(tmp_path_factory.mktemp("figures") / "project", scenarios, repetitions=2)
    (config.parent / "agent.py").write_text(AGENT)
    apply_project(config)
    return config


@pytest.fixture(scope="module")
def printed(project: Path) -> str:
    """What ``eval run`` prints; no server is there yet that would take some of the runs."""
    done = evalstudio("eval", "run", "--concurrency", "1", cwd=project.parent)
    assert done.returncode == 1, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(project: Path, printed: str) -> Iterator[Site]:
    """A server that was started after the command had run."""
    built_ui()
    served = Site(project)
    served.start()
    yield served
    served.stop()


@pytest.fixture
def executed(printed: str, site: Site) -> str:
    """The execution of the command line."""
    return site.get("/api/executions")["items"][0]["id"]


def test_flaky_is_passed_and_failed_wherever_it_is_shown(
    printed: str, executed: str, site: Site, page: Page
) -> None:
    assert "flaky: Misses · agent (1 passed, 1 failed)\n" in printed
    assert "6 runs: 4 passed, 1 failed, 1 errored (1 agent)" in printed
    # Three subjects, not six unrelated runs.
    assert "pass rate: 80% (4 of 5, 95% interval 27%–98%) of scored, 67% (4 of 6" in printed
    assert "agent: tokens 2,500 (known of 5 of 6 runs), cost unknown" in printed

    summary = site.get(f"/api/stats/executions/{executed}")
    assert [(one["subject"]["label"], one["passed"], one["failed"]) for one in summary["flaky"]] == [
        ("Misses · agent", 1, 1)
    ]
    assert (summary["flakyRuns"], summary["tokens"], summary["runsWithTokens"]) == (2, 2500, 5)
    assert summary["passRateOfScored"]["rate"] == 0.8
    [history] = site.get("/api/stats/flaky")
    assert (history["subject"]["label"], history["flakyExecutions"], history["executions"]) == (
        "Misses · agent",
        1,
        1,
    )

    page.goto(f"/executions/{executed}")
    expect(page.get_by_text("6 of 6 runs done")).to_be_visible()
    expect(page.get_by_label("80%, 4 of 5, 95% interval 27% to 98%")).to_be_visible()
    expect(page.get_by_label("67%, 4 of 6", exact=False)).to_be_visible()
    expect(page.get_by_text("2.5K").first).to_be_visible()
    table = page.get_by_role("table", name="Runs")
    expect(table.get_by_text("flaky")).to_have_count(2)
    page.get_by_text("Flaky 2", exact=True).click()
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_role("row").filter(has_text="Misses")).to_have_count(2)

    page.goto("/")
    flaky = page.get_by_role("region", name="Flakiest")
    expect(flaky.get_by_role("row")).to_have_count(2)
    expect(flaky.get_by_role("row").filter(has_text="Misses · agent")).to_contain_text("1 of 1")


def test_tokens_are_shown_while_runs_are_still_going(site: Site, page: Page, project: Path) -> None:
    site.put_scenario("Breaks", script=["please wait"])
    started = site.post("/api/executions", {"evalId": site.named("evals", "all")["id"]})
    page.goto(f"/executions/{started['id']}")
    expect(page.get_by_text(re.compile(r"^4 of 6 runs done$"))).to_be_visible()
    tokens = page.get_by_role("group", name="Tokens")
    expect(tokens).to_contain_text("2K")
    expect(tokens).to_contain_text("4 of 6 runs")
    expect(page.get_by_role("row").filter(has_text="Breaks").first).to_contain_text("Running")
    (project.parent / "go-on").touch()
    expect(page.get_by_text("6 of 6 runs done")).to_be_visible(timeout=20_000)
    expect(tokens).to_contain_text("3K")
