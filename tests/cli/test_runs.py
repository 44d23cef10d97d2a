"""``evalstudio run``, ``execution`` and ``db``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Typed
from tests.support.command_line import evalstudio

from evalstudio.cli.db import period_of

AGENT = '''
"""An agent that greets, fails, breaks, or steers the terminal, as it is asked to."""

from pathlib import Path
from evalstudio import ConnectorContext, ConnectorError, ConnectorResponse, define_connector


@define_connector(type="moody")
def moody(ctx: ConnectorContext) -> ConnectorResponse:
    said = ctx.messages[-1].text
    if "break" in said and not Path("mended").exists():
        raise ConnectorError("the kettle is off")
    call = {"id": "c1", "function": {"name": "look_up", "arguments": '{"day": "monday"}'}}
    text = "\\x1b[31mred\\x1b[0m \\x07bell [bold]markup[/bold]" if "steer" in said else "Hello, 9 to 5."
    return ConnectorResponse(
        [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": '{"ok": true}', "tool_call_id": "c1"},
            {"role": "assistant", "content": text},
        ],
        tokens_usage={"input_tokens": 3, "output_tokens": 4},
    )
'''
EVALS = """
connectors: [{name: Moody, type: moody}]
scenarios:
  - name: Two turns
    messages: [{role: system, content: Be kind.}, {role: assistant, content: Welcome.}]
    script: [hello, and when?]
    evaluators:
      - {type: regex, name: never, config: {pattern: nowhere}}
      - {type: regex, name: hours, config: {pattern: '9 to 5'}}
      - {type: latency-budget, config: {maxMs: 60000}}
      - {type: tool-call-count}
  - {name: Breaks, script: [break please], evaluators: [{type: regex, config: {pattern: Hello}}]}
  - {name: Steers, script: [steer please], evaluators: [{type: regex, config: {pattern: markup}}]}
evals: [{name: Moods, scenarios: [Two turns, Breaks, Steers], connectors: [Moody]}]
"""


@pytest.fixture
def ran(project: Path, typed: Typed) -> dict[str, Any]:
    """A project with one execution: a failure, an agent's error and a pass."""
    (project / "plugins" / "moody.py").write_text(AGENT)
    config = json.loads((project / "evalstudio.config.json").read_text())
    config["plugins"].append("./plugins/moody.py")
    (project / "evalstudio.config.json").write_text(json.dumps(config))
    (project / "evals" / "moods.yaml").write_text(EVALS)
    typed("apply", "evals")
    return typed("eval", "run", "Moods", "--json", code=1).data


def runs_of(ran: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {run["scenarioName"]: run for run in ran["runs"]}


class TestListing:
    def test_the_newest_first_with_how_each_stands(self, ran: dict[str, Any], typed: Typed) -> None:
        shown = typed("run", "list").out
        assert shown.index("Steers") < shown.index("Breaks") < shown.index("Two turns")
        for run in ran["runs"]:
            assert run["id"] in shown

    @pytest.mark.parametrize(
        ("options", "wanted"),
        [
            (["--outcome", "fail"], ["Two turns"]),
            (["--outcome", "error"], ["Breaks"]),
            (["--status", "completed"], ["Steers", "Two turns"]),
            (["--status", "queued"], []),
            (["--execution", "last", "--limit", "1"], ["Steers"]),
        ],
    )
    def test_narrowed(self, ran: dict[str, Any], typed: Typed, options: list[str], wanted: list[str]) -> None:
        found = typed("run", "list", *options, "--json").data
        assert [run["scenarioName"] for run in found["items"]] == wanted

    def test_page_by_page(self, ran: dict[str, Any], typed: Typed) -> None:
        first = typed("run", "list", "--limit", "2", "--json").data
        assert f"--cursor {first['cursor']}" in typed("run", "list", "--limit", "2").err
        rest = typed("run", "list", "--limit", "2", "--cursor", first["cursor"], "--json").data
        assert [run["scenarioName"] for run in rest["items"]] == ["Two turns"]
        assert rest["cursor"] is None

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--outcome", "fial"], '--outcome "fial" is not known; did you mean fail?'),
            (["--status", "done"], '--status "done" is not known'),
            (["--cursor", "!!"], "This cursor is not one that a list handed out"),
            (["--execution", "nope"], 'There is no execution "nope".'),
            (["--limit", "0"], "Invalid value"),
        ],
    )
    @pytest.mark.usefixtures("project")
    def test_what_is_wrong_is_said(self, typed: Typed, options: list[str], expected: str) -> None:
        assert expected in typed("run", "list", *options, code=2).err

    @pytest.mark.usefixtures("project")
    def test_nothing_yet(self, typed: Typed) -> None:
        assert typed("run", "list").out == "No runs.\n"
        assert "No executions yet." in typed("execution", "list").out
        assert "there are no runs yet" in typed("run", "show", "last", code=2).err
        assert "no run has failed" in typed("run", "show", "last-failed", code=2).err
        assert "there are no executions yet" in typed("execution", "show", "last", code=2).err


