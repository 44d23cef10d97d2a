"""Placeholders that nobody fills, and values of a case that break what they are put into."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.models import ScriptedLlm
from tests.support.projects import make_project, scripted

from evalstudio import ConnectorContext, Scenario, define_connector
from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.regex import regex
from evalstudio.execution.definitions import apply_files
from evalstudio.execution.request import request_for, start_execution
from evalstudio.execution.workspace import open_workspace
from evalstudio.plugins import create_registry
from evalstudio.project.validation import check_scenario

from .table import Came, live, row

ORDER = {"name": "first", "vars": {"order": "A-17", "total": 12}}
PASSES = {"type": "regex", "config": {"pattern": "."}}


def says(text: str) -> Any:
    return lambda messages: text


async def with_case(*evaluators: Any, agent: Any = None, **scenario: Any) -> Came:
    """A conversation about an order, with the case's values."""
    options: dict[str, Any] = {"cases": [ORDER], **scenario}
    return await live(agent or says("Order A-17 is on its way"), *evaluators, **options)


def unfilled(pattern: str) -> dict[str, Any]:
    return {"type": "regex", "config": {"pattern": pattern, "mustMatch": False}}


@row(
    "definition",
    "A must-not pattern names a value of the case, and the agent says it",
    expect="fail",
    says="matches",
)
async def forbidden_value_of_the_case() -> Came:
    return await with_case(unfilled("{{order}}"))


@row(
    "definition",
    "A must-not pattern has a misspelled placeholder, so that it could never match",
    expect="refused",
    says="evaluators[0].config.pattern: {{ordr}} has no value in this case; did you mean order?",
)
async def misspelled_placeholder() -> Came:
    return await with_case(unfilled("{{ordr}}"))


@row(
    "definition",
    "A must-not pattern has a placeholder, and the scenario has no cases",
    expect="refused",
    says="{{order}} has no value: the scenario has no cases",
)
async def placeholder_without_cases() -> Came:
    return await live(says("Order A-17"), unfilled("{{order}}"))


@row(
    "definition",
    "An evaluator made in Python has a placeholder nobody fills",
    expect="refused",
    says="evaluators[0].config.pattern: {{ordr}} has no value",
)
async def placeholder_in_code() -> Came:
    return await with_case(regex.use(pattern="{{ordr}}", mustMatch=False))


@row(
    "definition",
    "An evaluator made in Python names a value of the case that the agent must not say, and it does",
    expect="fail",
    says="matches",
)
async def value_of_the_case_in_code() -> Came:
    return await with_case(regex.use(pattern="{{order}}", mustMatch=False))


@define_connector(type="shop")
def shop(ctx: ConnectorContext[Any]) -> str:
    return "Done"


@shop.state
def shop_state(ctx: ConnectorContext[Any]) -> dict[str, Any]:
    return {"orders": [{"id": "B-99", "total": 12}], "asked": ctx.run.case_values}


@row(
    "definition",
    "The expected state names a value of the case deep inside, and the agent did it for another order",
    expect="fail",
    says="A-17",
)
async def state_of_another_case() -> Came:
    expected = {"orders": [{"id": "{{order}}"}]}
    return await with_case({"type": "state-match", "config": {"expected": expected}}, agent=shop)


@row(
    "definition",
    "The expected state has a placeholder deep inside that nobody fills",
    expect="refused",
    says="evaluators[0].config.expected.orders[0].id: {{ordre}} has no value",
)
async def unfilled_expected_state() -> Came:
    expected = {"orders": [{"id": "{{ordre}}"}]}
    return await with_case({"type": "state-match", "config": {"expected": expected}}, agent=shop)


@row(
    "definition",
    "A number of the case is compared with the same digits as text",
    expect="fail",
    says="12",
)
async def value_keeps_its_type() -> Came:
    @define_connector(type="texts")
    def texts(ctx: ConnectorContext[Any]) -> str:
        return "Done"

    @texts.state
    def state(ctx: ConnectorContext[Any]) -> dict[str, Any]:
        return {"total": "12"}

    return await with_case(
        {"type": "state-match", "config": {"expected": {"total": "{{total}}"}}}, agent=texts
    )


@row(
    "definition",
    "A list of keywords has a placeholder nobody fills",
    expect="refused",
    says="evaluators[0].config.expectedKeywords[1]: {{sum}} has no value",
)
async def unfilled_keyword() -> Came:
    config = {"expectedKeywords": ["{{order}}", "{{sum}}"]}
    return await with_case({"type": "keyword-coverage", "config": config})


@row(
    "definition",
    "The name of a field in a config is a placeholder nobody fills",
    expect="refused",
    says="{{kind}} has no value",
)
async def unfilled_name_of_a_field() -> Came:
    config = {"expected": {"{{kind}}": 1}}
    return await with_case({"type": "state-match", "config": config}, agent=shop)


@row(
    "definition",
    "One case's value breaks a config that is fine with another's",
    expect="refused",
    says='case "broken": evaluators[0].config',
)
async def one_case_breaks_the_config() -> Came:
    cases = [{"name": "fine", "vars": {"word": "tea"}}, {"name": "broken", "vars": {"word": "te(a"}}]
    return checked(scripted("drinks", "Hello", pattern="{{word}}", cases=cases))


@row(
    "definition",
    "One case of many lacks a value that the script needs",
    expect="refused",
    says='case "empty": script[0]: {{word}} has no value in this case',
)
async def one_case_lacks_a_value() -> Came:
    cases = [{"name": "fine", "vars": {"word": "tea"}}, {"name": "empty", "vars": {}}]
    return checked(scripted("drinks", "A {{word}}, please", cases=cases))


