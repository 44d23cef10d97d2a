"""Work on a Ray cluster: one of two CPUs for all tests of this file, started as ``--on ray`` starts it."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import COMMAND
from tests.support.model_server import Recorded, threaded_server
from tests.support.plugin_files import EXAMPLES, REPOSITORY
from tests.support.postgres import PostgresServer
from tests.support.processes import descendants
from tests.support.projects import AGENT, apply_project, make_project, scripted
from tests.support.s3_server import running_s3
from tests.support.scoring_files import MOODY, CommandResult, Folder, command, judged_plan, rows

from evalstudio.base.problems import InvalidInput
from evalstudio.cluster.connection import Cluster, open_cluster
from evalstudio.cluster.sending import sent_config
from evalstudio.project.config import ExecutionSettings

# Where a busy machine was too slow for Ray to start at once, what the first try left ends with the tests.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")

# Ends the worker or the driver once, with kill -9, in the middle of the work.
FATE = """
import os, signal, time
from pathlib import Path
from evalstudio import define_evaluator

PLACE = Path(Path(__file__).with_name("place.txt").read_text())


@define_evaluator("fate", kind="assertion")
def fate(ctx):
    if ctx.response == "answer 1000" and (PLACE / "kill-worker").exists():
        (PLACE / "kill-worker").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if ctx.response == "answer 2500":
        if (PLACE / "kill-driver").exists():
            while not list((PLACE / "results.jsonl.shards").glob("0*.json")):
                time.sleep(0.05)
            driver = int((PLACE / "kill-driver").read_text())
            (PLACE / "kill-driver").unlink()
            os.kill(driver, signal.SIGKILL)
            time.sleep(600)
    return {"success": len(ctx.response) > 8}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with open_cluster(ExecutionSettings(type="ray"), cpus=2) as cluster:
        # Ray has handlers of its own, which would end the process before it can say what is kept.
        assert {number: signal.getsignal(number) for number in handlers} == handlers
        yield cluster


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.plan()
    return folder


@pytest.fixture
def project(folder: Folder) -> Folder:
    """Four thousand records, in nine shards, with a plugin that kills."""
    config = {"plugins": ["./fate.py"], "execution": {"type": "ray"}}
    (folder.path / "evalstudio.config.json").write_text(json.dumps(config))
    (folder.path / "fate.py").write_text(FATE)
    (folder.path / "place.txt").write_text(str(folder.path))
    folder.plan({"evaluators": [{"type": "fate"}]})
    folder.dataset({**row, "context": {"long": "text " * 110}} for row in rows(4000))
    return folder


def score(capsys: pytest.CaptureFixture[str], folder: Folder, *arguments: str | Path) -> CommandResult:
    data, plan = folder.path / "records.jsonl", folder.path / "plan.json"
    return command(capsys, "score", data, "--plan", plan, "-o", folder.output, "--json", *arguments)


def without_times(folder: Folder) -> list[dict[str, Any]]:
    return [{key: item for key, item in one.items() if key != "timestamp"} for one in folder.results()]


def test_a_dataset_comes_to_the_same_here_and_on_ray(
    cluster: Cluster, folder: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.dataset([*rows(30), {"id": "bad"}, *rows(30)])
    here = score(capsys, folder, "--skip-bad", "--fail-under", "0.99")
    results = without_times(folder)
    there = score(capsys, folder, "--skip-bad", "--fail-under", "0.99", "--on", "ray", "--workers", "1")
    assert (
        (there.code, json.loads(there.out)) == (here.code, json.loads(here.out)) == (1, json.loads(here.out))
    )
    assert without_times(folder) == results


def test_a_cluster_of_this_machine_listens_on_loopback_and_asks_for_a_token(cluster: Cluster) -> None:
    assert (os.environ["RAY_AUTH_MODE"], len(os.environ["RAY_AUTH_TOKEN"]) >= 32) == ("token", True)
    assert {node["NodeManagerAddress"] for node in cluster.ray.nodes()} == {"127.0.0.1"}
    session = Path(cluster.ray._private.worker.global_worker.node.get_session_dir_path())
    assert stat.S_IMODE(session.parent.parent.stat().st_mode) == 0o700
    addresses = {address for process in descendants(os.getpid()) for address in listening(process)}
    assert addresses
    assert {address for address in addresses if not address.startswith(LOOPBACK)} == set()


def test_a_token_that_is_not_the_clusters_is_told_at_once(cluster: Cluster, folder: Folder) -> None:
    folder.dataset(rows(3))
    address = cluster.ray.get_runtime_context().gcs_address
    wrong = {**os.environ, "RAY_ADDRESS": address, "RAY_AUTH_TOKEN": "f" * 64}
    arguments = [COMMAND, "score", "records.jsonl", "--plan", "plan.json", "--on", "ray"]
    done = subprocess.run(arguments, cwd=folder.path, env=wrong, capture_output=True, text=True)
    words = "asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to that of the cluster"
    assert done.stderr == f"Error: the Ray cluster at {address} {words}\n"


# 127.0.0.1 and ::1, as /proc writes them.
LOOPBACK = ("0100007F:", "00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:")


def listening(process: int) -> set[str]:
    """The addresses a process listens at."""
    folder = Path(f"/proc/{process}/fd")
    links = [os.readlink(one) for one in folder.iterdir() if one.is_symlink()] if folder.is_dir() else []
    sockets = {link[8:-1] for link in links if link.startswith("socket:[")}
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()
    ]
    return {row[1] for row in rows if row[3] == "0A" and row[9] in sockets}