class TestShowing:
    def test_the_transcript_has_the_verdicts_under_each_turn(self, ran: dict[str, Any], typed: Typed) -> None:
        shown = typed("run", "show", runs_of(ran)["Two turns"]["id"]).out
        order = (
            *("Two turns · Moody: fail", "Reason: no match for /nowhere/", "Before", "Be kind.", "Welcome."),
            *(
                "Turn 1 (",
                "7 tokens)",
                "user",
                "hello",
                'calls look_up {"day": "monday"}',
                "tool",
                '{"ok": true}',
            ),
            *(
                "assistant",
                "Hello, 9 to 5.",
                "pending never: no match",
                "pass    hours:",
                "pass    latency-budget:",
            ),
            *(
                "Turn 2 (",
                "and when?",
                "Assertions",
                "never",
                "eventually",
                "fail",
                "Metrics",
                "tool-call-count",
            ),
        )
        place = 0
        for part in order:
            assert part in shown[place:], f"{part!r} is not in its place in:\n{shown}"
            place = shown.index(part, place)

    def test_an_error_names_its_fault(self, ran: dict[str, Any], typed: Typed) -> None:
        shown = typed("run", "show", runs_of(ran)["Breaks"]["id"]).out
        assert "Breaks · Moody: error" in shown
        assert "fault of the agent" in " ".join(shown.split())
        assert "the kettle is off" in shown
        assert "break please" in shown

    def test_last_and_last_failed(self, ran: dict[str, Any], typed: Typed) -> None:
        assert typed("run", "show", "last", "--json").data["scenarioName"] == "Steers"
        assert typed("run", "show", "last-failed", "--json").data["scenarioName"] == "Breaks"

    def test_an_agent_cannot_steer_the_terminal(self, ran: dict[str, Any], typed: Typed) -> None:
        run = runs_of(ran)["Steers"]["id"]
        for shown in (typed("run", "show", run).out, typed("execution", "show", "last").out):
            assert "\x1b" not in shown
            assert "\x07" not in shown
        assert "[bold]markup[/bold]" in typed("run", "show", run).out
        assert "\x1b[31mred" in typed("run", "show", run, "--json").data["messages"][-1]["content"]

    def test_it_fits_80_columns_when_piped(self, ran: dict[str, Any], project: Path) -> None:
        for run in ran["runs"]:
            done = evalstudio("run", "show", run["id"], cwd=project)
            assert done.returncode == 0, done.stderr
            assert max(len(line) for line in done.stdout.splitlines()) <= 80
            assert "\x1b" not in done.stdout

    def test_colour_only_where_it_is_wanted(self, ran: dict[str, Any], project: Path) -> None:
        wanted = evalstudio("run", "show", "last-failed", cwd=project, FORCE_COLOR="1", TERM="xterm")
        assert "\x1b[" in wanted.stdout
        refused = evalstudio("run", "show", "last-failed", cwd=project, NO_COLOR="1", TERM="xterm")
        assert "\x1b" not in refused.stdout

    def test_an_unknown_one(self, ran: dict[str, Any], typed: Typed) -> None:
        assert typed("run", "show", "nope", code=2).err == 'Error: There is no run "nope".\n'


