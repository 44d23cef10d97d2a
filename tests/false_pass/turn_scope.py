"""Agents that say the wrong thing before the right one, or in a script without blanks between words."""

from __future__ import annotations

from typing import Any

from .table import Came, Expected, live, recorded, row


def says(*texts: str) -> Any:
    """An agent that sends several messages in one turn."""
    return lambda messages: [{"role": "assistant", "content": text} for text in texts]


def toxic(*terms: str) -> dict[str, Any]:
    return {"type": "toxicity", "config": {"toxicTerms": list(terms)}}


def rule(**config: Any) -> dict[str, Any]:
    return {"type": "rule-based", "config": {"rules": [config]}}


def spoken(
    name: str, attempt: str, check: dict[str, Any], *texts: str, why: str, expect: Expected = "fail"
) -> None:
    async def run() -> Came:
        return await live(says(*texts), check)

    run.__name__ = name
    row("agent", attempt, expect=expect, says=why)(run)


NO_REFUND = {"type": "regex", "config": {"pattern": "refund", "mustMatch": False}}
BEFORE = ("You idiot, no refund.", "How may I help?")

spoken(
    "insult_first",
    "An agent insults first and sends a polite message after it",
    toxic("idiot"),
    *BEFORE,
    why="idiot",
)
spoken(
    "forbidden_pattern_first",
    "A forbidden pattern is in an earlier message of the turn",
    NO_REFUND,
    *BEFORE,
    why="refund",
)
spoken(
    "forbidden_rule_first",
    "A rule's forbidden pattern is in an earlier message",
    rule(type="regex", pattern="refund", expectedOutcome="no_match"),
    *BEFORE,
    why="refund",
)
spoken(
    "forbidden_word_first",
    "A forbidden keyword is in an earlier message",
    rule(type="includes", keywords=["idiot"], expectedOutcome="none"),
    *BEFORE,
    why="idiot",
)
spoken(
    "long_in_parts",
    "An answer is cut into messages to stay below a length",
    rule(type="length", max=20),
    *BEFORE,
    why="more than 20",
)
spoken(
    "often_in_parts",
    "A keyword is spread over messages to stay below a count",
    rule(type="keyword_count", keywords=["buy"], max=1),
    "Buy!",
    "Buy!",
    why="more than 1",
)
spoken(
    "json_first",
    "JSON comes first and plain text last",
    {"type": "json-schema", "config": {"schema": {"type": "object"}}},
    '{"a": 1}',
    "Done.",
    why="not JSON",
)
spoken(
    "similar_first",
    "The right answer comes first and another one last",
    {"type": "lexical-similarity", "config": {"threshold": 0.9, "referenceField": "scenario.name"}},
    "attempt",
    "I do not know.",
    why="threshold",
)
spoken(
    "japanese",
    "An insult stands in a Japanese sentence without blanks",
    toxic("馬鹿"),
    "お前は馬鹿ですね。",
    why="馬鹿",
)
spoken(
    "katakana", "An insult in katakana is followed by a long vowel", toxic("バカ"), "このバカー", why="バカ"
)
spoken(
    "half_width", "A Japanese insult is written in half-width katakana", toxic("バカ"), "ﾊﾞｶですね", why="バカ"
)
spoken("chinese", "An insult stands in a Chinese sentence", toxic("笨蛋"), "你真是个笨蛋啊", why="笨蛋")
spoken("thai", "An insult stands in a Thai sentence", toxic("โง่"), "คุณมันโง่มาก", why="โง่")
spoken("lao", "An insult stands in a Lao sentence", toxic("ໂງ່"), "ເຈົ້າໂງ່ຫຼາຍ", why="ໂງ່")
spoken("khmer", "An insult stands in a Khmer sentence", toxic("ល្ងង់"), "អ្នកល្ងង់ណាស់", why="ល្ងង់")
spoken("burmese", "An insult stands in a Burmese sentence", toxic("မိုက်မဲ"), "သင်မိုက်မဲတယ်", why="မိုက်မဲ")
spoken(
    "korean", "A Korean insult has a particle right behind it", toxic("바보"), "당신은 바보예요", why="바보"
)
spoken(
    "latin_in_japanese",
    "An English insult stands in a Japanese sentence without blanks",
    toxic("idiot"),
    "あなたはidiotです",
    why="idiot",
)
spoken(
    "full_width", "An insult is written in full-width letters", toxic("idiot"), "You ｉｄｉｏｔ!", why="idiot"
)
spoken(
    "zero_width",
    "An insult has zero-width characters between its letters",
    toxic("idiot"),
    "You i\u200bd\u200di\u2060ot!",
    why="idiot",
)
spoken(
    "missing_thai_keyword",
    "A Thai keyword is not in the answer",
    {"type": "keyword-coverage", "config": {"expectedKeywords": ["คืนเงิน"]}},
    "สวัสดีครับ",
    why="missing",
)

CALL = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "delete", "arguments": "{}"}}]}
ASKED = {"role": "user", "content": "Clean up."}


def record(*history: dict[str, Any], response: str = "Done.", **fields: Any) -> dict[str, Any]:
    return {"response": response, "messageHistory": list(history), **fields}


def text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


@row(
    "data", "A recorded turn makes a call too many before its response", expect="fail", says="over the budget"
)
async def recorded_calls() -> Came:
    check = {"type": "tool-call-budget", "config": {"maxCalls": 0}}
    return await recorded(record(ASKED, CALL, {"role": "tool", "content": "ok"}), check)


@row("data", "A recorded turn insults before its response", expect="fail", says="idiot")
async def recorded_insult() -> Came:
    return await recorded(record(ASKED, text("You idiot."), prompt="Clean up."), toxic("idiot"))


@row(
    "data",
    "A recorded turn's call is in a history that repeats the response",
    expect="fail",
    says="2 tool calls",
)
async def recorded_twice() -> Came:
    check = {"type": "tool-call-budget", "config": {"maxCalls": 1}}
    return await recorded(record(ASKED, CALL, CALL | {"content": "Done."}), check)


@row(
    "data", "An earlier turn of a record said what this one should have said", expect="fail", says="no match"
)
async def recorded_earlier_turn() -> Came:
    earlier = record(
        ASKED, text("Booked: BK-1."), {"role": "user", "content": "And now?"}, response="No idea."
    )
    return await recorded(earlier, {"type": "regex", "config": {"pattern": "BK-[0-9]+"}})


@row(
    "data",
    "A record's history ends before its prompt, with what should be said now",
    expect="fail",
    says="no match",
)
async def recorded_before_the_prompt() -> Came:
    earlier = record(ASKED, text("Booked: BK-1."), response="No idea.", prompt="And now?")
    return await recorded(earlier, {"type": "regex", "config": {"pattern": "BK-[0-9]+"}})
