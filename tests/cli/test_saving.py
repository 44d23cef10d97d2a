"""A definition saved through the API, by command or from a file: the same rules, the same outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Typed
from tests.support.api_server import serving
from tests.support.projects import make_project

from evalstudio.execution import definitions
from evalstudio.execution.workspace import open_workspace
from evalstudio.project.changes import ProjectState
from evalstudio.project.documents import REFERENCES
from evalstudio.project.secrets import MASK
from evalstudio.storage.contract import Records

SECRET = "Bearer sk-very-secret-value-1234"
AGENT = {"kind": "connector", "name": "Web", "type": "http", "baseUrl": "http://127.0.0.1:9/a"}
JUDGED = {"kind": "scenario", "name": "S", "script": ["hi"], "successCriteria": "It is polite"}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """What the message says, whichever way it comes."""

    message: str


@dataclass(frozen=True, slots=True)
class Saving:
    """A definition to be saved, what is stored before, and what is stored then, its secrets readable."""

    definition: Json
    outcome: Json | Refused
    before: list[Json] = field(default_factory=list[Json])


def agent(**more: Any) -> Json:
    return {**AGENT, "headers": {"Authorization": SECRET}, **more}


def persona(**headers: str) -> Json:
    return {"kind": "persona", "name": "Ana", "headers": headers}


CASES = {
    "a literal secret is sealed": Saving(agent(), agent()),
    "a reference stays as it is": Saving(
        persona(Cookie="${EVALSTUDIO_PUBLIC_C}"), persona(Cookie="${EVALSTUDIO_PUBLIC_C}")
    ),
    "a mask keeps the secret": Saving(
        agent(headers={"Authorization": MASK}, baseUrl="http://127.0.0.1:9/b"),
        agent(baseUrl="http://127.0.0.1:9/b"),
        [agent()],
    ),
    "a mask is dropped with the address": Saving(
        agent(headers={"Authorization": MASK, "X-Trace": "on"}, baseUrl="http://127.0.0.1:10"),
        agent(headers={"X-Trace": "on"}, baseUrl="http://127.0.0.1:10"),
        [agent()],
    ),
    "a mask is dropped with the type": Saving(
        agent(headers={"Authorization": MASK}, type="openai", config={"model": "m"}),
        {**AGENT, "type": "openai", "config": {"model": "m"}},
        [agent()],
    ),
    "a mask where nothing is stored": Saving(
        persona(Authorization=MASK), Refused("headers.Authorization: ******** stands for a secret")
    ),
    "a mask where another secret is stored": Saving(
        persona(Authorization=MASK), Refused("headers.Authorization"), [persona(Cookie="c")]
    ),
    "text that looks sealed": Saving(
        agent(headers={"X-Trace": "sealed:v1:gAAAA"}), Refused("begins like a sealed value")
    ),
    "text that looks sealed, in the config": Saving(
        agent(config={"requestTemplate": {"x": "sealed:v1:gAAAA"}}), Refused("begins like a sealed value")
    ),
    "a secret in the address": Saving(
        agent(baseUrl="http://u:pw@127.0.0.1:9"), Refused("baseUrl: holds a literal secret")
    ),
    "an own variable in a connector": Saving(
        agent(headers={"X-A": "${EVALSTUDIO_TOKEN}"}), Refused("X-A: refers to a variable of the server")
    ),
    "an own variable in a persona": Saving(
        persona(**{"X-A": "x ${ evalstudio_secret_key}"}), Refused("X-A: refers to a variable of the server")
    ),
    "a judge without a model": Saving(JUDGED, JUDGED),
    "a simulated user without a model": Saving(
        {**JUDGED, "script": [], "personas": ["Ana"]},
        {"kind": "scenario", "name": "S", "successCriteria": "It is polite", "personas": ["Ana"]},
        [persona()],
    ),
    "an unknown persona": Saving({**JUDGED, "personas": ["Nobody"]}, Refused("there is no persona")),
    "an unknown evaluator": Saving(
        {**JUDGED, "evaluators": [{"type": "regexx"}]}, Refused("evaluators[0].type: no evaluator is called")
    ),
    "a placeholder without a value": Saving(
        {**JUDGED, "script": ["{{x}}"], "cases": [{"name": "c", "vars": {"y": 1}}]},
        Refused('case "c": script[0]: {{x}} has no value'),
    ),
    "cases outside of the project": Saving(
        {**JUDGED, "cases": "../../secret.csv"}, Refused("leads out of the project folder")
    ),
    "another spelling of the name": Saving(
        {**persona(), "name": "ANA", "wants": "x"},
        {"kind": "persona", "name": "ANA", "wants": "x"},
        [persona()],
    ),
}


def by_api(config: Path, definition: Json, typed: Typed) -> str | None:
    return asyncio.run(_sent(config, definition))


async def _sent(config: Path, definition: Json) -> str | None:
    async with serving(config) as api:

        async def ids(kind: str) -> dict[str, str]:
            items = (await api.found(f"/api/{kind}s"))["items"]
            return {item["name"].casefold(): item["id"] for item in items}

        body = dict(definition)
        kind = body.pop("kind")
        for name, (field_name, target) in REFERENCES[kind].items():
            if name in body:
                known = await ids(target)
                body[field_name] = [known.get(one.casefold(), one) for one in body.pop(name)]
        existing = (await ids(kind)).get(body["name"].casefold())
        if existing is None:
            answer = await api("POST", f"/api/{kind}s", body)
        else:
            answer = await api("PUT", f"/api/{kind}s/{existing}", body)
        assert answer.status in (200, 201, 422), answer.text
        return answer.error["message"] if answer.status == 422 else None


def by_command(config: Path, definition: Json, typed: Typed) -> str | None:
    kind, name = definition["kind"], definition["name"]
    shown = typed(kind, "show", name, "-c", str(config), code=None)
    verb = ("create",) if shown.code else ("update", name)
    done = typed(kind, *verb, "--file", "-", "-c", str(config), stdin=json.dumps(definition), code=None)
    return done.err if done.code else None


def by_file(config: Path, definition: Json, typed: Typed) -> str | None:
    file = config.parent / "one.json"
    file.write_text(json.dumps(definition))
    done = typed("apply", str(file), "-c", str(config), code=None)
    return done.err if done.code else None


Way = Callable[[Path, Json, Typed], str | None]


async def _stored(config: Path, definition: Json) -> Json | None:
    """The definition as a file has it, its secrets readable; on the disk they are not."""
    async with open_workspace(config) as workspace:
        state = await definitions.load_project_state(workspace.store)
        try:
            document = definitions.find(state, definition["kind"], definition["name"])
        except ValueError:
            return None
        assert "sk-very-secret" not in str(document.body)
        return {"kind": document.kind, **workspace.box.open(document.body)}


def _without_defaults(definition: Json) -> Json:
    return {key: item for key, item in definition.items() if item not in ({}, [])}


@pytest.mark.parametrize("way", [by_api, by_command, by_file])
@pytest.mark.parametrize("saving", CASES.values(), ids=CASES)
def test_the_outcome_is_the_same_whichever_way_it_comes(
    tmp_path: Path, typed: Typed, way: Way, saving: Saving
) -> None:
    config = make_project(tmp_path / "project", [])
    for number, definition in enumerate(saving.before):
        file = tmp_path / f"before-{number}.json"
        file.write_text(json.dumps(definition))
        typed("apply", str(file), "-c", str(config))
    before = asyncio.run(_stored(config, saving.definition))

    error = way(config, saving.definition, typed)

    after = asyncio.run(_stored(config, saving.definition))
    if isinstance(saving.outcome, Refused):
        assert error is not None
        assert saving.outcome.message in error
        assert "sk-very-secret" not in error
        assert after == before
    else:
        assert error is None
        assert after == _without_defaults(saving.outcome)


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Personas that somebody else changes right after a command has read the project."""
    names: list[str] = []
    load = definitions.load_project_state

    async def load_and_be_overtaken(records: Records) -> ProjectState:
        state = await load(records)
        while names:
            known = state.entity(("persona", names.pop().casefold()))
            await records.update(known.model_copy(update={"knows": "news"}))  # type: ignore[attr-defined]
        return state

    monkeypatch.setattr(definitions, "load_project_state", load_and_be_overtaken)
    return names


