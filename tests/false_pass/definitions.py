"""Definitions that say something else than they seem to, and code of users that breaks."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from evalstudio import (
    ConnectorContext,
    EvaluatorContext,
    InvalidInput,
    PluginError,
    Scenario,
    create_registry,
    define_connector,
    define_evaluator,
    load_plugins,
)
from evalstudio.project.changes import read_files
from evalstudio.project.validation import check_scenario

from .table import Came, live, row

PASSES = {"type": "regex", "config": {"pattern": "."}}
POLITE = {"type": "regex", "name": "polite", "config": {"pattern": "please", "mustMatch": False}}


def echo(messages: Any) -> str:
    return f"You said: {messages[-1].text}"


def saved(scenario: dict[str, Any], folder: Path = Path()) -> Came:
    """What saving a scenario comes to."""
    try:
        check_scenario(Scenario.model_validate(scenario), create_registry(), folder, has_model=False)
    except ValueError as error:
        return Came("refused", str(error))
    return Came("pass")


def loaded(source: str) -> Came:
    """What loading a plugin with this source comes to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "checks.py").write_text(source)
        config = Path(folder, "evalstudio.config.json")
        config.write_text(json.dumps({"plugins": ["./checks.py"]}))
        try:
            load_plugins(config)
        except PluginError as error:
            return Came("refused", str(error))
    return Came("pass")


@row(
    "definition",
    "A script is longer than `maxMessages`, and its last message would have failed",
    expect="refused",
    says="maxMessages: is 2, but the script needs 4",
)
async def script_cut_by_its_limit() -> Came:
    return await live(echo, POLITE, script=["Hello", "Say please"], maxMessages=2)


@row(
    "definition",
    "A script without a limit is longer than conversations usually are, and its last reply fails",
    expect="fail",
    says="please",
)
async def long_script_is_played_to_its_end() -> Came:
    return await live(echo, POLITE, script=[f"Question {number}" for number in range(9)] + ["please"])


@row(
    "definition",
    "An evaluator's type is misspelled",
    expect="refused",
    says='evaluators[0].type: no evaluator is called "toxcity"; did you mean toxicity',
)
async def misspelled_type() -> Came:
    return await live(echo, {"type": "toxcity"})


@row(
    "definition",
    "A setting of an evaluator is misspelled, so that it would have kept its default",
    expect="refused",
    says="evaluators[0].config.mustmatch: unknown key; did you mean mustMatch",
)
async def misspelled_setting() -> Came:
    return await live(echo, {"type": "regex", "config": {"pattern": "Hello", "mustmatch": False}})


@row(
    "definition",
    "A field of a scenario is misspelled",
    expect="refused",
    says="failurecriteria: unknown key; did you mean failureCriteria",
)
async def misspelled_field() -> Came:
    return await live(echo, PASSES, failurecriteria="The agent is rude")


@row(
    "definition",
    "A gate is one that does not exist",
    expect="refused",
    says="evaluators[0].gate: must be 'always', 'eventually' or 'finally'",
)
async def unknown_gate() -> Came:
    return await live(echo, {**POLITE, "gate": "sometimes"})


@row(
    "definition",
    "Two evaluators have the same name, so that one would hide the other",
    expect="refused",
    says="the name 'polite' is used twice",
)
async def two_of_one_name() -> Came:
    return await live(echo, POLITE, {**PASSES, "name": "polite"})


@row(
    "definition",
    "An evaluator judges a criterion that is not declared",
    expect="refused",
    says='"tine" is not among the scenario\'s criteria; did you mean tone?',
)
async def undeclared_criterion() -> Came:
    criterion = {"name": "tone", "description": "Is polite", "scale": "binary"}
    judged = {"type": "regex", "config": {"pattern": ".", "criterionName": "tine"}}
    return await live(echo, judged, criteria=[criterion])


@row(
    "definition",
    "A criterion has a weight below zero",
    expect="refused",
    says="criteria[0].weight: must be greater than or equal to 0",
)
async def negative_weight() -> Came:
    criterion = {"name": "tone", "description": "Is polite", "scale": "binary", "weight": -1}
    return await live(echo, PASSES, criteria=[criterion])


