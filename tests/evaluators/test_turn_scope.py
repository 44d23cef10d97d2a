"""A turn is everything the agent said in it, live and recorded; words have the edges of their script."""

from __future__ import annotations

from typing import Any

import pytest

from evalstudio.base.problems import InvalidInput
from evalstudio.evaluators.builtin.keyword_coverage import keyword_coverage
from evalstudio.evaluators.builtin.measurements import response_length, tool_call_budget, tool_call_count
from evalstudio.evaluators.builtin.regex import regex
from evalstudio.evaluators.builtin.rule_based import rule_based
from evalstudio.evaluators.builtin.sentiment import sentiment
from evalstudio.evaluators.builtin.text import contains, word_count
from evalstudio.evaluators.builtin.toxicity import toxicity
from evalstudio.evaluators.contract import EvaluatorContext, Invocation, TurnFacts
from evalstudio.evaluators.definition import Entry
from evalstudio.evaluators.patterns import compile_pattern, matches_any_text
from evalstudio.evaluators.records import EvaluationInput, facts_of
from evalstudio.evaluators.results import Finding
from evalstudio.evaluators.running import run_entries
from evalstudio.messages import Message

USER = {"role": "user", "content": "Go on."}
CALL = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "look", "arguments": "{}"}}]}
TOOL = {"role": "tool", "tool_call_id": "1", "content": "found"}


def text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def turn(*texts: str) -> TurnFacts:
    messages = [Message.model_validate(text(one)) for one in texts]
    earlier = [Message(role="assistant", content="An earlier idiot."), Message(role="user", content="Well?")]
    return TurnFacts([*earlier, *messages], Invocation(1.0, messages))


def record(response: Any, *history: dict[str, Any], **fields: Any) -> TurnFacts:
    source = EvaluationInput.model_validate({"response": response, "messageHistory": history, **fields})
    return facts_of(source, [])


async def look(entry: Entry, facts: TurnFacts) -> Finding:
    (finding,) = await run_entries([entry], facts)
    return finding


def rule(**config: Any) -> Any:
    return lambda **scope: rule_based.use(rules=[{**config, **scope}])


@pytest.mark.parametrize(
    ("use", "in_turn", "in_last"),
    [
        (lambda **scope: regex.use(pattern="first", **scope), True, False),
        (lambda **scope: regex.use(pattern="first", mustMatch=False, **scope), False, True),
        (lambda **scope: regex.use(pattern="^second$", **scope), True, True),
        (lambda **scope: toxicity.use(toxicTerms=["first"], **scope), False, True),
        (lambda **scope: keyword_coverage.use(expectedKeywords=["first"], **scope), True, False),
        (rule(type="regex", pattern="first", expectedOutcome="no_match"), False, True),
        (rule(type="includes", keywords=["first", "second"]), True, False),
        (rule(type="length", max=6), False, True),
        (rule(type="keyword_count", keywords=["t", "d"], max=1), False, True),
    ],
)
async def test_checks_look_at_the_whole_turn_or_at_its_last_message(
    use: Any, in_turn: bool, in_last: bool
) -> None:
    facts = turn("first", "second")
    assert (await look(use(), facts)).success is in_turn
    assert (await look(use(scope="turn"), facts)).success is in_turn
    assert (await look(use(scope="last"), facts)).success is in_last


async def test_lengths_and_moods_are_of_all_texts_together() -> None:
    facts = turn("good", "bad bad")
    assert (await look(response_length.use(), facts)).value == len("good\nbad bad")
    assert (await look(response_length.use(unit="words"), facts)).value == 3
    assert (await look(response_length.use(scope="last", unit="words"), facts)).value == 2
    assert (await look(sentiment.use(), facts)).metadata["tokens"] == 3
    assert (await look(sentiment.use(scope="last"), facts)).metadata["tokens"] == 2


async def test_another_field_is_one_text_whatever_the_scope() -> None:
    facts = turn("idiot", "fine")
    assert (await look(toxicity.use(toxicTerms=["idiot"], sourceField="prompt"), facts)).holds


def test_the_replies_are_those_of_the_turn_and_the_response_is_the_last() -> None:
    ctx: EvaluatorContext[Any] = EvaluatorContext({}, turn("first", "", "second"))
    assert (ctx.replies, ctx.response) == (["first", "second"], "second")
    assert EvaluatorContext({}, turn()).replies == ["An earlier idiot."]


