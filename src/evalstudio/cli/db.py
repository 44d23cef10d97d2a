"""``evalstudio db``: the database under a project."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import ConfigOption, JsonOption, YesOption
from .output import fail, print_json, print_result, say
from .project import LocalProject, config_path, confirm, on_local_project, run_async

if TYPE_CHECKING:
    from ..project.config import StorageSettings

app = typer.Typer(no_args_is_help=True, help="The database under a project.")


@app.command("status")
def show_status(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Say where the database is and which schema it has. Nothing is changed."""
    from ..storage.opening import status

    settings, folder = _storage(config)
    schema = run_async(status(settings, folder))
    place = place_of(settings, folder)
    words = {
        "empty": "it is empty; the schema is made when it is first used",
        "older": 'it has an older schema; bring it up to date with "evalstudio db migrate"',
        "current": "it is up to date",
        "newer": "it was made by a newer version of evalstudio; update evalstudio",
    }
    text = f"{settings.type} at {place}: {words[schema.state]} (schema {schema.found or 'none'})"
    print_result(as_json, {"type": settings.type, "place": place, **_schema(schema)}, text)


@app.command("migrate")
def migrate_database(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Bring the database up to date. A SQLite file is copied first."""
    from ..storage.opening import migrate

    settings, folder = _storage(config)
    done = run_async(migrate(settings, folder))
    backup = None if done.backup is None else str(done.backup)
    if as_json:
        print_json({"before": _schema(done.before), "backup": backup})
    elif done.before.state == "current":
        say(f"Nothing to do: the schema is {done.before.wanted} already.")
    else:
        say(f"Brought from {done.before.found or 'nothing'} to schema {done.before.wanted}.")
        if backup:
            say(f"A copy of what it was: {backup}")


@app.command("backup")
def back_up_database(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist yet.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the whole project into one file, while others go on working. The file fits either database."""
    from ..storage.backup import back_up

    settings, folder = _storage(config)
    size = run_async(back_up(settings, folder, file))
    text = (
        f"Wrote {file} ({size:,} bytes). Secrets in it are sealed: keep the key file of the project with it."
    )
    print_result(as_json, {"file": str(file), "bytes": size}, text)


@app.command("restore")
def restore_database(
    file: Annotated[Path, typer.Argument(help='A file that "evalstudio db backup" wrote.')],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a copy into this project's database, which must be empty: SQLite or PostgreSQL."""
    from ..storage.backup import restore

    settings, folder = _storage(config)
    counts = run_async(restore(settings, folder, file))
    shown = ("personas", "scenarios", "connectors", "evals", "monitors", "executions", "runs", "evaluations")
    text = f"Restored {', '.join(f'{counts[name]:,} {name}' for name in shown)}."
    print_result(as_json, counts, text)


@app.command("prune")
@on_local_project
async def prune_database(
    project: LocalProject,
    keep: Annotated[
        str | None,
        typer.Option(help="Keep what is younger: 90d, 12h, 8w. Without it, the config's retention holds."),
    ] = None,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete executions and recorded evaluations that ended longer ago. Definitions and baselines stay."""
    store, rules = project.workspace.store, project.workspace.config.retention
    if keep is not None:
        period = period_of(keep)
        confirm(f"Delete everything that ended more than {keep} ago?", yes=yes)
        pruned = await store.prune(period)
    elif rules.enabled:
        confirm("Delete everything that the config's retention does not keep?", yes=yes)
        pruned = await store.retain(rules.age, rules.max_executions, rules.keep_labels)
    else:
        raise fail("nothing says what to keep: give --keep 90d, or set retention in the config file")
    counts = {name: getattr(pruned, name) for name in ("executions", "runs", "evaluations", "events")}
    text = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    print_result(as_json, counts, f"Deleted {text}.")


def period_of(text: str) -> timedelta:
    from ..base.times import read_period

    try:
        return read_period(text)
    except ValueError as error:
        raise fail(f"--keep {error}") from None


def _storage(config: Path | None) -> tuple[StorageSettings, Path]:
    from ..project.config import read_config

    path = config_path(config)
    return read_config(path).storage, path.resolve().parent


def place_of(settings: StorageSettings, folder: Path) -> str:
    """Where the database is, without what opens it."""
    from ..base.addresses import shown_address
    from ..storage.opening import sqlite_path

    if settings.type == "sqlite":
        return str(sqlite_path(settings, folder))
    return shown_address(settings.connection_string or "")


def _schema(schema: object) -> dict[str, object]:
    return {name: getattr(schema, name) for name in ("state", "found", "wanted")}