@row("definition", "Two criteria have the same name", expect="refused", says='"tone"')
async def two_criteria_of_one_name() -> Came:
    criterion = {"name": "tone", "description": "Is polite", "scale": "binary"}
    return await live(echo, PASSES, criteria=[criterion, criterion])


@row("definition", "Nothing judges a scenario", expect="refused", says="nothing judges this scenario")
async def nothing_judges() -> Came:
    return await live(echo)


@row(
    "definition",
    "The only criteria of a scenario are blank",
    expect="refused",
    says="successCriteria: must not be blank",
)
async def blank_criteria() -> Came:
    return await live(echo, successCriteria=" \n")


@row(
    "definition",
    "The criteria of a scenario are there, and no model to judge them",
    expect="refused",
    says='"criteria" needs a language model',
)
async def criteria_without_a_model() -> Came:
    return await live(echo, successCriteria="The agent greets")


@row(
    "definition",
    "A limit leaves no room for a reply",
    expect="refused",
    says="maxMessages: leaves no room for a user message and its reply",
)
async def no_room_for_a_reply() -> Came:
    return await live(echo, POLITE, maxMessages=1)


@row("definition", "Nobody can speak first", expect="refused", says="nobody can speak first")
async def nobody_speaks() -> Came:
    return await live(echo, POLITE, script=[])


@row(
    "definition",
    "A message of the script is blank",
    expect="refused",
    says="script[1]: a message of the script must not be blank",
)
async def blank_script() -> Came:
    return await live(echo, POLITE, script=["Hello", " "])


@row(
    "definition",
    "A pattern cannot be read",
    expect="refused",
    says="evaluators[0].config: bad pattern",
)
async def unreadable_pattern() -> Came:
    return await live(echo, {"type": "regex", "config": {"pattern": "(", "mustMatch": False}})


@row(
    "definition",
    "A budget is a word instead of a number",
    expect="refused",
    says="evaluators[0].config.maxMs: expected a number",
)
async def budget_in_words() -> Came:
    return await live(echo, {"type": "latency-budget", "config": {"maxMs": "fast"}})


@row(
    "definition",
    "An evaluator's config is a list",
    expect="refused",
    says="evaluators[0].config: expected named settings",
)
async def config_as_a_list() -> Came:
    return await live(echo, {"type": "regex", "config": ["please"]})


@row(
    "definition",
    "Two cases have the same name, so that results could not be told apart",
    expect="refused",
    says='two cases are called "one"',
)
async def two_cases_of_one_name() -> Came:
    cases = [{"name": "one"}, {"name": "one"}]
    return saved({"name": "s", "script": ["Hello"], "evaluators": [PASSES], "cases": cases})


@row("definition", "A file of cases has none", expect="refused", says="has no cases")
async def empty_file_of_cases() -> Came:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cases.csv").write_text("name,city\n")
        scenario = {"name": "s", "script": ["Hello"], "evaluators": [PASSES], "cases": "cases.csv"}
        return saved(scenario, Path(folder))


@row(
    "definition",
    "A file of cases lies outside of the project",
    expect="refused",
    says="leads out of the project folder",
)
async def cases_from_elsewhere() -> Came:
    return saved({"name": "s", "script": ["Hello"], "evaluators": [PASSES], "cases": "../../cases.csv"})


@row(
    "definition",
    "A scenario with several cases is run without saying which",
    expect="refused",
    says="the scenario has several cases",
)
async def no_case_chosen() -> Came:
    return await live(echo, PASSES, cases=[{"name": "one"}, {"name": "two"}])


@row(
    "definition",
    "An eval names a scenario in its file by id, which files do not know",
    expect="refused",
    says="scenarioIds: files refer by name",
)
async def reference_by_id() -> Came:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "evals.yaml")
        path.write_text("evals: [{name: all, scenarioIds: [x], connectors: [a]}]\n")
        try:
            read_files([path])
        except InvalidInput as error:
            return Came("refused", str(error))
    return Came("pass")