class TestRetrying:
    def test_errored_runs_are_run_again_and_no_others(self, ran: dict[str, Any], typed: Typed) -> None:
        Path("mended").touch()
        done = typed("run", "retry", "--execution", "last", "--json", code=1).data
        assert {run["scenarioName"]: run["attempt"] for run in done["runs"]} == {
            "Two turns": 1,
            "Breaks": 2,
            "Steers": 1,
        }
        again = typed("run", "show", runs_of(ran)["Breaks"]["id"]).out
        assert "attempt 2" in again
        assert "Breaks · Moody: pass" in again
        first = typed("run", "show", runs_of(ran)["Breaks"]["id"], "--attempt", "1").out
        assert "the kettle is off" in first

    def test_a_single_one_may_be_left_to_workers(self, ran: dict[str, Any], typed: Typed) -> None:
        assert typed("run", "retry", runs_of(ran)["Breaks"]["id"], "--queue-only").out == "1 queued.\n"
        assert (
            typed("run", "list", "--status", "queued", "--json").data["items"][0]["scenarioName"] == "Breaks"
        )
        assert typed("run", "cancel", "--execution", "last").out == "1 cancelled.\n"

    def test_a_result_is_not_retried(self, ran: dict[str, Any], typed: Typed) -> None:
        told = typed("run", "retry", runs_of(ran)["Two turns"]["id"], code=2).err
        assert "only runs that ended in an error are run again" in told
        assert 'There is no run "nope"' in typed("run", "retry", "nope", code=2).err
        assert "name runs, or an execution" in typed("run", "retry", code=2).err


class TestDeleting:
    def test_a_run(self, ran: dict[str, Any], typed: Typed) -> None:
        assert "Delete 1 run?" in typed("run", "delete", "last", code=2).err
        assert typed("run", "delete", "last", "--yes", "--json").data == {"deleted": 1}
        assert len(typed("run", "list", "--json").data["items"]) == 2

    def test_an_execution(self, ran: dict[str, Any], typed: Typed) -> None:
        assert "with 3 runs?" in typed("execution", "delete", "last", code=2).err
        assert typed("execution", "delete", "last", "--yes").out == "Deleted, with 3 runs.\n"
        assert typed("execution", "list", "--json").data == {"items": [], "cursor": None}


class TestExecutions:
    def test_they_are_listed_with_what_they_came_to(self, ran: dict[str, Any], typed: Typed) -> None:
        assert "1 passed, 1 failed, 1 errored" in typed("execution", "list").out
        found = typed("execution", "list", "--status", "completed", "--json").data
        assert found["items"][0]["counts"]["errored"] == 1

    def test_one_is_shown_as_when_it_ran(self, ran: dict[str, Any], typed: Typed) -> None:
        shown = typed("execution", "show", ran["execution"]["id"]).out
        assert "3 runs: 1 passed, 1 failed, 1 errored (1 agent)" in shown
        assert typed("execution", "show", "last", "--json").data["summary"] == ran["summary"]

    def test_cancelling_what_is_over(self, ran: dict[str, Any], typed: Typed) -> None:
        assert typed("execution", "cancel", "last").out == "0 runs cancelled.\n"


class TestDatabase:
    def test_its_status_changes_nothing(self, project: Path, typed: Typed) -> None:
        assert "it is up to date" in typed("db", "status").out
        found = typed("db", "status", "--json").data
        assert (found["type"], found["state"]) == ("sqlite", "current")
        assert found["place"].endswith("data/evalstudio.db")
        for file in (project / "data").glob("evalstudio.db*"):
            file.unlink()
        assert "it is empty" in typed("db", "status").out
        assert not (project / "data" / "evalstudio.db").exists()

    @pytest.mark.usefixtures("project")
    def test_migrating_what_is_up_to_date(self, typed: Typed) -> None:
        assert "Nothing to do" in typed("db", "migrate").out
        assert typed("db", "migrate", "--json").data["before"]["state"] == "current"

    def test_pruning(self, ran: dict[str, Any], typed: Typed) -> None:
        assert "Delete everything" in typed("db", "prune", "--keep", "90d", code=2).err
        assert typed("db", "prune", "--keep", "90d", "--yes", "--json").data["executions"] == 0
        assert typed("db", "prune", "--keep", "0h", "--yes").out.startswith("Deleted 1 executions, 3 runs")

    def test_pruning_by_the_rules_of_the_config(
        self, ran: dict[str, Any], project: Path, typed: Typed
    ) -> None:
        assert "give --keep 90d, or set retention" in typed("db", "prune", "--yes", code=2).err
        config = project / "evalstudio.config.json"
        rules = {"retention": {"maxAge": "90d", "maxExecutions": 5, "keepLabels": ["release"]}}
        config.write_text(json.dumps(json.loads(config.read_text()) | rules))
        assert "config's retention" in typed("db", "prune", code=2).err
        assert typed("db", "prune", "--yes", "--json").data["executions"] == 0

    @pytest.mark.parametrize(("text", "hours"), [("12h", 12), ("90d", 2160), (" 2 W ", 336)])
    def test_periods(self, text: str, hours: int) -> None:
        assert period_of(text).total_seconds() == hours * 3600

    @pytest.mark.parametrize("text", ["", "90", "d", "-1d", "1y", "9999999d", "1.5d"])
    @pytest.mark.usefixtures("project")
    def test_what_is_no_period(self, typed: Typed, text: str) -> None:
        assert "is not a period" in typed("db", "prune", f"--keep={text}", "--yes", code=2).err

    def test_a_database_that_cannot_be_opened(self, project: Path, typed: Typed) -> None:
        for file in (project / "data").glob("evalstudio.db*"):
            file.unlink()
        (project / "data" / "evalstudio.db").write_text(
            "this is no database, it is a letter to a friend" * 50
        )
        told = typed("status", code=2).err
        assert told.startswith("Error: ")
        assert "Traceback" not in told