@row(
    "definition",
    "A case's value leaves a message of the script blank",
    expect="refused",
    says="script[0]: is blank once it is filled in",
)
async def blank_message() -> Came:
    return await with_case(PASSES, script=["{{word}}"], cases=[{"vars": {"word": " "}}])


@row(
    "definition",
    "A seed message has a placeholder nobody fills",
    expect="refused",
    says="messages[0].content: {{ordr}} has no value",
)
async def unfilled_seed() -> Came:
    return await with_case(PASSES, messages=[{"role": "system", "content": "About {{ordr}}"}])


@row(
    "definition",
    "The tool call of a seed message has a placeholder nobody fills in its arguments",
    expect="refused",
    says="messages[0].tool_calls[0].function.arguments.id: {{ordr}} has no value",
)
async def unfilled_arguments() -> Came:
    call = {"id": "1", "function": {"name": "find", "arguments": '{"id": "{{ordr}}"}'}}
    return await with_case(PASSES, messages=[{"role": "assistant", "tool_calls": [call]}])


@row(
    "definition",
    "The reference answer has a placeholder nobody fills",
    expect="refused",
    says="groundTruth.reply: {{ordr}} has no value",
)
async def unfilled_reference() -> Came:
    return await with_case(PASSES, groundTruth={"reply": "Order {{ordr}} is on its way"})


@row(
    "definition",
    "The reference answer of a case has a placeholder nobody fills",
    expect="refused",
    says='case "first": groundTruth: {{ordr}} has no value',
)
async def unfilled_reference_of_a_case() -> Came:
    return await with_case(PASSES, cases=[{**ORDER, "groundTruth": "Order {{ordr}}"}])


@row(
    "definition",
    "The context that evaluators look at has a placeholder nobody fills",
    expect="refused",
    says="context.order: {{ordr}} has no value",
)
async def unfilled_context() -> Came:
    return await with_case(PASSES, context={"order": "{{ordr}}"})


@row(
    "definition",
    "The instructions have a placeholder nobody fills",
    expect="refused",
    says="instructions: {{ordr}} has no value",
)
async def unfilled_instructions() -> Came:
    return await with_case(PASSES, instructions="Ask about {{ordr}}")


@row(
    "definition",
    "The failure criteria have a placeholder nobody fills, so that no judge could find them met",
    expect="refused",
    says="failureCriteria: {{ordr}} has no value",
)
async def unfilled_failure_criteria() -> Came:
    return await with_case(failureCriteria="The agent reveals {{ordr}}", llm=ScriptedLlm())


@row(
    "definition",
    "The description of a criterion has a placeholder nobody fills",
    expect="refused",
    says="criteria[0].description: {{ordr}} has no value",
)
async def unfilled_criterion() -> Came:
    criterion = {"name": "right", "description": "Names {{ordr}}", "scale": "binary"}
    return await with_case(criteria=[criterion], llm=ScriptedLlm())


@row(
    "definition",
    "A judge's own prompt misspells what it is filled with",
    expect="refused",
    says="evaluators[0].config.promptTemplate: {{respons}} has no value",
)
async def misspelled_in_a_prompt() -> Came:
    judge = {"type": "criteria-judge", "config": {"promptTemplate": "Grade {{respons}} on {{order}}"}}
    criterion = {"name": "right", "description": "Is right", "scale": "binary"}
    return await with_case(judge, criteria=[criterion], llm=ScriptedLlm())


@row(
    "definition",
    "A connector's request asks for a value that the case does not have",
    expect="refused",
    says='case "first": config.requestTemplate: {{customer}} has no value in this case',
)
async def request_without_a_value() -> Came:
    template = {"text": "{{message}}", "customer": "{{customer}}"}
    agent = {"type": "http", "baseUrl": "http://127.0.0.1:9", "config": {"requestTemplate": template}}
    return await with_case(PASSES, agent=agent)


@row(
    "definition",
    "An eval is started with a connector whose request asks for a value that one scenario's case lacks",
    expect="refused",
    says='scenario "orders" on connector "agent": case "first": config.requestTemplate: {{customer}}',
)
async def execution_without_a_value() -> Came:
    config = {"requestTemplate": {"text": "{{message}}", "customer": "{{customer}}"}}
    connector = {"name": "agent", "type": "http", "baseUrl": "http://127.0.0.1:9", "config": config}
    with tempfile.TemporaryDirectory() as folder:
        path = make_project(Path(folder), [scripted("orders", "Hello", cases=[ORDER])])
        definitions = path.with_name("evals.json")
        body = json.loads(definitions.read_text()) | {"connectors": [connector]}
        definitions.write_text(json.dumps(body))
        async with open_workspace(path) as workspace:
            await apply_files(workspace, [definitions])
            nightly = await workspace.store.find("eval", "all")
            assert nightly is not None
            try:
                await start_execution(workspace, await request_for(workspace, nightly))
            except InvalidInput as error:
                return Came("refused", str(error))
    return Came("pass")


def checked(scenario: dict[str, Any]) -> Came:
    """What saving a scenario with all of its cases comes to."""
    try:
        check_scenario(Scenario.model_validate(scenario), create_registry(), Path(), has_model=False)
    except InvalidInput as error:
        return Came("refused", str(error))
    return Came("pass")
