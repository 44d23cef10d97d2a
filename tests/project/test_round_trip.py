"""What is exported and applied again changes nothing, whatever a project holds."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evalstudio import create_registry
from evalstudio.base.concurrency import run_sync
from evalstudio.base.files import parse_text
from evalstudio.base.problems import ProblemList
from evalstudio.execution.definitions import DefinitionService, load_project_state, writes_of
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.changes import (
    DefinitionContext,
    changes_for,
    export_documents,
    project_state_of,
    read_files,
)
from evalstudio.project.documents import (
    KINDS,
    Document,
    Format,
    document_of,
    in_files,
    in_one,
    read_documents,
    to_text,
)
from evalstudio.project.entities import (
    StoredConnector,
    StoredEval,
    StoredMonitor,
    StoredPersona,
    StoredScenario,
    name_key,
)

AROUND = DefinitionContext(create_registry(), Path("/nowhere"))
EMPTY = project_state_of({kind: [] for kind in KINDS})

AWKWARD = (
    *(
        "no",
        "12:30",
        "1e5",
        "007",
        "null",
        "~",
        "0x1F",
        "<<",
        "=",
        "2024-01-01",
        "********",
        "'",
        '"',
        "|",
        "#",
    ),
    *("- a", "a: b", " x ", "a\nb\n", "\n a", "a \nb", "x\n\n", "é\r\nü", "\t", "🙂\n🙂", "\x85", "\u2028x"),
    *("\ufeff", "\x00"),
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(AWKWARD)
names = texts.filter(lambda text: bool(text.strip()))
some_names = st.lists(names, min_size=1, max_size=4, unique_by=name_key)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, plain, max_size=3)
# Secrets are masked on the way out, so a project that holds some is not the same elsewhere.
headers = st.dictionaries(
    st.sampled_from(["X-Team", "Accept", "Authorization"]), st.just("Bearer ${AGENT_TOKEN}"), max_size=3
)
said = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": texts})


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


@st.composite
def projects(draw: st.DrawFn) -> dict[Any, list[Any]]:
    """A valid project of any content."""
    personas = [
        StoredPersona(name=name, **draw(optional(description=texts, system_prompt=texts, headers=headers)))
        for name in draw(some_names)
    ]
    connectors = [
        StoredConnector(name=name, type="http", base_url="http://127.0.0.1:1", headers=draw(headers))
        for name in draw(some_names)
    ]
    scenarios = [draw(_scenarios(name, [p.id for p in personas])) for name in draw(some_names)]
    evals = [
        StoredEval(
            name=name,
            scenario_ids=draw(st.lists(st.sampled_from([s.id for s in scenarios]), min_size=1, unique=True)),
            connector_ids=draw(
                st.lists(st.sampled_from([c.id for c in connectors]), min_size=1, unique=True)
            ),
            repetitions=draw(st.integers(1, 5)),
        )
        for name in draw(some_names)
    ]
    monitors = [
        StoredMonitor(
            name=name,
            scenario_ids=[draw(st.sampled_from([s.id for s in scenarios]))],
            **draw(
                optional(description=texts, sampling_rate=st.floats(0, 1, exclude_min=True), filter=_filters)
            ),
        )
        for name in draw(some_names)
    ]
    kinds = {"persona": personas, "connector": connectors, "scenario": scenarios, "eval": evals}
    return {**kinds, "monitor": monitors}


_attributes = st.sampled_from(["gen_ai.agent.name", 'attributes["a b"][0]', "service.name"])
_filters = st.lists(
    st.fixed_dictionaries({"attribute": _attributes, "in": st.lists(texts, min_size=1, max_size=2)})
    | st.fixed_dictionaries({"attribute": _attributes, "exists": st.booleans()}),
    max_size=2,
)


@st.composite
def _scenarios(draw: st.DrawFn, name: str, people: list[str]) -> StoredScenario:
    fields = draw(
        optional(
            instructions=texts,
            messages=st.lists(said, max_size=2),
            # A script of three and two seeds need eight.
            max_messages=st.integers(8, 50),
            success_criteria=texts.filter(str.strip),
            persona_ids=st.lists(st.sampled_from(people), unique=True),
            ground_truth=plain,
            context=objects,
            stop_on_failure=st.booleans(),
            tags=st.lists(texts.filter(bool), max_size=3),
        )
    )
    pattern = {"type": "regex", "config": {"pattern": "x"}, "name": f"check {name}"}
    script = draw(st.lists(names.filter(lambda text: "{{" not in text), min_size=1, max_size=3))
    return StoredScenario.model_validate({"name": name, "script": script, "evaluators": [pattern], **fields})


def through_text(documents: list[Document], form: Format) -> list[Document]:
    """The documents as they come back from one file."""
    problems = ProblemList()
    located = parse_text(to_text(in_one(documents), form), "x", is_json=form == "json")
    read = [document for one in located for document in read_documents(one, problems)]
    assert not problems
    return read


@settings(max_examples=50)
@given(projects(), st.sampled_from(["yaml", "json"]))
def test_applying_what_was_exported_changes_nothing(project: dict[Any, list[Any]], form: Format) -> None:
    project_state = project_state_of(project)
    read = through_text(export_documents(project_state), form)
    assert changes_for(project_state, read, AROUND, prune=True) == []


@settings(max_examples=40)
@given(projects(), st.sampled_from(["yaml", "json"]))
def test_an_empty_project_becomes_the_same(project: dict[Any, list[Any]], form: Format) -> None:
    project_state = project_state_of(project)
    exported = export_documents(project_state)
    writes = writes_of(EMPTY, changes_for(EMPTY, through_text(exported, form), AROUND))
    again = project_state_of({kind: [w.put for w in writes if w.kind == kind] for kind in KINDS})
    assert export_documents(again) == exported


@settings(max_examples=20)
@given(projects(), st.sampled_from(["yaml", "json"]))
def test_one_file_each_holds_the_same(project: dict[Any, list[Any]], form: Format) -> None:
    exported = export_documents(project_state_of(project))
    with TemporaryDirectory() as folder:
        for path, text in in_files(exported, form).items():
            place = Path(folder, path)
            assert not place.exists()
            place.parent.mkdir(exist_ok=True)
            place.write_text(text, encoding="utf-8", newline="")
        read = {document.key: document for document in read_files([Path(folder)])}
    assert read == {document.key: document for document in exported}


@settings(max_examples=100)
@given(plain, st.sampled_from(["yaml", "json"]))
def test_any_plain_value_is_read_as_it_was_written(value: Any, form: Format) -> None:
    read = parse_text(to_text({"value": value}, form), "x", is_json=form == "json")[0].data["value"]
    assert repr(read) == repr(value)


def test_a_document_does_not_say_what_is_only_a_default() -> None:
    persona = StoredPersona(name="Ana")
    assert document_of("persona", persona, {}).body == {"name": "Ana"}


@settings(max_examples=10)
@given(projects(), st.sampled_from(["yaml", "json"]))
def test_the_same_holds_for_a_project_on_disk(project: dict[Any, list[Any]], form: Format) -> None:
    exported = export_documents(project_state_of(project))
    with TemporaryDirectory() as folder:
        config = Path(folder, "evalstudio.config.json")
        config.write_text(
            '{"llmSettings": {"provider": "openai", "models": {"evaluation": "x", "persona": "x"}}}'
        )
        assert run_sync(lambda: _applied_twice(config, through_text(exported, form))) == (exported, [])


async def _applied_twice(config: Path, documents: list[Document]) -> tuple[list[Document], list[Any]]:
    """What a project on disk exports after the documents were applied, and what applying that changes."""
    async with open_workspace(config) as workspace:
        await DefinitionService(workspace).apply(documents)
        exported = export_documents(await load_project_state(workspace.store))
        return exported, await DefinitionService(workspace).apply(through_text(exported, "yaml"), prune=True)
