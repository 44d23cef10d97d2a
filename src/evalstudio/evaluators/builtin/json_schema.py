"""Whether the response is JSON of a given shape."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import jsonschema_rs
from pydantic import Field

from ...schemas import compile_schema, problems
from ..contract import EvaluationResult, EvaluatorContext, Gate
from ..criteria import Name
from ..definition import EvaluatorConfig, define_evaluator
from .grading import ruled
from .reading_json import NotJson, find_json

_LONGEST_PROBLEM = 300


class JsonSchemaConfig(EvaluatorConfig):
    """The schema the response's JSON must fit."""

    json_schema: dict[str, Any] | bool = Field(
        alias="schema",
        description="The JSON Schema; references must stay inside it, for nothing is ever fetched",
    )
    only_final: bool = Field(False, description="Whether only the last response of a conversation must fit")
    criterion_name: Name | None = Field(
        None, description="The criterion to score; without one the result stands for itself"
    )

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        return compile_schema(self.json_schema)

    def model_post_init(self, context: Any, /) -> None:
        _ = self.validator


def _gate(config: JsonSchemaConfig | None) -> Gate:
    return "finally" if config is not None and config.only_final else "always"


@define_evaluator(type="json-schema", label="JSON Schema", gate=_gate, inline=True)
def json_schema(ctx: EvaluatorContext[JsonSchemaConfig]) -> EvaluationResult | list[EvaluationResult]:
    """The response is JSON, alone or in a fenced block, and fits a schema."""
    config = ctx.config
    if config.only_final and not ctx.is_final:
        return EvaluationResult.skip("not the final response")
    try:
        value = find_json(ctx.response)
    except NotJson as error:
        return ruled(ctx, False, str(error), criterion_name=config.criterion_name)
    found = broken(config.validator, value)
    return ruled(
        ctx,
        not found,
        "; ".join(found) or "the JSON fits the schema",
        criterion_name=config.criterion_name,
        metadata={"problems": found} if found else {},
    )


def broken(validator: jsonschema_rs.Validator, value: Any) -> list[str]:
    """How a value breaks a schema, in words. A pattern that runs on is an error of the schema's."""
    found: list[str] = []
    for path, message in problems(validator, value):
        if message.startswith("Error executing regex"):
            raise ValueError(f"a pattern in the schema takes too long on {path or 'this value'}: {message}")
        text = message if len(message) <= _LONGEST_PROBLEM else message[:_LONGEST_PROBLEM] + "…"
        found.append(f"{path}: {text}" if path else text)
    return found