def test_the_command_of_the_page_runs(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (REPOSITORY / "docs" / "ray.md").read_text()
    (line,) = re.findall(r"^\$ evalstudio (.*)$", page, re.MULTILINE)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    done = command(capsys, *line.split(), "--workers", "1")
    # As without --on ray: the plan asks for more politeness than there is.
    assert (done.code, done.err.startswith('"polite" must be at least 0.9')) == (1, True), done.err
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) > 1


def test_killed_workers_and_drivers_cost_no_record(
    cluster: Cluster, project: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.path / "kill-worker").touch()
    arguments = ["score", "records.jsonl", "--plan", "plan.json", "-o", "results.jsonl"]
    address = cluster.ray.get_runtime_context().gcs_address
    # The driver is its own process, and sends the project to the cluster, which has none of its files.
    with subprocess.Popen(
        [COMMAND, *arguments], cwd=project.path, env={**os.environ, "RAY_ADDRESS": address}
    ) as driver:
        (project.path / "kill-driver.part").write_text(str(driver.pid))
        (project.path / "kill-driver.part").rename(project.path / "kill-driver")
        assert driver.wait() == -signal.SIGKILL
    assert not (project.path / "kill-worker").exists()
    assert len(project.results()) < 4000
    done = score(capsys, project, "--resume", "--workers", "1")
    assert done.code == 0
    check_once_each(project, json.loads(done.out))
    assert json.loads(done.out)["resumed"] > 0


def check_once_each(folder: Folder, summary: dict[str, Any]) -> None:
    assert [one["recordId"] for one in folder.results()] == [f"r{n}" for n in range(4000)]
    assert (summary["records"], summary["outcomes"]["pass"], summary["duplicateIds"]) == (4000, 3990, 0)


