"""Folders of other users: nothing in them runs before somebody says that it may."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.support.command_line import evalstudio
from tests.support.projects import apply_project, make_project, scripted

from evalstudio.base import trust as trusting
from evalstudio.base.problems import InvalidInput
from evalstudio.base.trust import check_trusted
from evalstudio.plugins import PluginError, load_plugins
from evalstudio.project.config import find_config, read_config

OTHER = 54321

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)


@pytest.fixture(autouse=True)
def own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of trusted folders of this test alone."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.delenv("EVALSTUDIO_TRUST", raising=False)
    return tmp_path / "settings" / "evalstudio" / "trusted"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose plugin leaves a trace when it runs."""
    config = make_project(tmp_path / "project", [scripted("hello", "hi")])
    apply_project(config)
    plugin = config.parent / "agent.py"
    plugin.write_text(
        plugin.read_text() + '\nopen(os.path.join(os.path.dirname(__file__), "ran"), "w").close()\n'
    )
    return config.parent


def ran(folder: Path) -> bool:
    return (folder / "ran").exists()


READING = [
    ("status",),
    ("status", "--json"),
    ("run", "list"),
    ("execution", "list"),
    ("export",),
    ("scenario", "list"),
    ("scenario", "show", "hello"),
    ("scenario", "export", "-"),
    ("persona", "list"),
    ("connector", "list"),
    ("connector", "show", "agent"),
    ("eval", "list"),
    ("db", "status"),
    ("db", "prune", "--keep", "90d", "--yes"),
]


class TestReadingRunsNothing:
    @pytest.mark.parametrize("arguments", READING, ids=" ".join)
    def test_a_command_that_needs_no_plugin_loads_none(
        self, folder: Path, arguments: tuple[str, ...]
    ) -> None:
        done = evalstudio(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert not ran(folder)

    def test_one_that_does_loads_them(self, folder: Path) -> None:
        assert evalstudio("eval", "run", cwd=folder).returncode == 0
        assert ran(folder)

    def test_the_plugins_are_named_all_the_same(self, folder: Path) -> None:
        shown = json.loads(evalstudio("status", "--json", cwd=folder).stdout)
        assert shown["plugins"] == [{"name": "./agent.py"}]


class TestFilesOfOthers:
    @pytest.mark.parametrize("part", ["evalstudio.config.json", "agent.py", "."])
    def test_are_refused_with_how_to_trust_them(self, folder: Path, part: str) -> None:
        os.chown(folder / part, OTHER, OTHER)
        done = evalstudio("evaluators", "list", cwd=folder)
        assert done.returncode == 2
        assert "another user" in done.stderr
        assert f"evalstudio trust {folder}" in done.stderr
        assert f"EVALSTUDIO_TRUST={folder}" in done.stderr
        assert not ran(folder)

    @pytest.mark.parametrize("part", ["evalstudio.config.json", "agent.py", "."])
    def test_so_are_those_that_everybody_may_change(self, folder: Path, part: str) -> None:
        (folder / part).chmod(0o777)
        done = evalstudio("evaluators", "list", cwd=folder)
        assert done.returncode == 2
        assert "can be changed by everybody" in done.stderr
        assert not ran(folder)

    def test_a_folder_like_tmp_does_no_harm(self, folder: Path) -> None:
        folder.chmod(0o1777)
        assert evalstudio("evaluators", "list", cwd=folder).returncode == 0

    def test_a_config_further_up_is_held_to_the_same(self, folder: Path) -> None:
        os.chown(folder / "evalstudio.config.json", OTHER, OTHER)
        inner = folder / "deep" / "down"
        inner.mkdir(parents=True)
        for command in (("status",), ("run", "list"), ("serve",), ("worker",), ("plugins", "list")):
            done = evalstudio(*command, cwd=inner)
            assert done.returncode == 2, command
            assert "evalstudio trust" in done.stderr
        assert not ran(folder)

    def test_a_module_beside_the_config_and_a_package_are_looked_at_too(self, tmp_path: Path) -> None:
        source = "from evalstudio import define_evaluator\n"
        config = make_project(tmp_path / "p", [], plugins=["beside", "./package"])
        package = config.parent / "package"
        package.mkdir()
        for file in (config.parent / "beside.py", package / "__init__.py", package / "inner.py"):
            file.write_text(source)
        os.chown(package / "inner.py", OTHER, OTHER)
        problems: dict[str, str] = {}
        load_plugins(config, problems=problems)
        assert "another user" in problems["./package"]
        os.chown(config.parent / "beside.py", OTHER, OTHER)
        with pytest.raises(PluginError, match="another user"):
            load_plugins(config)

    def test_a_link_of_theirs_to_a_file_of_ours_is_theirs(self, tmp_path: Path) -> None:
        config = make_project(tmp_path / "mine", [])
        link = tmp_path / "theirs.json"
        link.symlink_to(config)
        os.chown(link, OTHER, OTHER, follow_symlinks=False)
        with pytest.raises(InvalidInput, match="another user"):
            read_config(link)

    def test_ones_own_and_roots_are_fine(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for path in (folder, folder / "evalstudio.config.json"):
            os.chown(path, OTHER, OTHER)
        config = find_config(folder)
        assert config is not None
        monkeypatch.setattr(os, "geteuid", lambda: OTHER)
        read_config(config)
        os.chown(config, 0, 0)
        read_config(config)
        monkeypatch.setattr(os, "geteuid", lambda: 1234)
        with pytest.raises(InvalidInput, match="another user"):
            read_config(config)


class TestTrusting:
    def test_a_trusted_folder_opens_until_it_is_revoked(self, folder: Path, own_list: Path) -> None:
        for path in (folder, folder / "agent.py", folder / "evalstudio.config.json"):
            os.chown(path, OTHER, OTHER)
        assert evalstudio("status", cwd=folder).returncode == 2
        done = evalstudio("trust", cwd=folder)
        assert (done.returncode, done.stdout.split()[0]) == (0, str(folder))
        assert own_list.stat().st_mode & 0o777 == 0o600
        assert evalstudio("evaluators", "list", cwd=folder).returncode == 0
        assert evalstudio("trust", str(folder), "--revoke", cwd=folder.parent).returncode == 0
        assert evalstudio("status", cwd=folder).returncode == 2

    def test_the_environment_names_folders_too(self, folder: Path) -> None:
        os.chown(folder / "evalstudio.config.json", OTHER, OTHER)
        named = f"/nowhere{os.pathsep}{folder.parent}"
        assert evalstudio("status", cwd=folder, EVALSTUDIO_TRUST=named).returncode == 0
        beside = f"{folder}x"
        assert evalstudio("status", cwd=folder, EVALSTUDIO_TRUST=beside).returncode == 2

    def test_a_list_of_somebody_else_counts_for_nothing(self, folder: Path, own_list: Path) -> None:
        trusting.trust(folder)
        os.chown(own_list, OTHER, OTHER)
        os.chown(folder / "evalstudio.config.json", OTHER, OTHER)
        with pytest.raises(InvalidInput, match="evalstudio trust"):
            check_trusted(folder / "evalstudio.config.json")

    def test_only_folders_are_trusted(self, folder: Path) -> None:
        assert evalstudio("trust", "agent.py", cwd=folder).returncode == 2