@pytest.mark.parametrize(
    ("facts", "replies", "calls", "messages"),
    [
        (record("Done."), ["Done."], 0, 1),
        (record("Done.", USER, CALL, TOOL), ["Done."], 1, 4),
        (record("Done.", CALL), ["Done."], 1, 2),
        (record("Done.", USER, CALL, USER, CALL, TOOL), ["Done."], 1, 6),
        (record("Done.", USER, text("Wait."), CALL, TOOL), ["Wait.", "Done."], 1, 5),
        (record("Done.", USER, CALL, TOOL, text("Done.")), ["Done."], 1, 4),
        (record("Done.", USER, {**CALL, "content": "Done."}), ["Done."], 1, 2),
        (record({**CALL, "content": "Done."}, USER, {**CALL, "content": "Done."}), ["Done."], 1, 2),
        (record({**CALL, "content": "Done."}, USER, text("Done.")), ["Done.", "Done."], 1, 3),
        (record("Done.", USER, text("Before.")), ["Before.", "Done."], 0, 3),
        (record("Done.", USER, text("Before."), prompt="Go  on."), ["Before.", "Done."], 0, 3),
        (record("Done.", USER, text("Before."), prompt="And now?"), ["Done."], 0, 3),
        (record("Done.", USER, CALL, TOOL, prompt="And now?"), ["Done."], 1, 4),
        (record(5, USER, text("Before.")), ["Before.", "5"], 0, 2),
    ],
)
async def test_a_recorded_turn_is_what_follows_the_last_user_message(
    facts: TurnFacts, replies: list[str], calls: int, messages: int
) -> None:
    assert facts.reply_texts() == replies
    assert len(facts.messages) == messages
    assert (await look(tool_call_count.use(), facts)).value == calls
    assert (await look(tool_call_budget.use(maxCalls=0), facts)).success is (calls == 0)


# --- the edges of words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "term", "occurs"),
    [
        ("お前は馬鹿ですね", "馬鹿", True),
        ("あなたはidiotです", "idiot", True),
        ("あなたはidioticです", "idiot", False),
        ("iPhone15を買う", "iPhone15", True),
        ("你真笨", "笨", True),
        ("คุณมันโง่มาก", "โง่", True),
        # A mark belongs to its letter: โง is another syllable than โง่.
        ("โง่", "โง", False),
        ("ເຈົ້າໂງ່", "ໂງ່", True),
        ("អ្នកល្ងង់ណាស់", "ល្ងង់", True),
        # The letter below another one is no beginning.
        ("ល្ងង់", "ងង់", False),
        ("သင်မိုက်မဲတယ်", "မိုက်မဲ", True),
        ("당신은 바보예요", "바보", True),
        ("왕바보", "바보", False),
        ("コーヒーを", "コーヒー", True),
        ("々人々", "人", True),
        ("дурацкий", "дурак", False),
        ("كتابنا", "كتاب", False),
        ("x" * 50_000, "x" * 20, False),
        ("한" * 50_000 + "x", "한x", False),
    ],
)
def test_edges_follow_the_script(line: str, term: str, occurs: bool) -> None:
    assert contains(line, term, whole_word=True) is occurs


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("two words", 2),
        ("今日は。", 3),
        ("これは iPhone です", 6),
        ("これはiPhoneです", 6),
        ("โง่", 2),
        ("안녕하세요 여러분", 2),
        ("", 0),
        ("。", 1),
        ("a - b", 3),
    ],
)
def test_words_are_counted_by_the_script(line: str, words: int) -> None:
    assert word_count(line) == words


@pytest.mark.parametrize(
    "pattern", ["a*", "", "(a|)", "^", "$", "^a?", "a*$", "(?!x)", "(?!.*x)", "(?:)", "[^x]*", "x{0}"]
)
def test_a_pattern_that_matches_anything_is_noticed(pattern: str) -> None:
    assert matches_any_text(compile_pattern(pattern))
    if pattern:
        with pytest.raises(InvalidInput, match="would always pass"):
            regex.use(pattern=pattern)
        regex.use(pattern=pattern, mustMatch=False)


@pytest.mark.parametrize(
    "pattern",
    [
        "a",
        "^a*$",
        "^$",
        "^[^<>]*$",
        "^(?!.*refund)",
        r"\bok\b",
        "(?<!a)$",
        "^(?!Sorry|Error)",
        "^.{0,100}$",
        r"[\^a]",
    ],
)
def test_a_pattern_that_can_fail_is_kept(pattern: str) -> None:
    assert not matches_any_text(compile_pattern(pattern))
    regex.use(pattern=pattern)
