"""``evalstudio scenario``: what is tested."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from . import definitions as shared
from .output import fail, print_json
from .project import ConfigOption, JsonOption, YesOption, project_at, run_async, with_server, workspace_at

if TYPE_CHECKING:
    from ..project.documents import Document

app = typer.Typer(no_args_is_help=True, help="Scenarios: what is tested.")

InstructionsOption = Annotated[str | None, typer.Option(help="What the simulated user is doing here.")]
SayOption = Annotated[
    list[str] | None, typer.Option("--say", help="A user message of the script; may be repeated.")
]
SuccessOption = Annotated[str | None, typer.Option("--success", help="When it has succeeded, for the judge.")]
FailureOption = Annotated[str | None, typer.Option("--failure", help="When it has failed, for the judge.")]
EvaluatorOption = Annotated[
    list[str] | None,
    typer.Option("--evaluator", metavar="TYPE[={...}]", help="With its config as YAML; may be repeated."),
]
PersonaOption = Annotated[list[str] | None, typer.Option("--persona", help="May be repeated.")]
TagOption = Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.")]
MostOption = Annotated[int | None, typer.Option("--max-messages", help="The longest it may be.")]
CasesOption = Annotated[str | None, typer.Option("--cases", help="A CSV or JSONL file in the project.")]


@app.command("list")
@with_server
def list_scenarios(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the scenarios."""
    shared.print_list("scenario", config, as_json, ("Scenario", "Tags", "Personas", "Judged by"), _row)


def _row(body: Any) -> tuple[str, ...]:
    judges = ["criteria"] if body.get("successCriteria") or body.get("failureCriteria") else []
    judges += [entry.get("name") or entry["type"] for entry in body.get("evaluators", [])]
    if not judges and body.get("criteria"):
        judges = ["criteria-judge"]
    return (
        body["name"],
        shared.joined(body.get("tags")),
        shared.joined(body.get("personas")),
        shared.joined(judges),
    )


@app.command("show")
@with_server
def show_scenario(
    name: shared.NameArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show a scenario as YAML."""
    shared.print_one("scenario", name, config, as_json)


@app.command("create")
@with_server
def create_scenario(
    name: shared.NewNameOption = None,
    instructions: InstructionsOption = None,
    say: SayOption = None,
    success: SuccessOption = None,
    failure: FailureOption = None,
    evaluator: EvaluatorOption = None,
    persona: PersonaOption = None,
    tag: TagOption = None,
    max_messages: MostOption = None,
    cases: CasesOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a scenario, from options or a file."""
    fields = _fields(instructions, say, success, failure, evaluator, persona, tag, max_messages, cases)
    given = shared.given_fields("scenario", file, {"name": name, **fields})
    shared.keep_new("scenario", given, config, as_json)


@app.command("update")
@with_server
def update_scenario(
    scenario: shared.NameArgument,
    name: shared.NewNameOption = None,
    instructions: InstructionsOption = None,
    say: SayOption = None,
    success: SuccessOption = None,
    failure: FailureOption = None,
    evaluator: EvaluatorOption = None,
    persona: PersonaOption = None,
    tag: TagOption = None,
    max_messages: MostOption = None,
    cases: CasesOption = None,
    file: shared.FileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the given fields of a scenario; the others stay."""
    fields = _fields(instructions, say, success, failure, evaluator, persona, tag, max_messages, cases)
    given = shared.given_fields("scenario", file, {"name": name, **fields})
    shared.keep_changed("scenario", scenario, given, config, as_json)


@app.command("delete")
@with_server
def delete_scenario(
    name: shared.NameArgument,
    yes: YesOption = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a scenario that no eval uses."""
    shared.remove("scenario", name, config, as_json, yes)


@app.command("import")
def import_scenarios(
    file: Annotated[Path, typer.Argument(help="A JSONL file, one scenario per line.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the scenarios of a file, and change those that are there already."""

    async def work() -> None:
        from ..execution.definitions import apply_documents
        from .files import print_changes

        documents = _read_lines(file)
        async with workspace_at(config) as workspace:
            changes = await apply_documents(workspace, documents, dry_run=dry_run)
        print_changes(changes, applied=not dry_run, as_json=as_json)

    run_async(work())


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
@with_server
def export_scenarios(
    file: Annotated[Path, typer.Argument(help="The JSONL file to write; - writes to stdout.")],
    tag: TagOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all scenarios, one JSON object per line, to be imported elsewhere."""

    async def work() -> None:
        import orjson

        from ..execution.definitions import load_project_state
        from ..project.changes import export_documents

        async with project_at(config) as project:
            documents = export_documents(await load_project_state(project.records))
        wanted = [
            d.body
            for d in documents
            if d.kind == "scenario" and set(tag or ()) <= set(d.body.get("tags", ()))
        ]
        text = b"".join(orjson.dumps(body, option=orjson.OPT_APPEND_NEWLINE) for body in wanted)
        if str(file) == "-":
            typer.echo(text, nl=False)
            return
        try:
            file.write_bytes(text)
        except OSError as error:
            raise fail(f"{file}: cannot be written ({error.strerror})") from None
        if as_json:
            print_json({"file": str(file), "scenarios": len(wanted)})
        else:
            typer.echo(f"{len(wanted)} scenarios in {file}")

    run_async(work())


def _fields(
    instructions: str | None,
    say: list[str] | None,
    success: str | None,
    failure: str | None,
    evaluator: list[str] | None,
    persona: list[str] | None,
    tag: list[str] | None,
    max_messages: int | None,
    cases: str | None,
) -> dict[str, Any]:
    return {
        "instructions": instructions,
        "script": say,
        "successCriteria": success,
        "failureCriteria": failure,
        "evaluators": [_entry(text) for text in evaluator or ()],
        "personas": persona,
        "tags": tag,
        "maxMessages": max_messages,
        "cases": cases,
    }


def _entry(text: str) -> dict[str, Any]:
    """``regex={pattern: x}`` as an entry of a scenario's evaluators."""
    if "=" not in text:
        return {"type": text}
    (name, config), *_ = shared.settings_of([text], "--evaluator").items()
    return {"type": name, "config": config}
