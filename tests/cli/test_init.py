"""``evalstudio init`` and ``status``, and ``serve`` where there is no project yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Terminal, Typed
from tests.support.command_line import evalstudio


def test_a_new_project_runs_at_once(tmp_path: Path) -> None:
    made = evalstudio("init", "x", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert "cd x\n  evalstudio eval run" in made.stdout
    ran = evalstudio("eval", "run", cwd=tmp_path / "x")
    assert ran.returncode == 0, ran.stderr
    assert "1 passed, 0 failed, 0 errored" in ran.stdout


def test_what_is_written(project: Path) -> None:
    files = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    wanted = {"evalstudio.config.json", ".gitignore", "evals/opening-hours.yaml", "plugins/agent.py"}
    assert {file for file in files if not file.startswith(("data/", "plugins/__pycache__"))} == wanted
    assert "data/" in (project / ".gitignore").read_text()
    assert json.loads((project / "evalstudio.config.json").read_text())["name"] == "studio"


@pytest.mark.parametrize("name", ['A "quoted" näme', "🙂", "\\n"])
def test_the_name_may_be_anything(tmp_path: Path, typed: Typed, name: str) -> None:
    typed("init", str(tmp_path / "p"), "--name", name)
    assert json.loads((tmp_path / "p" / "evalstudio.config.json").read_text())["name"] == name


def test_nothing_is_overwritten(tmp_path: Path, typed: Typed, project: Path) -> None:
    assert "evalstudio.config.json is there already" in typed("init", code=2).err
    other = tmp_path / "other"
    (other / "plugins").mkdir(parents=True)
    (other / "plugins" / "agent.py").write_text("mine")
    assert "agent.py would be overwritten" in typed("init", str(other), code=2).err
    assert [path.name for path in other.iterdir()] == ["plugins"]
    (tmp_path / "file").write_text("")
    assert "is a file; name a folder" in typed("init", str(tmp_path / "file"), code=2).err


def test_a_gitignore_that_is_there_stays(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    assert "There is a .gitignore already; add data/ to it." in typed("init", str(tmp_path)).out
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_the_json_names_the_files(tmp_path: Path, typed: Typed) -> None:
    found = typed("init", str(tmp_path / "p"), "--json").data
    assert sorted(Path(file).name for file in found["files"]) == [
        ".gitignore",
        "agent.py",
        "evalstudio.config.json",
        "opening-hours.yaml",
    ]


def test_a_folder_that_cannot_be_written(tmp_path: Path, typed: Typed) -> None:
    (tmp_path / "no").write_text("")
    assert "Error:" in typed("init", str(tmp_path / "no" / "deeper"), code=2).err


class TestStatus:
    def test_it_shows_the_project_at_a_glance(self, project: Path, typed: Typed) -> None:
        shown = typed("status").out
        assert "Project:        studio (evalstudio.config.json)" in shown
        assert "sqlite, data/evalstudio.db" in shown
        assert "0 personas, 1 connector, 1 scenario, 1 eval" in shown
        assert "./plugins/agent.py" in shown
        assert "Last execution: none yet" in shown

    def test_it_ends_with_the_last_execution(self, project: Path, typed: Typed) -> None:
        ran = typed("eval", "run", "--json").data
        assert f"First eval, {ran['execution']['startedAt'][:10]}" in typed("status").out
        found = typed("status", "--json").data
        assert found["lastExecution"]["id"] == ran["execution"]["id"]
        assert found["definitions"] == {
            "personas": 0,
            "connectors": 1,
            "scenarios": 1,
            "evals": 1,
            "monitors": 0,
        }
        assert found["models"] is None

    def test_no_secret_of_the_config_is_shown(self, project: Path, typed: Typed) -> None:
        config = json.loads((project / "evalstudio.config.json").read_text())
        config["llmSettings"] = {
            "provider": "openai",
            "apiKey": "sk-secret",
            "models": {"evaluation": "gpt-x"},
        }
        (project / "evalstudio.config.json").write_text(json.dumps(config))
        shown = typed("status").out
        assert "provider openai, evaluation gpt-x" in shown
        assert "sk-secret" not in shown + typed("status", "--json").out

    def test_outside_a_project_nothing_is_made(
        self, tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert 'make a project with "evalstudio init"' in typed("status", code=2).err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("answer", [None, "n\n"])
def test_serve_makes_no_project_unasked(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    done = typed("serve", code=None, stdin="" if answer is None else Terminal(answer))
    assert done.code == (2 if answer is None else 1)
    assert "There is no evalstudio.config.json here or in a folder above" in done.err
    assert "--init" in done.err or answer
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("option", "answer"), [("--init", ""), ("--web", "y\n")])
def test_serve_makes_a_project_on_request(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, answer: str
) -> None:
    monkeypatch.chdir(tmp_path)
    # The project is made; serving it is refused, which spares this test a server.
    monkeypatch.setenv("EVALSTUDIO_TOKEN", "short")
    done = typed("serve", "--host", "0.0.0.0", option, code=2, stdin=Terminal(answer))
    assert f"Made a project in {tmp_path}" in done.err
    assert (tmp_path / "evalstudio.config.json").exists()
    assert "too short" in done.err