BROKEN = '''
"""A plugin whose agent and evaluator break."""
from evalstudio import define_connector, define_evaluator


@define_connector
def fragile(ctx):
    return {"orders": []}["order"]


@define_evaluator
def divides(ctx):
    return len(ctx.messages) / 0
'''
BROKEN_EVALS = """
connectors: [{name: Fragile, type: fragile}]
scenarios:
  - {name: Asks, script: [hello], evaluators: [{type: regex, config: {pattern: Hello}}]}
  - {name: Divides, script: [hello], evaluators: [{type: divides, name: ratio}]}
evals:
  - {name: Agent, scenarios: [Asks], connectors: [Fragile]}
  - {name: Evaluator, scenarios: [Divides], connectors: [Moody]}
"""


class TestErrorsOfUserCode:
    @pytest.fixture(autouse=True)
    def _broken_plugin(self, ran: dict[str, Any], project: Path, typed: Typed) -> None:
        (project / "plugins" / "broken.py").write_text(BROKEN)
        config = json.loads((project / "evalstudio.config.json").read_text())
        config["plugins"].append("./plugins/broken.py")
        (project / "evalstudio.config.json").write_text(json.dumps(config))
        (project / "evals" / "broken.yaml").write_text(BROKEN_EVALS)
        typed("apply", "evals")

    def test_an_agents_error_names_its_plugin_and_its_line(self, project: Path, typed: Typed) -> None:
        (run,) = typed("eval", "run", "Agent", "--json", code=3).data["runs"]
        assert run["error"].startswith('Connector "fragile" (plugin ./plugins/broken.py): KeyError: ')
        assert run["error"].endswith("(plugins/broken.py:8)")
        shown = typed("run", "show", "last").out
        assert "run show --debug" in shown
        assert "fault of the agent" in " ".join(shown.split())
        shown = typed("run", "show", "last", "--debug").out
        assert 'File "plugins/broken.py", line 8, in fragile' in shown
        assert str(project) not in shown
        kept = typed("run", "show", "last", "--json").data
        assert "KeyError" in kept["output"]["traceback"]

    def test_an_evaluators_error_names_it_its_plugin_and_its_line(self, project: Path, typed: Typed) -> None:
        (run,) = typed("eval", "run", "Evaluator", "--json", code=3).data["runs"]
        told = 'Evaluator "ratio": ZeroDivisionError: division by zero (plugins/broken.py:13, '
        assert run["error"] == told + "plugin ./plugins/broken.py)"
        shown = typed("run", "show", "last", "--debug").out
        assert "Traceback of ratio, turn 1" in shown
        assert 'File "plugins/broken.py", line 13, in divides' in shown


def test_how_it_ended_is_told_in_words_that_are_no_verdict(ran: dict[str, Any], typed: Typed) -> None:
    shown = typed("run", "show", runs_of(ran)["Two turns"]["id"]).out
    assert "ended with the last message of the script" in " ".join(shown.split())
    passed = typed("run", "show", runs_of(ran)["Steers"]["id"])
    assert 'every "eventually" check had held' in " ".join(passed.out.split())
