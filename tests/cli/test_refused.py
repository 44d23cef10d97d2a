"""Definitions an earlier version took and this one refuses: listed with what to change, and never run."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Done, Typed
from tests.support.api_server import serving
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.storage.opening import DEFAULT_PATH

# Raw values of a refused definition do not fit its fields; pydantic says so when it writes them.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")

MISSPELLED = (
    'scenario "misspelled": evaluators[0].config.criterionName: "tnoe" is not among the scenario\'s criteria'
)
OLD_KEY = 'scenario "old": oldSetting: unknown key'
OLD_CONNECTOR = 'connector "relic": timeout: unknown key'


def store(folder: Path, kind: str, name: str, **fields: Any) -> None:
    """Change a stored definition behind the program's back, as an earlier version may have written it."""
    with closing(sqlite3.connect(folder / DEFAULT_PATH)) as connection:
        query = f"SELECT document FROM {kind}s WHERE name = ?"
        document = json.loads(connection.execute(query, (name,)).fetchone()[0]) | fields
        update = f"UPDATE {kind}s SET document = ? WHERE name = ?"
        connection.execute(update, (json.dumps(document), name))
        connection.commit()


@pytest.fixture
def folder(tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose database holds two scenarios and a connector that are refused now."""
    config = make_project(
        tmp_path, [scripted("fine", "x"), scripted("misspelled", "x"), scripted("old", "x")]
    )
    definitions = json.loads((tmp_path / "evals.json").read_text())
    definitions["connectors"].append({"name": "relic", "type": "test-agent"})
    definitions["evals"].append({"name": "healthy", "scenarios": ["fine"], "connectors": ["agent"]})
    (tmp_path / "evals.json").write_text(json.dumps(definitions))
    apply_project(config)
    wrong = {"type": "regex", "config": {"pattern": "x", "criterionName": "tnoe"}}
    store(tmp_path, "scenario", "misspelled", evaluators=[wrong], criteria=[{"name": "tone"}])
    store(tmp_path, "scenario", "old", oldSetting=1, evaluators=[{"type": "regex", "config": []}])
    store(tmp_path, "connector", "relic", timeout=3)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_status_lists_what_is_refused_and_what_to_change(folder: Path, typed: Typed) -> None:
    shown = typed("status").out
    assert "3 of them cannot be run as they are" in shown
    for problem in (MISSPELLED, OLD_KEY, OLD_CONNECTOR, "did you mean tone?"):
        assert problem in shown
    refused = typed("status", "--json").data["refused"]
    assert {(one["kind"], one["name"]) for one in refused} == {
        ("scenario", "misspelled"),
        ("scenario", "old"),
        ("connector", "relic"),
    }


@pytest.mark.parametrize(("name", "problem"), [("misspelled", MISSPELLED), ("old", OLD_KEY)])
def test_what_is_refused_never_runs(folder: Path, typed: Typed, name: str, problem: str) -> None:
    done: Done = typed("eval", "run", "all", "--only", name, code=2)
    assert problem in done.err
    assert "Traceback" not in done.err
    assert typed("execution", "list", "--json").data["items"] == []


def test_a_connector_that_is_refused_is_not_called(folder: Path, typed: Typed) -> None:
    assert OLD_CONNECTOR in typed("eval", "run", "healthy", "--connector", "relic", code=2).err
    assert "oldSetting" not in typed("connector", "test", "relic", code=2).err
    assert not (folder / "agent.log").exists()


def test_everything_else_goes_on(folder: Path, typed: Typed) -> None:
    assert typed("eval", "run", "healthy").code == 0
    listed = typed("scenario", "list", "--json").data
    assert "old" in json.dumps(listed)
    exported = typed("export", "--json").data
    old = next(one for one in exported["scenarios"] if one["name"] == "old")
    assert old["evaluators"] == [{"type": "regex", "config": []}]


def test_applying_its_mended_file_mends_it(folder: Path, typed: Typed) -> None:
    typed("apply", "evals.json")
    assert "Refused" not in typed("status").out
    assert typed("eval", "run", "all").code == 0


async def test_the_server_lists_it_shows_it_and_refuses_to_start_it(folder: Path) -> None:
    async with serving(folder / "evalstudio.config.json") as call:
        refused = await call.found("/api/definitions/refused")
        assert len(refused) == 3
        assert any(MISSPELLED in problem for one in refused for problem in one["problems"])
        scenarios = (await call.found("/api/scenarios"))["items"]
        old = next(one for one in scenarios if one["name"] == "old")
        assert (await call.found(f"/api/scenarios/{old['id']}"))["name"] == "old"
        evals = (await call.found("/api/evals"))["items"]
        everything = next(one for one in evals if one["name"] == "all")
        started = await call("POST", "/api/executions", {"evalId": everything["id"]})
        assert started.status == 422
        assert "misspelled" in json.dumps(started.json)
        mended = {
            "name": "old",
            "script": ["x"],
            "evaluators": [{"type": "regex", "config": {"pattern": "x"}}],
        }
        assert (await call("PUT", f"/api/scenarios/{old['id']}", mended)).status == 200
        assert len(await call.found("/api/definitions/refused")) == 2
