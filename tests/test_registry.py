"""The registry: what it takes, what it refuses, what it tells."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.support.plugin_files import evaluator_source, plugin_types, write_project

from evalstudio import Plugin, connectors, create_registry, define_connector, define_evaluator, load_plugins
from evalstudio.connectors import BUILTIN_TYPES as CONNECTOR_TYPES
from evalstudio.evaluators import builtin
from evalstudio.evaluators.builtin import AUTOMATIC, BUILTIN_TYPES
from evalstudio.plugins import PluginError
from evalstudio.plugins.registry import made_in
from evalstudio.testing import context


class TestTheRegistry:
    def test_has_every_built_in_once(self) -> None:
        types = create_registry().list_evaluator_types()
        names = [item["type"] for item in types]
        assert len(names) == len(set(names))
        assert set(names) == {page.stem for page in Path("docs/evaluators").glob("*.md")} - {"index"}
        definitions = [create_registry().get_evaluator(name) for name in names]
        modules = [one.module.rpartition(".")[2] for one in definitions if one is not None]
        assert dict(zip(names, modules, strict=True)) == BUILTIN_TYPES
        assert {one.type for one in definitions if one is not None and one.auto} == AUTOMATIC
        assert all(item["builtin"] and item["source"] == "built-in" for item in types)

    def test_has_every_type_that_a_built_in_module_makes(self) -> None:
        for package, types in ((builtin, BUILTIN_TYPES), (connectors, CONNECTOR_TYPES)):
            made = {
                one.type: name
                for name in dict.fromkeys(types.values())
                for one in made_in(import_module(f"{package.__name__}.{name}"))
            }
            assert made == types

    def test_imports_a_built_in_type_when_it_is_first_asked_for(self) -> None:
        registry = create_registry()
        assert registry.loaded_connectors() == []
        python = registry.get_connector("python")
        assert registry.loaded_connectors() == [python]
        assert create_registry().get_connector("python") is python

    def test_describes_types_for_forms(self) -> None:
        item = next(i for i in create_registry().list_evaluator_types() if i["type"] == "latency-budget")
        assert set(item) >= {
            "type",
            "label",
            "description",
            "kind",
            "gate",
            "configSchema",
            "builtin",
            "source",
        }
        assert "maxMs" in item["configSchema"]["properties"]

    def test_answers_none_for_what_it_does_not_know(self) -> None:
        registry = create_registry()
        assert registry.get_evaluator("nope") is None
        assert registry.get_connector("") is None

    def test_takes_a_definition(self) -> None:
        @define_evaluator
        def own_check(ctx: Any) -> bool:
            return True

        registry = create_registry()
        registry.register(own_check)
        assert registry.get_evaluator("own-check") is own_check
        assert registry.list_evaluator_types()[-1]["source"] == __name__

    def test_takes_a_connector(self) -> None:
        @define_connector(type="own-agent")
        def own_agent(ctx: Any) -> str:
            return "hi"

        registry = create_registry()
        registry.register(own_agent, source="here")
        assert registry.get_connector("own-agent") is own_agent
        described = next(item for item in registry.list_connector_types() if item["type"] == "own-agent")
        assert (described["builtin"], described["source"]) == (False, "here")

    @pytest.mark.parametrize("as_object", [False, True])
    async def test_takes_a_class_style_evaluator(self, as_object: bool) -> None:
        class Polite:
            """Says please."""

            type = "polite"

            async def evaluate(self, input: Any, criteria: Any) -> list[Any]:
                return [{"criterionName": "tone", "score": "please" in input.response, "reasoning": "asked"}]

        registry = create_registry()
        registry.register(Polite() if as_object else Polite)
        definition = registry.get_evaluator("polite")
        assert definition is not None
        entry = definition.use()
        results = await definition(context("Yes please", config=entry.config, criteria=[{"name": "tone"}]))
        assert results[0]["score"] is True

    def test_takes_an_object_whose_type_is_its_own(self) -> None:
        class Named:
            def __init__(self, name: str) -> None:
                self.type = name

            async def evaluate(self, input: Any, criteria: Any) -> list[Any]:
                return []

        registry = create_registry()
        registry.register(Named("one"))
        registry.register(Named("two"))
        assert registry.get_evaluator("two") is not None

    def test_takes_a_plugin_whole_or_not_at_all(self) -> None:
        @define_evaluator
        def fine(ctx: Any) -> bool:
            return True

        @define_evaluator
        def regex(ctx: Any) -> bool:
            return True

        registry = create_registry()
        with pytest.raises(PluginError, match=r'Evaluator type "regex" is already registered \(built-in\)'):
            registry.register(Plugin(evaluators=[fine, regex]), source="mine")
        assert registry.get_evaluator("fine") is None
        registry.register(Plugin(evaluators=[fine]), source="mine")
        assert registry.get_evaluator("fine") is fine

    def test_names_a_type_a_plugin_has_twice(self) -> None:
        @define_evaluator("same")
        def one(ctx: Any) -> bool:
            return True

        @define_evaluator("same")
        def two(ctx: Any) -> bool:
            return True

        with pytest.raises(PluginError, match='Plugin "mine" defines evaluator type "same" twice'):
            create_registry().register(Plugin(evaluators=[one, two]), source="mine")

    def test_lets_an_evaluator_and_a_connector_share_a_name(self) -> None:
        @define_connector(type="shared")
        def reach(ctx: Any) -> str:
            return ""

        @define_evaluator("shared")
        def check(ctx: Any) -> bool:
            return True

        registry = create_registry()
        registry.register(Plugin([reach], [check]))
        assert registry.get_connector("shared") is reach
        assert registry.get_evaluator("shared") is check

    @pytest.mark.parametrize("nonsense", [None, "regex", 7, object, lambda ctx: True])  # pyright: ignore
    def test_refuses_what_is_neither(self, nonsense: object) -> None:
        with pytest.raises(PluginError, match="neither an evaluator nor a connector"):
            create_registry().register(nonsense)

    def test_of_one_project_knows_nothing_of_another(self, tmp_path: Path) -> None:
        config = write_project(tmp_path, ["./a.py"], {"a.py": evaluator_source("alone")})
        assert plugin_types(load_plugins(config)) == ["alone"]
        assert plugin_types(create_registry()) == []
