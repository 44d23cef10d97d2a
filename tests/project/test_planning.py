"""Plans: what would change, in which order, and what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalstudio import create_registry
from evalstudio.base.files import parse_text
from evalstudio.base.problems import InvalidInput, ProblemList
from evalstudio.execution.definitions import writes_of
from evalstudio.project.changes import (
    DefinitionContext,
    ProjectState,
    changes_for,
    export_documents,
    project_state_of,
)
from evalstudio.project.documents import KINDS, Document, read_documents
from evalstudio.project.entities import StoredScenario
from evalstudio.project.secrets import MASK, SecretBox

PROJECT = """
personas:
  - {name: Ana, headers: {Authorization: Bearer abcdef, X-Plain: seen, X-Token: "Bearer ${TOKEN}"}}
connectors:
  - name: Agent
    type: http
    baseUrl: https://agent.test/v1
    headers: {X-Api-Key: s3cret-value}
    config: {requestTemplate: {apiKey: hidden-too}}
scenarios:
  - name: Hello
    personas: [Ana]
    script: [hi]
    tags: [a]
    evaluators: [{type: regex, config: {pattern: x}}]
evals:
  - {name: All, scenarios: [Hello], connectors: [Agent]}
"""


def documents(text: str) -> list[Document]:
    problems = ProblemList()
    found = [
        d for located in parse_text(text, "p.yaml", is_json=False) for d in read_documents(located, problems)
    ]
    assert not problems
    return found


@pytest.fixture
def around(tmp_path: Path) -> DefinitionContext:
    return DefinitionContext(create_registry(), tmp_path)


def kept(project_state: ProjectState, changes: Sequence[Any], box: SecretBox | None = None) -> ProjectState:
    """What a project holds after the changes, the way a store would keep it."""
    entities = {entity.id: (key[0], entity) for key, entity in project_state.entities.items()}
    for write in writes_of(project_state, changes, box):
        if write.delete is not None:
            del entities[write.delete]
        elif write.put is not None:
            entities[write.put.id] = (write.kind, write.put)
    return project_state_of({kind: [e for k, e in entities.values() if k == kind] for kind in KINDS})


EMPTY = project_state_of({kind: [] for kind in KINDS})


@pytest.fixture
def project_state(around: DefinitionContext) -> ProjectState:
    return kept(EMPTY, changes_for(EMPTY, documents(PROJECT), around))


def lines(changes: Sequence[Any]) -> list[str]:
    return [str(change) for change in changes]


def test_into_an_empty_project_everything_is_new_in_the_order_of_reference(around: DefinitionContext) -> None:
    reversed_file = "\n".join(f"---\n{part}" for part in reversed(PROJECT.split("\n\n")))
    planned = changes_for(EMPTY, list(reversed(documents(reversed_file))), around)
    assert lines(planned) == ["+ connector Agent", "+ persona Ana", "+ scenario Hello", "+ eval All"]


def test_the_same_again_changes_nothing(project_state: ProjectState, around: DefinitionContext) -> None:
    assert changes_for(project_state, documents(PROJECT), around) == []
    assert changes_for(project_state, documents(PROJECT), around, prune=True) == []


def test_changed_fields_are_named(project_state: ProjectState, around: DefinitionContext) -> None:
    text = PROJECT.replace("tags: [a]", "maxMessages: 4").replace("script: [hi]", "script: [ho]")
    planned = changes_for(project_state, documents(text), around)
    assert lines(planned) == ["~ scenario Hello (maxMessages, script, tags)"]
    assert planned[0].to_json() == {
        "change": "~",
        "kind": "scenario",
        "name": "Hello",
        "fields": ["maxMessages", "script", "tags"],
    }


def test_a_change_keeps_the_identity(project_state: ProjectState, around: DefinitionContext) -> None:
    before = project_state.entity(("scenario", "hello"))
    planned = changes_for(project_state, documents(PROJECT.replace("[hi]", "[ho]")), around)
    put = writes_of(project_state, planned)[0].put
    assert isinstance(put, StoredScenario)
    assert (put.id, put.created_at, put.script) == (before.id, before.created_at, ["ho"])


def test_names_differ_in_more_than_case(project_state: ProjectState, around: DefinitionContext) -> None:
    text = PROJECT.replace("personas: [Ana]", "personas: [ANA]").replace("[Hello]", "[hello]")
    assert changes_for(project_state, documents(text), around) == []
    assert lines(changes_for(project_state, documents("kind: persona\nname: ANA\n"), around))[0].startswith(
        "~ persona ANA (headers, name)"
    )


def test_what_is_not_in_the_files_stays_unless_pruned(
    project_state: ProjectState, around: DefinitionContext
) -> None:
    only = documents("kind: persona\nname: New\n")
    assert lines(changes_for(project_state, only, around)) == ["+ persona New"]
    pruned = changes_for(project_state, only, around, prune=True)
    assert lines(pruned) == [
        "+ persona New",
        "- eval All",
        "- scenario Hello",
        "- persona Ana",
        "- connector Agent",
    ]
    assert [d.name for d in export_documents(kept(project_state, pruned))] == ["New"]


def test_pruning_refuses_to_leave_a_reference_behind(
    project_state: ProjectState, around: DefinitionContext
) -> None:
    scenario = documents(PROJECT)[2:3]
    with pytest.raises(
        InvalidInput, match=r'p.yaml:12: scenario "Hello": personas\[0\]: there is no persona'
    ):
        changes_for(project_state, scenario, around, prune=True)


def test_an_unknown_reference_suggests_what_may_be_meant(around: DefinitionContext) -> None:
    text = PROJECT.replace("scenarios: [Hello]", "scenarios: [Helo]")
    with pytest.raises(InvalidInput) as caught:
        changes_for(EMPTY, documents(text), around)
    assert str(caught.value) == (
        'p.yaml:17: eval "All": scenarios[0]: there is no scenario called "Helo"; did you mean Hello?'
    )


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (
            "type: regex",
            "type: regx",
            'p.yaml:15: scenario "Hello": evaluators[0].type: no evaluator is called "regx"',
        ),
        ("pattern: x", "pattern: (", 'scenario "Hello": evaluators[0].config: bad pattern:'),
        ("pattern: x", "patern: x", 'scenario "Hello": evaluators[0].config'),
        (
            "type: http",
            "type: htp",
            'p.yaml:6: connector "Agent": type: no connector type is called "htp"; did you mean',
        ),
        ("config: {", "config: {paht: x, ", 'p.yaml:9: connector "Agent": config.paht:'),
        (
            "https://agent",
            "https://me:pw@agent",
            'p.yaml:7: connector "Agent": baseUrl: holds a literal secret',
        ),
        ("script: [hi]", "script: []\n    cases: nope.csv", "nope.csv: no such file"),
        (
            "script: [hi]",
            "script: ['{{x}}']\n    cases: [{name: c, vars: {y: 1}}]",
            'p.yaml:13: scenario "Hello": case "c": script[0]: {{x}} has no value',
        ),
        ("script: [hi]", "script: [hi]\n    maxMessages: 1", "maxMessages: leaves no room"),
    ],
)
def test_what_does_not_fit_here_is_told_with_its_line(
    around: DefinitionContext, was: str, now: str, expected: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        changes_for(EMPTY, documents(PROJECT.replace(was, now)), around)
    assert expected in str(caught.value)


def test_a_simulated_user_is_defined_without_a_model(around: DefinitionContext) -> None:
    planned = changes_for(EMPTY, documents(PROJECT.replace("script: [hi]", "")), around)
    assert "+ scenario Hello" in lines(planned)


class TestSecrets:
    def test_they_are_masked_in_what_is_exported(self, project_state: ProjectState) -> None:
        ana, agent = export_documents(project_state)[:2]
        assert ana.body["headers"] == {
            "Authorization": MASK,
            "X-Plain": "seen",
            "X-Token": "Bearer ${TOKEN}",
        }
        assert agent.body["headers"] == {"X-Api-Key": MASK}
        assert agent.body["config"] == {"requestTemplate": {"apiKey": MASK}}

    def test_what_is_exported_changes_nothing_and_keeps_them(
        self, project_state: ProjectState, around: DefinitionContext
    ) -> None:
        exported = export_documents(project_state)
        assert changes_for(project_state, exported, around) == []
        exported[1].body["config"] = {**exported[1].body["config"], "path": "/chat"}
        after = kept(project_state, changes_for(project_state, exported, around))
        assert after.entity(("connector", "agent")).headers == {"X-Api-Key": "s3cret-value"}

    def test_they_do_not_go_to_another_address(
        self, project_state: ProjectState, around: DefinitionContext
    ) -> None:
        exported = export_documents(project_state)
        exported[1].body["baseUrl"] = "https://evil.test/v1"
        after = kept(project_state, changes_for(project_state, exported, around))
        agent = after.entity(("connector", "agent"))
        assert (agent.headers, agent.config) == ({}, {"requestTemplate": {}})

    def test_another_path_at_the_same_address_keeps_them(
        self, project_state: ProjectState, around: DefinitionContext
    ) -> None:
        exported = export_documents(project_state)
        exported[1].body["baseUrl"] = "https://agent.test/v2"
        after = kept(project_state, changes_for(project_state, exported, around))
        assert after.entity(("connector", "agent")).headers == {"X-Api-Key": "s3cret-value"}

    def test_a_mask_without_anything_behind_it_is_refused(
        self, project_state: ProjectState, around: DefinitionContext
    ) -> None:
        with pytest.raises(InvalidInput, match=r"headers.Authorization: \*+ stands for a secret"):
            changes_for(EMPTY, export_documents(project_state), around)

    def test_a_new_value_replaces_the_old(
        self, project_state: ProjectState, around: DefinitionContext
    ) -> None:
        planned = changes_for(project_state, documents(PROJECT.replace("s3cret-value", "another")), around)
        assert lines(planned) == ["~ connector Agent (headers)"]
        assert kept(project_state, planned).entity(("connector", "agent")).headers == {"X-Api-Key": "another"}

    def test_sealed_ones_are_compared_by_what_is_in_them(self, tmp_path: Path) -> None:
        box = SecretBox(tmp_path / "secret.key")
        around = DefinitionContext(create_registry(), tmp_path, box)
        sealed = kept(EMPTY, changes_for(EMPTY, documents(PROJECT), around), box)
        assert "s3cret-value" not in str(sealed.entity(("connector", "agent")))
        assert changes_for(sealed, documents(PROJECT), around) == []
        assert changes_for(sealed, export_documents(sealed), around) == []
        planned = changes_for(sealed, documents(PROJECT.replace("s3cret-value", "another")), around)
        assert lines(planned) == ["~ connector Agent (headers)"]

    def test_what_pretends_to_be_sealed_is_refused(self, around: DefinitionContext) -> None:
        with pytest.raises(InvalidInput, match=r"headers.X-Api-Key: begins like a sealed value"):
            changes_for(EMPTY, documents(PROJECT.replace("s3cret-value", "sealed:v1:abc")), around)