@row(
    "definition",
    "A connector's type is misspelled",
    expect="refused",
    says='no connector type is called "htp"; did you mean http',
)
async def misspelled_connector() -> Came:
    return await live({"type": "htp", "baseUrl": "http://127.0.0.1:9"}, POLITE)


@row(
    "definition",
    "A plugin's evaluator is given as a mapping without what it does",
    expect="refused",
    says='"evaluate" is missing',
)
async def evaluator_without_a_function() -> Came:
    return loaded("from evalstudio import define_evaluator\ncheck = define_evaluator({'type': 'check'})\n")


@row(
    "definition",
    "A plugin misspells the kind of its evaluator",
    expect="refused",
    says="kind must be assertion or metric, not 'assert'",
)
async def misspelled_kind() -> Came:
    source = "@define_evaluator(kind='assert')\ndef check(ctx):\n    return True\n"
    return loaded(f"from evalstudio import define_evaluator\n\n{source}")


@row(
    "definition",
    "A plugin misspells an option of its evaluator, so that its gate would be another",
    expect="refused",
    says='unknown "gates"; did you mean gate?',
)
async def misspelled_option() -> Came:
    source = "@define_evaluator(gates='always')\ndef check(ctx):\n    return True\n"
    return loaded(f"from evalstudio import define_evaluator\n\n{source}")


@row(
    "definition",
    "A plugin replaces a built-in evaluator by one that always passes",
    expect="refused",
    says='Evaluator type "toxicity" is already registered (built-in)',
)
async def plugin_overrides_a_built_in() -> Came:
    source = "@define_evaluator\ndef toxicity(ctx):\n    return True\n"
    return loaded(f"from evalstudio import define_evaluator\n\n{source}")


@row(
    "definition",
    "A plugin has nothing to contribute",
    expect="refused",
    says="has no evaluators or connectors",
)
async def empty_plugin() -> Came:
    return loaded("def check(ctx):\n    return True\n")


@row("definition", "A plugin cannot be imported", expect="refused", says="No module named 'not_there_at_all'")
async def plugin_that_cannot_be_imported() -> Came:
    return loaded("import not_there_at_all\n")


@row(
    "definition",
    "An evaluator raises an exception",
    expect="error: evaluator",
    says='Evaluator "divides": ZeroDivisionError: division by zero (tests/false_pass/definitions.py:',
)
async def evaluator_raises() -> Came:
    @define_evaluator
    def divides(ctx: EvaluatorContext[Any]) -> bool:
        return bool(1 / 0)

    return await live(echo, divides)


@row(
    "definition",
    "An evaluator raises an exception that cannot be put into words",
    expect="error: evaluator",
    says="Mute: (its message cannot be read)",
)
async def evaluator_raises_without_words() -> Came:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @define_evaluator
    async def mute(ctx: EvaluatorContext[Any]) -> bool:
        raise Mute

    return await live(echo, mute)


@row("definition", "An evaluator exits the program", expect="error: evaluator", says="SystemExit: 0")
async def evaluator_exits() -> Came:
    @define_evaluator
    def leaves(ctx: EvaluatorContext[Any]) -> bool:
        raise SystemExit(0)

    return await live(echo, leaves)


@define_connector
def sandbox(ctx: ConnectorContext[Any]) -> str:
    return "Done"


@row(
    "definition",
    "What prepares an agent for a run breaks",
    expect="error: agent",
    says="Connector \"prepared\": KeyError: 'orders' (tests/false_pass/definitions.py:",
)
async def setup_breaks() -> Came:
    @define_connector
    def prepared(ctx: ConnectorContext[Any]) -> str:
        return "Done"

    @prepared.setup
    def seed(ctx: ConnectorContext[Any]) -> None:
        {}["orders"]  # pyright: ignore

    return await live(prepared, POLITE)


@row(
    "definition",
    "What tells the agent's end state returns something else",
    expect="error: agent",
    says="its state hook must return a dict, not a list",
)
async def state_of_another_shape() -> Came:
    sandbox.state(lambda ctx: [])
    return await live(sandbox, {"type": "state-match", "config": {"expected": {"booked": True}}})
