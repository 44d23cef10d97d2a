"""A thousand recorded conversations of each format, reviewed with gates: every one is judged, and rightly."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest
from tests.recordings.test_flat_memory import otlp
from tests.recordings.test_round_trips import evalstudio

from evalstudio.conversation.definitions import Scenario
from evalstudio.execution.reviews import ReviewRequest, begin_review, review_conversations
from evalstudio.execution.workspace import open_workspace
from evalstudio.recordings.conversation import RecordedConversation
from evalstudio.recordings.reading import read_conversations
from evalstudio.storage.contract import Filters

SAMPLES = Path(__file__).parents[1] / "recordings" / "samples"
# Written by the libraries of those who define the formats; see the folder.
FILES = {
    "openai": "openai_chat.jsonl",
    "responses": "openai_responses.jsonl",
    "anthropic": "anthropic.jsonl",
    "gemini": "gemini.jsonl",
    "langgraph": "langgraph_snapshot.json",
    "langsmith": "langsmith_runs.jsonl",
    "inspect": "inspect.json",
    "promptfoo": "promptfoo.jsonl",
}
WRITERS = {"evalstudio": evalstudio, "otlp": otlp}
GOOD, BAD = "It is on the way.", "It is lost, damn."
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
NO_OATH = {"pattern": "damn", "mustMatch": False}
NO_DELETION = {"rules": [{"tool": "delete", "forbidden": True}]}
SCENARIO = Scenario.model_validate(
    {
        "name": "polite",
        "evaluators": [
            {"type": "regex", "name": "no oath", "gate": "always", "config": NO_OATH},
            {"type": "tool-usage", "name": "tools", "gate": "finally", "config": NO_DELETION},
            {"type": "regex", "name": "answers", "gate": "eventually", "config": {"pattern": "[a-z]"}},
        ],
    }
)


def sample(name: str) -> str:
    """One or more conversations of a format, a document to a line."""
    if name in WRITERS:
        turns = [
            ("Where is order A1?", dict[str, str](), GOOD),
            ("Thanks!", dict[str, str](), "You are welcome."),
        ]
        return json.dumps(WRITERS[name](turns))
    text = (SAMPLES / FILES[name]).read_text()
    return text if name in ("langsmith", "promptfoo") else json.dumps(json.loads(text))


def copied(text: str, ids: list[str], number: int) -> str:
    """The same with ids of its own; in every second copy the agent swears."""
    text = UUID.sub(lambda match: str(uuid5(NAMESPACE_URL, f"{match[0]} {number}")), text)
    text = text.replace(f'"traceId": "{1:032x}"', f'"traceId": "{number:032x}"').replace(
        "NUMBER", f"n{number}"
    )
    for one in ids:
        text = text.replace(f'"{one}"', f'"{one}-{number}"')
    return text.replace(GOOD, BAD) if number % 2 else text


@pytest.mark.parametrize("least", [4, pytest.param(1_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", [*FILES, *WRITERS])
async def test_recorded_conversations_of_every_format_are_reviewed_with_gates(
    tmp_path: Path, name: str, least: int
) -> None:
    path, text = tmp_path / "recorded", sample(name)
    path.write_text(text)
    first = [one for one in read_conversations(path) if isinstance(one, RecordedConversation)]
    assert first
    # OTLP has its own number in the place of its ids.
    ids = [one.id for one in first if not one.id.startswith(str(tmp_path)) and not UUID.fullmatch(one.id)]
    copies = -(-least // len(first))
    path.write_text("\n".join(copied(text, ids, number) for number in range(1, copies + 1)))
    (tmp_path / "evalstudio.config.json").write_text('{"name": "t"}')
    expected: Counter[str] = Counter()
    for one in read_conversations(path):
        assert isinstance(one, RecordedConversation), one
        said = [message.text for turn in one.turns for message in turn.messages]
        is_good = "damn" not in " ".join(said) and bool(re.search("[a-z]", " ".join(said)))
        expected["pass" if is_good else "fail"] += 1
    begin = time.perf_counter()
    async with open_workspace(tmp_path / "evalstudio.config.json") as workspace:
        request = ReviewRequest([SCENARIO])
        execution = await begin_review(workspace, request)
        review = await review_conversations(workspace, request, execution, read_conversations(path))
        counts = review.execution.counts
        failed = await workspace.store.runs(Filters(execution_id=execution.id, outcome="fail"), limit=1)
        judged = await workspace.store.run(failed.items[0].id)
    print(f"\n{name}: {counts.total:,} in {time.perf_counter() - begin:.1f} s")
    assert (review.bad, review.read, counts.total) == (0, copies * len(first), copies * len(first))
    assert (counts.passed, counts.failed, counts.errored) == (expected["pass"], expected["fail"], 0)
    assert min(expected.values()) > 0
    findings = [finding for turn in judged.turns for finding in turn.results if finding.kind == "assertion"]
    assert {finding.gate for finding in findings} == {"always", "finally", "eventually"}
    assert {finding.name for finding in findings if finding.failed} <= {"no oath", "answers"}
