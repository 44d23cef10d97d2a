"""``evalstudio scenario``: what is tested."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from .definitions import FieldOption, definition_app, joined, settings_of
from .options import JsonOption
from .output import escaped_json, fail, print_result, say
from .project import LocalProject, Project, on_local_project, on_project

if TYPE_CHECKING:
    from ..project.documents import Document


def _row(body: Mapping[str, Any]) -> tuple[str, ...]:
    judges = ["criteria"] if body.get("successCriteria") or body.get("failureCriteria") else []
    judges += [entry.get("name") or entry["type"] for entry in body.get("evaluators", [])]
    if not judges and body.get("criteria"):
        judges = ["criteria-judge"]
    return body["name"], joined(body.get("tags")), joined(body.get("personas")), joined(judges)


def _evaluator(text: str) -> dict[str, Any]:
    """``regex={pattern: x}`` as an entry of a scenario's evaluators."""
    if "=" not in text:
        return {"type": text}
    (name, config), *_ = settings_of([text], "--evaluator").items()
    return {"type": name, "config": config}


app = definition_app(
    "scenario",
    "a scenario",
    help="Scenarios: what is tested.",
    deleting="Delete a scenario that no eval uses.",
    columns=("Scenario", "Tags", "Personas", "Judged by"),
    row=_row,
    options=[
        FieldOption("--instructions", "instructions", "What the simulated user is doing here."),
        FieldOption("--say", "script", "A user message of the script; may be repeated.", list[str]),
        FieldOption("--success", "successCriteria", "When it has succeeded, for the judge."),
        FieldOption("--failure", "failureCriteria", "When it has failed, for the judge."),
        FieldOption(
            "--evaluator",
            "evaluators",
            "With its config as YAML; may be repeated.",
            list[str],
            "TYPE[={...}]",
            lambda texts: [_evaluator(text) for text in texts],
        ),
        FieldOption("--persona", "personas", "May be repeated.", list[str]),
        FieldOption("--tag", "tags", "May be repeated.", list[str]),
        FieldOption("--max-messages", "maxMessages", "The longest it may be.", int),
        FieldOption("--cases", "cases", "A CSV or JSONL file in the project."),
    ],
)


@app.command("import")
@on_local_project
async def import_scenarios(
    project: LocalProject,
    file: Annotated[Path, typer.Argument(help="A JSONL file, one scenario per line.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Add the scenarios of a file, and change those that are there already."""
    from .files import print_outcome, print_plan

    changes = await project.definitions.apply(_read_lines(file), dry_run=dry_run)
    if not as_json:
        print_plan(changes)
    print_outcome(changes, applied=not dry_run, as_json=as_json)


def _read_lines(file: Path) -> list[Document]:
    from dataclasses import replace

    from ..base.files import read_text
    from ..base.located import parse_json
    from ..base.problems import InvalidInput, Problem, ProblemList
    from ..project.documents import read_documents

    problems = ProblemList()
    documents: list[Document] = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        with problems.collect():
            located = parse_json(line, str(file), first_line=number)
            data: Any = located.data
            if isinstance(data, dict):
                data = {"kind": "scenario", **cast(dict[str, Any], data)}
            documents += read_documents(replace(located, data=data), problems)
    problems += [one.placed(Problem("is not a scenario")) for one in documents if one.kind != "scenario"]
    problems.check()
    if not documents:
        raise InvalidInput.at(file, "has no scenarios")
    return documents


@app.command("export")
@on_project
async def export_scenarios(
    project: Project,
    file: Annotated[Path, typer.Argument(help="The JSONL file to write; - writes to stdout.")],
    tag: Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Write all scenarios, one JSON object per line, to be imported elsewhere."""
    import orjson

    from ..execution.definitions import load_project_state
    from ..project.changes import export_documents

    documents = export_documents(await load_project_state(project.records))
    bodies = [document.body for document in documents if document.kind == "scenario"]
    scenarios = [body for body in bodies if set(tag or ()) <= set(body.get("tags", ()))]
    text = b"".join(orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE) for body in scenarios)
    if str(file) == "-":
        say(escaped_json(text), end="")
        return
    try:
        file.write_bytes(text)
    except OSError as error:
        raise fail(f"{file}: cannot be written ({error.strerror})") from None
    counts = {"file": str(file), "scenarios": len(scenarios)}
    print_result(as_json, counts, f"{len(scenarios)} scenarios in {file}")


@app.command("from")
@on_local_project
async def draft_from_run(
    project: LocalProject,
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or: last, last-failed.")],
    name: Annotated[str | None, typer.Option(help="The name of the new scenario.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The YAML or JSON file to write; else stdout.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Draft a scenario from what was said in a run, to be looked through and applied."""
    from ..execution.drafting import draft_scenario
    from ..project.documents import document_of, in_one, to_text
    from .output import print_json, write_files
    from .runs import run_id

    records = project.records
    source = await records.run(await run_id(records, run))
    draft = await draft_scenario(project.workspace, source, name=name)
    definitions = in_one([document_of("scenario", draft, {})])
    if output is not None:
        write_files({output: to_text(definitions, "json" if output.suffix == ".json" else "yaml")})
        print_result(as_json, {"file": str(output), "name": draft.name}, f'"{draft.name}" in {output}')
    elif as_json:
        print_json(definitions)
    else:
        say(to_text(definitions, "yaml"), end="")
