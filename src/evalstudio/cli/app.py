"""The commands, one module per noun. Heavy imports wait inside the commands: --help must be instant."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

# Name, module and what in it, in the order of --help. A Typer is a group of commands, a function one.
_COMMANDS = (
    ("init", "new_project", "init"),
    ("demo", "new_project", "demo"),
    ("status", "status", "status"),
    ("apply", "files", "apply"),
    ("export", "files", "export"),
    ("eval", "evals", "app"),
    ("run", "runs", "app"),
    ("execution", "executions", "app"),
    ("compare", "compare", "compare"),
    ("baseline", "baselines", "app"),
    ("scenario", "scenarios", "app"),
    ("persona", "personas", "app"),
    ("connector", "connectors", "app"),
    ("monitor", "monitors", "app"),
    ("evaluators", "evaluators", "app"),
    ("plugins", "evaluators", "plugins_app"),
    ("score", "score", "score"),
    ("review", "review", "review"),
    ("rescore", "rescore", "rescore"),
    ("report", "report", "report"),
    ("serve", "serve", "serve"),
    ("worker", "serve", "worker"),
    ("trust", "trust", "trust"),
    ("db", "db", "app"),
    ("schema", "files", "schema"),
)


def app_for(word: str | None) -> typer.Typer:
    """The command line with the one command that the first word names; with all where it names none.

    Reading the options of all commands takes longer than most commands do.
    """
    return _app(word if any(word == name for name, _, _ in _COMMANDS) else None)


@cache
def _app(only: str | None) -> typer.Typer:
    app = typer.Typer(
        name="evalstudio",
        help="Is the agent good enough, and did the last change make it better or worse?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    for name, module, attribute in _COMMANDS:
        if only in (None, name):
            command: Any = getattr(import_module(f".{module}", __package__), attribute)
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=name)
            else:
                app.command(name)(command)
    return app


def _print_version(requested: bool) -> None:
    if requested:
        from ..version import __version__

        typer.echo(f"evalstudio {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
