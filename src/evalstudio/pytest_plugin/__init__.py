"""The pytest plugin: definitions in files as tests, and a fixture that runs scenarios.

It is loaded with every run of pytest where the package is installed, so nothing is imported here and nothing
is done until a test, an option or the ini file asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..storage.contract import FinishedRun
    from .collection import DefinitionFile
    from .fixture import ScenarioRunner
    from .results import ScenarioResult

_SUFFIXES = (".yaml", ".yml", ".json")
RUNS: pytest.StashKey[list[FinishedRun]] = pytest.StashKey()
"""What a test has run and no report has told yet."""
RESULTS: pytest.StashKey[list[ScenarioResult]] = pytest.StashKey()
"""What was handed to a test, for it to assert."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("evalstudio", "scenarios and evals of agents")
    group.addoption(
        "--evalstudio-files",
        action="append",
        metavar="GLOB",
        default=[],
        help="Collect the scenarios and evals of these files or folders, seen from the rootdir.",
    )
    group.addoption(
        "--evalstudio-connector",
        metavar="NAME",
        help="The connector of scenarios that are in no eval; not needed where the files define only one.",
    )
    group.addoption(
        "--evalstudio-config", metavar="PATH", help="The project's config file; else the nearest one."
    )
    group.addoption(
        "--evalstudio-store",
        action="store_true",
        help="Keep the runs in the project's database, as one execution.",
    )
    parser.addini("evalstudio_files", "Files of scenarios and evals to collect", type="args", default=[])
    parser.addini("evalstudio_connector", "The connector of scenarios that are in no eval", default="")
    parser.addini("evalstudio_config", "The project's config file", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "evalstudio: scenarios and evals that were collected from files.")
    if config.getoption("evalstudio_store"):
        from .storing import LeftOutTeller, ResultKeeper

        keeper = LeftOutTeller if hasattr(config, "workerinput") else ResultKeeper
        config.pluginmanager.register(keeper(config), "evalstudio-store")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Refuse files that are not there before anything is collected."""
    if _has_files(session.config):
        from .collection import chosen_files

        chosen_files(session.config)


def _has_files(config: pytest.Config) -> bool:
    return bool(config.getoption("evalstudio_files") or config.getini("evalstudio_files"))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> DefinitionFile | None:
    if file_path.suffix.lower() not in _SUFFIXES:
        return None
    config = parent.config
    if not _has_files(config):
        return None
    from .collection import DefinitionFile, chosen_files

    if file_path not in chosen_files(config):
        return None
    made: Any = DefinitionFile
    return made.from_parent(parent, path=file_path)


@pytest.fixture(name="evalstudio")
def _evalstudio(request: pytest.FixtureRequest) -> ScenarioRunner:  # pyright: ignore[reportUnusedFunction]
    """Runs scenarios: ``assert evalstudio.run(scenario, agent).passed``."""
    from .fixture import ScenarioRunner

    return ScenarioRunner(request.node)


# The older form of a wrapper: whoever has an old pytest must not lose it to a plugin that is not used.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    if call.when == "call" and (results := item.stash.get(RESULTS, None)):
        _fail_unasserted(outcome.get_result(), results)
        item.stash[RESULTS] = []
    if runs := item.stash.get(RUNS, None):
        from .storing import attach

        attach(runs, outcome.get_result(), item.config)
        item.stash[RUNS] = []


def _fail_unasserted(report: pytest.TestReport, results: Sequence[ScenarioResult]) -> None:
    """A test that passed although what it ran did not, because it never looked, has failed."""
    unseen = [one for one in results if not one.was_looked_at and not one.passed]
    if report.passed and unseen:
        told = "the test never looked at what it ran; write: assert evalstudio.run(...).passed"
        report.outcome = "failed"
        report.longrepr = "\n\n".join([told, *map(str, unseen)])
