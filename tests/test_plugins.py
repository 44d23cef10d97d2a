"""Loading plugins from files, modules and installed distributions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.plugin_files import (
    BROKEN,
    broken_plugins,
    evaluator_source,
    plugin_types,
    write_distribution,
    write_project,
)

from evalstudio import load_plugins
from evalstudio.base.installed import may_declare
from evalstudio.base.problems import InvalidInput
from evalstudio.plugins import PluginError
from evalstudio.testing import context

CONNECTOR = (
    "from evalstudio import define_connector\n\n\n"
    "@define_connector()\n"
    "async def parrot(ctx):\n"
    '    """Says it back."""\n'
    "    return ctx.messages[-1].text\n"
)


@pytest.fixture(autouse=True)
def _import_state_is_restored(tmp_path: Path) -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that counts as installed packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def failure(config: Path) -> str:
    with pytest.raises(PluginError) as caught:
        load_plugins(config)
    return str(caught.value)


class TestFiles:
    def test_are_found_beside_the_config_not_the_working_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = write_project(
            tmp_path / "p",
            ["./checks/a.py", "b.py"],
            {"checks/a.py": evaluator_source("a_check"), "b.py": CONNECTOR},
        )
        monkeypatch.chdir(tmp_path)
        registry = load_plugins("p/evalstudio.config.json")
        assert plugin_types(registry) == ["a-check"]
        assert registry.get_connector("parrot") is not None
        assert [plugin.to_json() for plugin in registry.plugins] == [
            {
                "name": "./checks/a.py",
                "path": str(config.parent / "checks" / "a.py"),
                "evaluators": ["a-check"],
                "connectors": [],
            },
            {"name": "b.py", "path": str(config.parent / "b.py"), "evaluators": [], "connectors": ["parrot"]},
        ]

    def test_may_be_given_absolutely(self, tmp_path: Path) -> None:
        place = tmp_path / "elsewhere" / "Ünï code.py"
        place.parent.mkdir()
        place.write_text(evaluator_source("far_check"), encoding="utf-8")
        assert plugin_types(load_plugins(write_project(tmp_path / "p", [str(place)]))) == ["far-check"]

    def test_may_be_a_package_folder(self, tmp_path: Path) -> None:
        files = {
            "checks/__init__.py": "from . import inner\n",
            "checks/inner.py": evaluator_source("inner_check"),
        }
        config = write_project(tmp_path, ["./checks"], files)
        for _ in range(2):
            assert plugin_types(load_plugins(config)) == ["inner-check"]

    def test_import_what_lies_beside_them_and_beside_the_config(self, tmp_path: Path) -> None:
        source = "import near_plugin_sdk\nimport near_config_sdk\n" + evaluator_source("sdk_check")
        files = {"sub/a.py": source, "sub/near_plugin_sdk.py": "", "near_config_sdk.py": ""}
        assert plugin_types(load_plugins(write_project(tmp_path, ["./sub/a.py"], files))) == ["sdk-check"]

    def test_contribute_only_what_is_made_in_them(self, tmp_path: Path) -> None:
        source = "from lib_of_checks import lent_check\nagain = lent_check\n" + evaluator_source("own_check")
        files = {"a.py": source, "lib_of_checks.py": evaluator_source("lent_check")}
        assert plugin_types(load_plugins(write_project(tmp_path, ["./a.py"], files))) == ["own-check"]

    def test_may_say_explicitly_what_they_contribute(self, tmp_path: Path) -> None:
        source = (
            "from evalstudio import Plugin\nfrom lib_of_lent import lent_check\n"
            + evaluator_source("hidden_check")
            + "\n\nclass Old:\n    type = 'old-style'\n\n"
            + "    async def evaluate(self, input, criteria):\n        return []\n\n\n"
            + "plugin = Plugin(evaluators=[lent_check, Old])\n"
        )
        files = {"a.py": source, "lib_of_lent.py": evaluator_source("lent_check")}
        registry = load_plugins(write_project(tmp_path, ["./a.py"], files))
        assert plugin_types(registry) == ["lent-check", "old-style"]

    def test_an_alias_is_no_duplicate(self, tmp_path: Path) -> None:
        source = evaluator_source("one_check") + "\n\nalias = one_check\n"
        assert plugin_types(load_plugins(write_project(tmp_path, ["./a.py"], {"a.py": source}))) == [
            "one-check"
        ]

    def test_listed_twice_are_loaded_once(self, tmp_path: Path) -> None:
        files = {"a.py": evaluator_source("one_check")}
        config = write_project(tmp_path, ["./a.py", "a.py"], files, evaluators=["./x/../a.py"])
        assert len(load_plugins(config).plugins) == 1

    def test_are_listed_under_both_spellings(self, tmp_path: Path) -> None:
        files = {"a.py": evaluator_source("a_check"), "b.py": evaluator_source("b_check")}
        config = write_project(tmp_path, ["./a.py"], files, evaluators=["./b.py"])
        assert plugin_types(load_plugins(config)) == ["a-check", "b-check"]

    def test_are_listed_in_yaml_too(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").write_text(evaluator_source("a_check"))
        config = tmp_path / "evalstudio.config.yaml"
        config.write_text("plugins:\n  - ./a.py\n")
        assert plugin_types(load_plugins(config)) == ["a-check"]

    def test_are_read_anew_on_every_load(self, tmp_path: Path) -> None:
        config = write_project(tmp_path, ["./a.py"], {"a.py": evaluator_source("check_a")})
        first = load_plugins(config)
        (tmp_path / "a.py").write_text(evaluator_source("check_b"))
        assert plugin_types(load_plugins(config)) == ["check-b"]
        assert plugin_types(first) == ["check-a"]

    def test_of_two_projects_each_get_their_own_sibling(self, tmp_path: Path) -> None:
        source = "import same_sdk\n" + evaluator_source("check").replace("True", "same_sdk.ANSWER")
        registries = [
            load_plugins(
                write_project(
                    tmp_path / name, ["./a.py"], {"a.py": source, "same_sdk.py": f"ANSWER = {answer}\n"}
                )
            )
            for name, answer in (("one", True), ("two", False))
        ]
        answers = [definition(context("x")) for r in registries if (definition := r.get_evaluator("check"))]
        assert answers == [True, False]

    def test_cannot_take_the_place_of_the_standard_library(self, tmp_path: Path) -> None:
        source = "import wave\nassert hasattr(wave, 'Wave_read')\n" + evaluator_source("check")
        config = write_project(tmp_path, ["./a.py"], {"a.py": source, "wave.py": "raise RuntimeError\n"})
        assert plugin_types(load_plugins(config)) == ["check"]

    def test_leave_nothing_behind_when_they_fail(self, tmp_path: Path) -> None:
        config = write_project(tmp_path, ["./a.py"], {"a.py": "1 / 0\n"})
        before = {name for name in sys.modules if name.startswith("evalstudio_plugin_")}
        failure(config)
        assert {name for name in sys.modules if name.startswith("evalstudio_plugin_")} == before
        (tmp_path / "a.py").write_text(evaluator_source("mended"))
        assert plugin_types(load_plugins(config)) == ["mended"]


class TestModulesAndDistributions:
    def test_a_dotted_module_beside_the_config(self, tmp_path: Path) -> None:
        files = {"house_checks/__init__.py": "", "house_checks/tone.py": evaluator_source("tone_check")}
        registry = load_plugins(write_project(tmp_path, ["house_checks.tone"], files))
        assert plugin_types(registry) == ["tone-check"]
        assert registry.plugins[0].path == str(tmp_path / "house_checks" / "tone.py")

    def test_a_distribution_by_its_name_with_dashes(self, tmp_path: Path, installed: Path) -> None:
        write_distribution(
            installed,
            "evalstudio-my-agent",
            {"evalstudio_my_agent/__init__.py": evaluator_source("dist_check")},
        )
        registry = load_plugins(write_project(tmp_path / "p", ["evalstudio-my-agent"]))
        assert plugin_types(registry) == ["dist-check"]
        assert registry.plugins[0].name == "evalstudio-my-agent"

    def test_a_distribution_whose_module_has_another_name(self, tmp_path: Path, installed: Path) -> None:
        write_distribution(installed, "team-checks", {"quality_of_team.py": evaluator_source("team_check")})
        assert plugin_types(load_plugins(write_project(tmp_path / "p", ["Team_Checks"]))) == ["team-check"]

    def test_an_announced_distribution_needs_no_line_in_the_config(
        self, tmp_path: Path, installed: Path
    ) -> None:
        source = evaluator_source("loud_check") + "\n\n" + CONNECTOR
        write_distribution(installed, "loud-checks", {"loud_checks.py": source}, "loud = loud_checks")
        registry = load_plugins(write_project(tmp_path / "p", []))
        assert plugin_types(registry) == ["loud-check"]
        assert registry.plugins[0].to_json() == {
            "name": "loud-checks",
            "path": str(installed / "loud_checks.py"),
            "evaluators": ["loud-check"],
            "connectors": ["parrot"],
        }

    @pytest.mark.parametrize("listed", ["soft-checks", "soft_checks", "soft_checks.inner"])
    def test_announced_and_listed_is_loaded_once(self, tmp_path: Path, installed: Path, listed: str) -> None:
        files = {
            "soft_checks/__init__.py": "from .inner import soft_check\n",
            "soft_checks/inner.py": evaluator_source("soft_check"),
        }
        write_distribution(installed, "soft-checks", files, "soft = soft_checks")
        registry = load_plugins(write_project(tmp_path / "p", [listed]))
        assert plugin_types(registry) == ["soft-check"]
        assert [plugin.name for plugin in registry.plugins] == [listed]

    def test_an_entry_point_may_name_an_object(self, tmp_path: Path, installed: Path) -> None:
        source = (
            evaluator_source("a_check")
            + "\n\n"
            + evaluator_source("b_check").split("\n\n\n")[1]
            + "\n\nfrom evalstudio import Plugin\n\nmine = Plugin(evaluators=[b_check])\n"
        )
        write_distribution(installed, "picky", {"picky_checks.py": source}, "x = picky_checks:mine")
        assert plugin_types(load_plugins(write_project(tmp_path / "p", []))) == ["b-check"]

    def test_a_broken_announced_plugin_is_named(self, tmp_path: Path, installed: Path) -> None:
        write_distribution(
            installed, "broken-dist", {"broken_dist.py": "import no_such_thing_here\n"}, "x = broken_dist"
        )
        message = failure(write_project(tmp_path / "p", []))
        assert message.startswith('Plugin "broken-dist" could not be imported:')
        assert "No module named 'no_such_thing_here'" in message

    def test_a_module_whose_parent_fails_is_no_missing_module(self, tmp_path: Path) -> None:
        files = {"sick_parent/__init__.py": "import not_there_at_all\n", "sick_parent/a.py": ""}
        message = failure(write_project(tmp_path, ["sick_parent.a"], files))
        assert message.startswith('Plugin "sick_parent.a" could not be imported:')
        assert "not_there_at_all" in message

    @pytest.mark.parametrize(
        "name", ["no.such.module", "json.nope", "__main__.x", "a b", "ünïcode-plugin", "..."]
    )
    def test_a_module_that_is_not_there(self, tmp_path: Path, name: str) -> None:
        assert f'Plugin "{name}" ' in failure(write_project(tmp_path, [name]))


class TestBrokenPlugins:
    @pytest.mark.parametrize("kind", BROKEN)
    def test_give_one_clear_message(self, tmp_path: Path, kind: str) -> None:
        config, expected = broken_plugins(tmp_path)[kind]
        message = failure(config)
        for part in expected:
            assert part in message
        assert "evalstudio/plugins" not in message
        assert "importlib" not in message

    def test_show_only_the_end_of_a_long_traceback(self, tmp_path: Path) -> None:
        source = "def down(n):\n    return down(n + 1)\n\n\ndown(0)\n"
        assert len(failure(write_project(tmp_path, ["./a.py"], {"a.py": source})).splitlines()) <= 13

    def test_name_the_line_that_misuses_the_library(self, tmp_path: Path) -> None:
        source = evaluator_source("a").replace("@define_evaluator", "@define_evaluator('no blanks')")
        message = failure(write_project(tmp_path, ["./a.py"], {"a.py": source}))
        assert "a.py" in message
        assert "must start with a letter" in message

    def test_a_folder_that_is_no_package_and_a_file_that_is_no_python(self, tmp_path: Path) -> None:
        (tmp_path / "dir").mkdir()
        assert "folder without an __init__.py" in failure(write_project(tmp_path, ["./dir"]))
        assert "not a Python file" in failure(write_project(tmp_path, ["./c.js"], {"c.js": "export {}"}))

    def test_a_file_that_is_not_text(self, tmp_path: Path) -> None:
        config = write_project(tmp_path, ["./a.py"])
        (tmp_path / "a.py").write_bytes(b"\x00\xff\xfe")
        assert 'Plugin "./a.py" could not be imported' in failure(config)

    @pytest.mark.parametrize("plugins", ["./a.py", {"a": 1}, [1], [None], [""], ["  "], None])
    def test_a_list_that_is_none(self, tmp_path: Path, plugins: Any) -> None:
        with pytest.raises(InvalidInput, match="plugins"):
            load_plugins(write_project(tmp_path, plugins))

    def test_a_missing_config_file(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="no such file"):
            load_plugins(tmp_path / "evalstudio.config.json")


SPEC_STYLE = '''
from evalstudio import define_connector, define_evaluator


async def greets(ctx):
    words = ctx.config["greetings"]
    return any(word in ctx.response.lower() for word in words)


default = define_evaluator({
    "type": "greeting-check",
    "label": "Greeting Check",
    "kind": "assertion",
    "description": "The agent greets the user",
    "configSchema": {
        "type": "object",
        "properties": {"greetings": {"type": "array", "items": {"type": "string"}, "default": ["hello"]}},
    },
    "evaluate": greets,
})


@define_connector
async def bare_agent(ctx):
    """Answers."""
    return "Hello"


booking = define_connector({
    "type": "booking-agent",
    "label": "Booking Agent",
    "configSchema": {"type": "object", "properties": {"region": {"type": "string"}}},
    "needsAddress": True,
    "invoke": lambda ctx: "Booked",
    "test": lambda ctx: "healthy",
})


class Politeness:
    """Says please."""

    type = "politeness"

    async def evaluate(self, record, criteria):
        return []
'''


class TestWaysToDefine:
    async def test_mappings_bare_decorators_and_classes_all_contribute(self, tmp_path: Path) -> None:
        registry = load_plugins(write_project(tmp_path, ["./all.py"], {"all.py": SPEC_STYLE}))
        assert plugin_types(registry) == ["greeting-check", "politeness"]
        greeting = registry.get_evaluator("greeting-check")
        assert greeting is not None
        assert (greeting.label, greeting.description) == ("Greeting Check", "The agent greets the user")
        assert await greeting(context(response="Hello!", config=greeting.use().config)) is True
        bare, booking = registry.get_connector("bare-agent"), registry.get_connector("booking-agent")
        assert bare is not None
        assert bare.description == "Answers."
        assert booking is not None
        assert booking.needs_address
        assert booking.test_hook is not None
        assert booking.config.schema["properties"]["region"] == {"type": "string"}

    def test_a_plugin_may_be_a_mapping(self, tmp_path: Path) -> None:
        source = evaluator_source("one") + evaluator_source("two") + "\nplugin = {'evaluators': [two]}\n"
        assert plugin_types(load_plugins(write_project(tmp_path, ["./a.py"], {"a.py": source}))) == ["two"]
        wrong = source + "plugin = {'evaluator': [two]}\n"
        config = write_project(tmp_path, ["./b.py"], {"b.py": wrong})
        assert '"evaluator" in plugin is not a list of connectors or evaluators' in failure(config)

    @pytest.mark.parametrize(
        ("source", "said"),
        [
            ("define_evaluator({'type': 'a'})", '"evaluate" is missing'),
            ("define_evaluator({'type': 'a', 'evaluate': 1})", '"evaluate" must be a function'),
            ("define_evaluator({'evaluate': print, 'lable': 'x'})", 'unknown "lable"; did you mean label?'),
            ("define_evaluator({'evaluate': print, 'kind': 'test'})", "kind must be assertion or metric"),
            ("define_evaluator({'type': 'a b', 'evaluate': print})", "must start with a letter"),
            ("define_evaluator({'type': 7, 'evaluate': print})", "type 7 must start with a letter"),
            ("define_evaluator(gates='always')(print)", 'unknown "gates"; did you mean gate?'),
            ("define_evaluator(object)", "object needs a type (text) and an evaluate method"),
            ("define_connector({'type': 'a', 'test': print})", '"invoke" is missing'),
            ("define_connector({'invoke': print, 'tset': print})", 'unknown "tset"; did you mean test'),
            ("define_connector(object)", "object is a class"),
            ("define_connector(lable='x')(print)", 'unknown "lable"; did you mean label?'),
        ],
    )
    def test_what_is_missing_is_said(self, tmp_path: Path, source: str, said: str) -> None:
        code = f"from evalstudio import define_connector, define_evaluator\n\nmade = {source}\n"
        told = failure(write_project(tmp_path, ["./a.py"], {"a.py": code}))
        assert said in told
        assert "a.py" in told


def test_a_folder_may_declare_plugins_where_a_package_names_them_or_it_cannot_be_listed(
    tmp_path: Path,
) -> None:
    group = "evalstudio.plugins"
    write_distribution(tmp_path / "plain", "plain", {"plain.py": ""})
    write_distribution(tmp_path / "declaring", "declaring", {"own.py": ""}, "own = own")
    (tmp_path / "packed.zip").write_bytes(b"")
    (tmp_path / "old" / "EGG-INFO").mkdir(parents=True)
    (tmp_path / "old" / "EGG-INFO" / "entry_points.txt").write_text(f"[{group}]\nold = old\n")
    named = {
        name: may_declare(str(tmp_path / name), group) for name in ("plain", "declaring", "packed.zip", "old")
    }
    assert named == {"plain": False, "declaring": True, "packed.zip": True, "old": True}