def test_calls_per_minute_are_kept_over_all_workers(
    cluster: Cluster, folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred in six seconds: at two workers together, and not at each."""
    calls = list[tuple[float, str]]()

    def reply(asked: Recorded) -> dict[str, Any]:
        calls.append((time.monotonic(), asked.texts[-1]))
        return {"reasoning": "fine", "score": 5}

    with threaded_server(reply) as server:
        folder.plan(judged_plan(server.url, 1000))
        # Set after the cluster was started: workers get what the plan refers to.
        monkeypatch.setenv("JUDGE_KEY", "k-123456")
        folder.dataset({**row, "context": {"long": "text " * 800}} for row in rows(40))
        done = score(capsys, folder, "--on", "ray")
    assert done.code == 0, done.err
    assert json.loads(done.out)["records"] == len(calls) == 40
    moments = sorted(moment for moment, _ in calls)
    # Two workers that each kept the limit for themselves would take half of it.
    assert moments[-1] - moments[0] > 39 * 0.06 * 0.8


@pytest.mark.parametrize("place", ["a path", "a bucket"])
def test_a_dataset_is_scored_within_a_budget_and_errors_again(
    cluster: Cluster,
    folder: Folder,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    monkeypatch.setattr("evalstudio.scoring.sharded.shard_bytes", lambda *_, **__: 300)
    (folder.path / "moody.py").write_text(MOODY)
    plan = folder.plan({"plugins": ["./moody.py"], "evaluators": [{"type": "moody"}]})
    data, report = folder.dataset([*rows(60), *rows(1)]), folder.path / "report.json"
    here = json.loads(score(capsys, folder).out)
    ids = [one["recordId"] for one in folder.results()]
    with running_s3(monkeypatch) if place == "a bucket" else nullcontext() as s3:
        places: tuple[str | Path, str | Path] = data, folder.output
        if s3 is not None:
            s3.put("records.jsonl", data.read_bytes())
            places = "s3://evals/records.jsonl", "s3://evals/results/"
        scored = (
            "score",
            places[0],
            "--plan",
            plan,
            "-o",
            places[1],
            "--on",
            "ray",
            "--workers",
            "1",
            "--json",
        )
        (folder.path / "broken").touch()
        ended = command(capsys, *scored, "--max-time", "0.001")
        first = json.loads(ended.out)
        assert (ended.code, first["partial"]) == (3, "budget"), ended.err
        assert (0 < first["records"] < 61, first["outcomes"]["error"] > 0) == (True, True)
        (folder.path / "broken").unlink()
        more = ("--resume", "--retry-errors", "--report", f"json={report}", "--require", "maxErrors=0")
        there = command(capsys, *scored, *more)
        lines = s3.lines("results/") if s3 is not None else folder.output.read_bytes().splitlines()
    assert there.code == 0, there.err
    summary = json.loads(there.out)
    expected = {"resumed": first["records"], "retried": first["outcomes"]["error"]}
    assert {**summary, "requirements": []} == {**here, **expected}
    assert [json.loads(line)["recordId"] for line in lines] == ids
    assert json.loads(report.read_text())["counts"]["total"] == 61


def test_live_runs_and_reviews_survive_a_killed_worker(
    cluster: Cluster,
    tmp_path: Path,
    postgres: PostgresServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = AGENT.replace('    if "break" in text:', KILL_ONCE + '    if "break" in text:')
    scenarios = [scripted("a", "hello", "wait=0.05"), scripted("b", "fall over", "go on")]
    monkeypatch.setenv("DATABASE", postgres.new_project_database())
    places: dict[str, Any] = {
        "storage": {"type": "postgres", "connectionString": "${DATABASE}"},
        "execution": {"type": "ray"},
    }
    config = make_project(tmp_path, scenarios, repetitions=3, agent=agent, **places)
    apply_project(config)
    monkeypatch.chdir(tmp_path)
    done = command(capsys, "eval", "run", "all", "--json")
    assert done.code == 0, done.err
    runs = json.loads(done.out)["runs"]
    assert (len(runs), {run["result"]["outcome"] for run in runs}) == (6, {"pass"})
    assert (tmp_path / "fallen").exists()
    # What was recorded is judged there too, and by the same scenarios.
    chats = [
        {
            "id": f"c{n}",
            "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": text}],
        }
        for n, text in enumerate(["echo: x", "no", "echo: y"])
    ]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)))
    review = ("review", "chats.jsonl", "--scenario", "a", "--json")
    there, here = (command(capsys, *review, "--on", on) for on in ("ray", "local"))
    assert there.code == here.code == 1, there.err
    assert outcomes(there) == outcomes(here) == ["fail", "pass", "pass"]


KILL_ONCE = """
    if "fall over" in text and not os.path.exists(os.path.join(os.path.dirname(__file__), "fallen")):
        open(os.path.join(os.path.dirname(__file__), "fallen"), "w").close()
        os.kill(os.getpid(), 9)
"""


def outcomes(done: CommandResult) -> list[str]:
    return sorted(run["result"]["outcome"] for run in json.loads(done.out)["runs"])


def test_what_a_project_must_have_for_a_cluster_is_told(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_project(tmp_path, [scripted("a", "hello")])
    apply_project(config)
    monkeypatch.chdir(tmp_path)
    for elsewhere in (Cluster(None, is_local=False), Cluster(TwoMachines(), is_local=True)):
        with pytest.raises(InvalidInput, match="SQLite is a file of one machine"):
            sent_config(config, elsewhere)
    run = ("eval", "run", "all", "--on", "ray")
    # Of one machine it is no matter.
    assert command(capsys, *run).code == 0
    for arguments, words in (
        ((*run, "--record", "tape.jsonl"), "--record and --replay are for one process"),
        ((*run, "--server", "http://127.0.0.1:1"), "--on is for a local project"),
    ):
        said = command(capsys, *arguments)
        assert (said.code, words in said.err) == (2, True), said
    config.unlink()
    definitions = json.loads((tmp_path / "evals.json").read_text())
    definitions["connectors"] = [{"name": "agent", "type": "http", "baseUrl": "http://127.0.0.1:1"}]
    (tmp_path / "evals.json").write_text(json.dumps(definitions))
    said = command(capsys, *run, "--file", "evals.json")
    assert (said.code, "--on ray needs a project" in said.err) == (2, True), said


class TwoMachines:
    """What Ray says where code has connected to a cluster itself."""

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "NodeManagerHostname": name} for name in ("one", "two")]


def test_what_is_missing_or_out_of_reach_is_told(
    folder: Folder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.dataset(rows(3))
    said = score(capsys, folder, "--on", "mars")
    assert (said.code, '--on is "local" or "ray", not "mars"' in said.err) == (2, True)
    for address, words, code in (
        ("127.0.0.1:1", "the Ray cluster at 127.0.0.1:1 cannot be reached: Connection refused", 4),
        ("somewhere", "HOST:PORT", 2),
    ):
        monkeypatch.setattr("ray.is_initialized", lambda: False)
        monkeypatch.setattr("ray.shutdown", lambda: None)
        config = {"execution": {"type": "ray", "address": address}}
        (folder.path / "evalstudio.config.json").write_text(json.dumps(config))
        said = score(capsys, folder)
        assert (said.code, words in said.err) == (code, True), said
    monkeypatch.setitem(sys.modules, "ray", None)
    said = score(capsys, folder, "--on", "ray")
    assert (said.code, 'pip install "evalstudio[ray]"' in said.err) == (2, True)
    assert "address is for ray" in score(capsys, wrong_config(folder)).err


def wrong_config(folder: Folder) -> Folder:
    config = {"execution": {"address": "127.0.0.1:1"}}
    (folder.path / "evalstudio.config.json").write_text(json.dumps(config))
    return folder
