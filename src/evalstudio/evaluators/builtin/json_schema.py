"""Whether the response is JSON of a given shape, alone or in a fenced block, within bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

import jsonschema_rs
import orjson
from pydantic import Field

from ...base.json_text import UnclearJson, json_once
from ...base.problems import path_text
from ...base.schemas import compile_schema, first_problem, schema_cost
from ...base.text import cut
from ..contract import EvaluationResult, EvaluatorContext, Gate, TurnFacts
from ..definition import EvaluatorConfig, define_evaluator
from ..limits import DEFAULT_LIMITS, limit_exceeded
from .text import CriterionName, Graded, ruled

_LONGEST_PROBLEM = 300


class JsonSchemaConfig(EvaluatorConfig):
    """The schema the response's JSON must fit."""

    json_schema: dict[str, Any] | bool = Field(
        alias="schema",
        description="The JSON Schema; references must stay inside it, for nothing is ever fetched",
    )
    only_final: bool = Field(False, description="Whether only the last response of a conversation must fit")
    criterion_name: CriterionName = None

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        return compile_schema(self.json_schema)

    @cached_property
    def cost(self) -> int:
        return schema_cost(self.json_schema)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.validator


def _gate(config: JsonSchemaConfig | None) -> Gate:
    return "finally" if config is not None and config.only_final else "always"


# A check of a schema against a byte of a text, beside a character that is read once.
_CHECKS_PER_STEP = 100


def schema_work(cost: int, characters: int) -> float:
    """The work of a schema on a text, as evaluators tell it."""
    return characters + cost * (characters + 100) / _CHECKS_PER_STEP


def _work(config: JsonSchemaConfig, facts: TurnFacts) -> float:
    return schema_work(config.cost, facts.size())


@define_evaluator(type="json-schema", label="JSON Schema", gate=_gate, inline=True, work=_work)
def json_schema(ctx: EvaluatorContext[JsonSchemaConfig]) -> Graded:
    """The response is JSON, alone or in a fenced block, and fits a schema."""
    config = ctx.config
    if config.only_final and not ctx.is_final:
        return EvaluationResult.skip("not the final response")
    try:
        value = find_json(ctx.response, ctx.facts.limits.json_bytes)
    except NotJson as error:
        return ruled(ctx, False, str(error))
    if misfit := broken(config.validator, value):
        return ruled(ctx, False, misfit, problems=[misfit])
    return ruled(ctx, True, "the JSON fits the schema")


def broken(validator: jsonschema_rs.Validator, value: Any) -> str | None:
    """Where a value first breaks a schema, in words. A pattern that runs on is an error of the schema's."""
    problem = first_problem(validator, value)
    if problem is None:
        return None
    path, message = path_text(problem.path), problem.message
    if message.startswith("Error executing regex"):
        raise ValueError(f"a pattern in the schema takes too long on {path or 'this value'}: {message}")
    text = cut(message, _LONGEST_PROBLEM)
    return f"{path}: {text}" if path else text


DEEPEST = 200

_MOST_BLOCKS = 100
_FENCE = "```"
_LANGUAGES = ("", "json")
_FENCE_LANGUAGE = re.compile(r"[A-Za-z][\w+.#-]*(?=\s|$)|json(?=[\[{])", re.IGNORECASE)
# An open string runs to the end: a quote that is never closed must not be looked for twice.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = re.compile(r"[^\[\]{}]+")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}


class NotJson(ValueError):
    """Text that is not JSON, or more of it than is read."""


def read_json(text: str, most_bytes: int = DEFAULT_LIMITS.json_bytes) -> Any:
    """The value a text is the JSON of."""
    _check_size(text, most_bytes)
    text = text.strip().removeprefix("\ufeff")
    if not text:
        raise NotJson("the text is empty, not JSON")
    if _depth(text) > DEEPEST:
        raise NotJson(f"the JSON is nested deeper than {DEEPEST} levels")
    try:
        return json_once(text)
    except orjson.JSONDecodeError as error:
        raise NotJson(f"the text is not JSON: {error}") from None
    except UnclearJson as error:
        raise NotJson(f"the text is {error}") from None


def find_json(text: str, most_bytes: int = DEFAULT_LIMITS.json_bytes) -> Any:
    """The value of a text that is JSON, else of its first fenced block that is."""
    _check_size(text, most_bytes)
    try:
        return read_json(text, most_bytes)
    except NotJson as error:
        failure = error
    for number, block in enumerate(islice(fenced_blocks(text), _MOST_BLOCKS)):
        try:
            return read_json(block, most_bytes)
        except NotJson as error:
            if number == 0:
                failure = error
    raise failure


def fenced_blocks(text: str) -> Iterator[str]:
    """The insides of the fenced blocks that are marked as JSON or not marked at all."""
    block: list[str] | None = None
    is_json = False
    for line in text.split("\n"):
        if block is None:
            _, fence, opened = line.partition(_FENCE)
            if not fence:
                continue
            is_json, line = _open(opened)
            block = []
        inside, closed = _close(line)
        block.append(inside)
        if closed:
            if is_json:
                yield "\n".join(block)
            block = None
    if block is not None and is_json:
        yield "\n".join(block)


def _open(opened: str) -> tuple[bool, str]:
    """Whether a block may be JSON by what follows its fence, and what of that belongs to the block."""
    opened = opened.lstrip("` \t")
    match = _FENCE_LANGUAGE.match(opened)
    language = match[0].lower() if match else ""
    return language in _LANGUAGES, opened[len(language) :]


def _close(line: str) -> tuple[str, bool]:
    """What of a line is inside its block, and whether the block ends with it.

    A line break cannot stand inside a JSON string, so a fence at either end of a line is never text.
    """
    trimmed = line.strip()
    if trimmed.startswith(_FENCE):
        return "", True
    return (trimmed.rstrip("`"), True) if trimmed.endswith(_FENCE) else (line, False)


def _check_size(text: str, most_bytes: int) -> None:
    """Refuse what is longer than is read: whether it is JSON is then not known."""
    if len(text) > most_bytes or (
        len(text) > most_bytes // 4 and len(text.encode(errors="replace")) > most_bytes
    ):
        message = f"the text is longer than {most_bytes:,} bytes, too long to read as JSON"
        raise limit_exceeded(message, "jsonBytes")


def _depth(text: str) -> int:
    """How deep the brackets outside strings nest, told without parsing."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return 0
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)
