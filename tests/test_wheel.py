"""The wheel and the source distribution: what is in them, and how much an install of them takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PAGES = Path("src/evalstudio/server/web")
UV = Path(sys.executable).with_name("uv")
MOST_PACKAGES, MOST_BYTES = 45, 150_000_000
# Stands in for an installation of Node that is too old.
OLD_NODE = "#!/bin/sh\nexit 1\n"


def copy_of_the_sources(folder: Path) -> Path:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).is_file() and not name.startswith("docs/images/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


def without_node(folder: Path) -> dict[str, str]:
    """An environment whose Node is too old to build the pages."""
    for name in ("node", "npm"):
        (folder / name).write_text(OLD_NODE)
        (folder / name).chmod(0o755)
    return os.environ | {"PATH": f"{folder}:/usr/bin:/bin"}


def test_the_pages_are_not_built_without_node_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy2(REPOSITORY / "scripts" / "web", tmp_path / "scripts" / "web")
    done = subprocess.run(
        [tmp_path / "scripts" / "web"], env=without_node(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "The web UI needs Node 20.19 or newer. Install it, or run: make setup" in done.stderr


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["--wheel", "--sdist"])
def test_building_without_node_fails_with_a_sentence(tmp_path: Path, kind: str) -> None:
    sources = copy_of_the_sources(tmp_path / "sources")
    done = subprocess.run(
        [UV, "build", kind, "--out-dir", tmp_path / "dist"],
        cwd=sources, env=without_node(tmp_path), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "The web UI could not be built, and without it the package would have no pages." in done.stderr
    assert not list((tmp_path / "dist").glob("evalstudio-*"))


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = copy_of_the_sources(tmp_path_factory.mktemp("sources"))
    shutil.copytree(REPOSITORY / PAGES, sources / PAGES)
    (sources / PAGES / "index.html").touch()
    # The wheel is made from the source distribution: what is missing there is missing here.
    subprocess.run([UV, "build", "--quiet", "--out-dir", sources / "dist"], cwd=sources, check=True)
    return sources / "dist"


@pytest.mark.soak
def test_the_pages_are_in_the_wheel_and_in_the_source_distribution(distributions: Path) -> None:
    (wheel,), (archive,) = distributions.glob("*.whl"), distributions.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(archive) as source:
        in_wheel = {name.removeprefix("evalstudio/server/web/") for name in packed.namelist()}
        in_source = {name.partition(f"{PAGES}/")[2] for name in source.getnames()}
        assert "evalstudio/llm/prices.json" in packed.namelist()
    pages = {
        str(file.relative_to(REPOSITORY / PAGES))
        for file in (REPOSITORY / PAGES).rglob("*")
        if file.is_file()
    }
    assert len(pages) > 10
    assert pages <= in_wheel
    assert pages <= in_source


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it needs, in the versions of the lock, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    constraints = folder / "constraints.txt"
    pins = re.findall(r"^[\w.-]+==.*?(?= *\\$)", (REPOSITORY / "requirements.lock").read_text(), re.MULTILINE)
    constraints.write_text("\n".join(pins))
    (wheel,) = distributions.glob("*.whl")
    subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--compile-bytecode", "-c", constraints, wheel],
        env=os.environ | {"VIRTUAL_ENV": str(folder / "venv")}, check=True,
    )  # fmt: skip
    return folder / "venv"


@pytest.mark.soak
def test_the_base_install_is_small(installed: Path) -> None:
    (packages,) = installed.glob("lib/python*/site-packages")
    names = sorted(folder.name for folder in packages.glob("*.dist-info"))
    size = sum(file.lstat().st_size for file in packages.rglob("*") if file.is_file())
    print(f"\nbase install: {len(names)} packages, {size / 1e6:.1f} MB with bytecode")
    assert len(names) < MOST_PACKAGES, names
    assert size < MOST_BYTES


BASE = """
import asyncio
from evalstudio.llm import Llm, LlmSettings

async def main() -> None:
    from evalstudio import Message
    for settings in ({"provider": "anthropic"}, {"baseUrl": "http://127.0.0.1:9/v1"}):
        settings |= {"apiKey": "k", "models": {"persona": "m"}, "maxRetries": 0}
        async with Llm(LlmSettings.model_validate(settings)) as llm:
            try:
                await llm.chat([Message(role="user", content="Hi")])
            except Exception as error:
                print(error)

asyncio.run(main())
"""


@pytest.mark.soak
def test_the_base_install_works_and_names_the_extra_that_a_provider_needs(
    installed: Path, tmp_path: Path
) -> None:
    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    assert run(str(installed / "bin" / "evalstudio"), "demo", "--help")
    run(str(installed / "bin" / "evalstudio"), "init", ".")
    assert "1 eval" in run(str(installed / "bin" / "evalstudio"), "status")
    missing, unreachable = run(str(installed / "bin" / "python"), "-c", BASE).splitlines()
    assert 'pip install "evalstudio[anthropic]"' in missing
    assert "nothing listens there" in unreachable
