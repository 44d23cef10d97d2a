"""``evalstudio evaluators`` and ``plugins``: which evaluators there are and how each is configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast

import typer

from ..base.text import cut
from .options import ConfigOption, JsonOption
from .output import fail, near, open_console, print_json, print_table, say
from .project import open_registry

if TYPE_CHECKING:
    from ..evaluators.definition import EvaluatorDefinition

app = typer.Typer(no_args_is_help=True, help="The evaluators a scenario can use.")

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="The evaluator's type, such as regex.")]

_KINDS = {"assertion": "Assertions", "metric": "Metrics"}


@app.command("list")
def list_evaluators(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the evaluators, built in and from plugins."""
    types = open_registry(config).list_evaluator_types()
    if as_json:
        print_json(types)
        return
    columns = ("Type", "Label", "Gate", "Source", "Description")
    for kind, title in _KINDS.items():
        rows = [[item[column.lower()] for column in columns] for item in types if item["kind"] == kind]
        if rows:
            print_table(title, columns, rows)


@app.command("show")
def show_evaluator(type_name: TypeArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show one evaluator: what it checks, its settings, and an entry to copy."""
    from ..base.problems import suggestion

    registry = open_registry(config)
    definition = registry.get_evaluator(type_name)
    if definition is None:
        known = [item["type"] for item in registry.list_evaluator_types()]
        hint = suggestion(type_name.lower().replace("_", "-"), known) or 'See "evalstudio evaluators list".'
        raise fail(f'There is no evaluator of type "{type_name}". {hint[0].upper()}{hint[1:]}')
    example = example_entry(definition)
    described = next(item for item in registry.list_evaluator_types() if item["type"] == type_name)
    if as_json:
        print_json({**described, "example": example})
    else:
        _print_description(described, example)


def _print_description(described: dict[str, Any], example: dict[str, Any] | None) -> None:
    from rich.text import Text

    console = open_console(highlight=False)
    console.print(Text.assemble((described["type"], "bold"), f"  {described['label']}"))
    gate = (
        f"{described['gate']} unless its config says otherwise"
        if described["gateByConfig"]
        else described["gate"]
    )
    console.print(Text(f"{described['kind']}, gate {gate}, {described['source']}", "dim"))
    if described["description"]:
        console.print(Text(f"\n{described['description']}"))
    console.print()
    schema = described["configSchema"]
    if rows := fields_of(schema):
        print_table("Config", ("Field", "Type", "Default", "Description"), rows)
    else:
        closed = schema.get("additionalProperties") is False
        console.print("It takes no config.\n" if closed else "It has no described config.\n")
    if example is not None:
        say("An entry of a scenario's evaluators:\n")
        print_json(example)


_DEEPEST = 6


def example_entry(definition: EvaluatorDefinition) -> dict[str, Any] | None:
    """The smallest entry that the evaluator accepts, or nothing where none could be made."""
    for config in _candidates(definition.config.schema):
        try:
            definition.use(config)
        except Exception:
            # A plugin's validator may raise anything; an example it refuses is simply not shown.
            continue
        return {"type": definition.type, **({"config": config} if config else {})}
    return None


def _candidates(schema: Schema) -> Iterator[dict[str, Any]]:
    """The schema's own examples, the required fields alone, with one more, then all."""
    examples: list[Any] = schema.get("examples", [])
    yield from (dict(cast(Schema, example)) for example in examples if isinstance(example, Mapping))
    smallest = _object(schema, schema, _DEEPEST)
    parts = {name: resolved(schema, part) for name, part in schema.get("properties", {}).items()}
    every = {name: _value(schema, part, _DEEPEST) for name, part in parts.items()}
    yield smallest
    for name, value in every.items():
        yield {**smallest, name: value}
    yield {**smallest, **every}


def _value(root: Schema, part: Schema, depth: int) -> Any:
    if part.get("examples"):
        return part["examples"][0]
    if part.get("default") is not None:
        return part["default"]
    shape = next(iter(alternatives(root, part)), part)
    if "const" in shape:
        return shape["const"]
    if shape.get("enum"):
        return shape["enum"][0]
    return _of_type(root, shape, depth)


def _of_type(root: Schema, shape: Schema, depth: int) -> Any:
    match shape.get("type"):
        case "string":
            return "text".ljust(shape.get("minLength", 0), "x")[: shape.get("maxLength")]
        case "integer" | "number":
            return _number(shape)
        case "boolean":
            return True
        case "array":
            items = resolved(root, shape.get("items"))
            return [_value(root, items, depth - 1)] if depth > 0 and items else []
        case "object" | None:
            return _object(root, shape, depth)
        case _:
            return None


def _number(shape: Schema) -> float:
    """A round number inside the bounds."""
    low = shape.get("minimum", shape.get("exclusiveMinimum"))
    high = shape.get("maximum", shape.get("exclusiveMaximum"))
    if high is not None and high <= 1:
        return high / 2 if shape.get("type") == "number" else int(high)
    number = 10 if low is None or low < 10 else int(low) + 1
    return number if high is None or number <= high else high


def _object(root: Schema, shape: Schema, depth: int) -> dict[str, Any]:
    if depth <= 0:
        return {}
    properties: Mapping[str, Any] = shape.get("properties", {})
    # A constant tells the shapes of a union apart, required or not.
    constant = [name for name, part in properties.items() if "const" in resolved(root, part)]
    names = dict.fromkeys([*constant, *shape.get("required", ())])
    return {name: _value(root, resolved(root, properties.get(name)), depth - 1) for name in names}


plugins_app = typer.Typer(no_args_is_help=True, help="The plugins of this project.")


@plugins_app.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction] - keeps "list" a command of its own
    pass