@pytest.mark.parametrize(
    "arguments",
    [
        ("persona", "update", "Ana", "--wants", "x"),
        ("persona", "delete", "Ana", "--yes"),
        ("apply", "ana.json"),
        ("apply", "bob.json", "--prune", "--yes"),
    ],
)
def test_what_somebody_else_changed_meanwhile_is_not_overwritten(
    tmp_path: Path,
    typed: Typed,
    monkeypatch: pytest.MonkeyPatch,
    overtaken: list[str],
    arguments: tuple[str, ...],
) -> None:
    make_project(tmp_path, [])
    monkeypatch.chdir(tmp_path)
    for name in ("Ana", "Bob"):
        (tmp_path / f"{name.lower()}.json").write_text(
            json.dumps({"kind": "persona", "name": name, "wants": "x"})
        )
    typed("persona", "create", "--name", "Ana")
    overtaken.append("Ana")
    error = typed(*arguments, code=2).err
    assert error == (
        'Error: The persona "Ana" was changed in the meantime (version 2, not 1). '
        "Read it again and repeat the change.\n"
    )
    ana = typed("persona", "show", "Ana", "--json").data
    assert (ana["knows"], ana["wants"]) == ("news", None)
    typed(*arguments)


def test_a_command_tells_of_the_secrets_it_dropped(
    tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path, [])
    monkeypatch.chdir(tmp_path)
    typed("connector", "create", "--file", "-", stdin=json.dumps(agent()))
    assert typed("connector", "update", "Web", "--base-url", "http://127.0.0.1:9/b").err == ""
    moved = typed("connector", "update", "Web", "--base-url", "http://127.0.0.1:10")
    assert moved.out == 'Changed the connector "Web".\n'
    assert moved.err == "Secrets of the old address were dropped; give them again: headers.Authorization\n"