@plugins_app.command("list")
def list_plugins(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the loaded plugins and what each brings."""
    loaded = open_registry(config).plugins
    if as_json:
        print_json([plugin.to_json() for plugin in loaded])
    elif not loaded:
        say('No plugins. List paths, modules or packages under "plugins" in evalstudio.config.json.')
    else:
        rows = [
            (
                p.name,
                ", ".join(p.evaluators) or "-",
                ", ".join(p.connectors) or "-",
                near(p.path) if p.path else "",
            )
            for p in loaded
        ]
        print_table("Plugins", ("Plugin", "Evaluators", "Connectors", "Path"), rows)


_DEEPEST_FIELDS = 3
_LONGEST_DEFAULT = 40

Schema = Mapping[str, Any]


class Field(NamedTuple):
    """A row of the table of a config."""

    path: str
    type: str
    default: str
    description: str


def fields_of(schema: Schema) -> list[Field]:
    """Every field of a config, nested ones by their path (``rules[].tool``)."""
    return list(_fields(schema, schema, "", _DEEPEST_FIELDS))


def _fields(root: Schema, schema: Schema, prefix: str, depth: int) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, unresolved in schema.get("properties", {}).items():
        part, path = resolved(root, unresolved), f"{prefix}{name}"
        description = str(part.get("description") or "")
        yield Field(path, type_text(root, part), _default(part, name in required), description)
        if depth > 0:
            yield from _nested(root, part, path, depth - 1)


def _nested(root: Schema, part: Schema, path: str, depth: int) -> Iterator[Field]:
    """The fields of the objects inside a field; what several shapes share comes once."""
    fields: dict[str, Field] = {}
    for shape in alternatives(root, part):
        inner, mark = shape, "."
        if isinstance(shape.get("items"), Mapping):
            inner, mark = resolved(root, shape["items"]), "[]."
        for one in alternatives(root, inner):
            for field in _fields(root, one, path + mark, depth):
                known = fields.get(field.path)
                fields[field.path] = field if known is None else _joined(known, field)
    yield from fields.values()


def _joined(first: Field, second: Field) -> Field:
    """One field of two shapes: where they differ, what only one of them says is left out."""
    if first.type == second.type:
        return first
    default = first.default if first.default == second.default else ""
    description = first.description if first.description == second.description else ""
    return Field(first.path, f"{first.type}, {second.type}", default, description)


def resolved(root: Schema, part: Any) -> Schema:
    """A part of a schema with its local reference followed; a boolean schema is an empty one."""
    if not isinstance(part, Mapping):
        return {}
    here = cast(Schema, part)
    reference = here.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return here
    target: Any = root
    for step in reference[2:].split("/"):
        target = cast(Schema, target).get(step, {}) if isinstance(target, Mapping) else {}
    return {**target, **{key: value for key, value in here.items() if key != "$ref"}}


def alternatives(root: Schema, part: Schema) -> list[Schema]:
    """The shapes a value may have, ``null`` left out."""
    options = cast(Sequence[Any], part.get("anyOf") or part.get("oneOf") or ())
    shapes = [resolved(root, option) for option in options] or [part]
    return [shape for shape in shapes if shape.get("type") != "null"]


def type_text(root: Schema, part: Schema) -> str:
    texts = [_one_type(root, shape) for shape in alternatives(root, part)]
    return " or ".join(dict.fromkeys(texts)) or "null"


def _one_type(root: Schema, part: Schema) -> str:
    if "const" in part:
        return _json(part["const"])
    if "enum" in part:
        return ", ".join(_json(item) for item in part["enum"])
    kind = part.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(str(one) for one in cast(list[object], kind) if one != "null")
    if kind == "array" and isinstance(part.get("items"), Mapping):
        return f"list of {type_text(root, resolved(root, part['items']))}"
    return "list" if kind == "array" else str(kind)


def _default(part: Schema, required: bool) -> str:
    if required:
        return "required"
    if part.get("default") is None:
        return ""
    return cut(_json(part["default"]), _LONGEST_DEFAULT)


def _json(value: object) -> str:
    from ..base.json_text import json_text

    return json_text(value)
