"""A project with a past, made by real runs: an agent of a shop that got worse on a branch.

Tests and the pictures of the documentation look at it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.e2e.site import Site

# What it says depends on a file beside it, which stands for the version that is deployed.
AGENT = """
import json
from pathlib import Path

from pydantic import BaseModel

from evalstudio import ConnectorContext, ConnectorResponse, Message, define_connector


class ShopConfig(BaseModel):
    fast: bool = False


VERSION = Path(__file__).parent / "version.txt"
calls = {}


def answer(text, version, fast):
    if "refund" in text and version == "shorter":
        return "Refunds are handled by another team.", None
    if "refund" in text:
        return "Your refund of $12.50 for order A-1001 is on its way; it takes 2 days.", "find_order"
    if "open" in text and "Sunday" in text:
        return ("We are closed on Sundays." if version != "first" else "I do not know."), None
    if "open" in text:
        return "We open at 9 and close at 5.", None
    if "late" in text:
        number = calls[fast] = calls.get(fast, 0) + 1
        return ("It arrives tomorrow." if number % 3 else "It arrives soon."), "track_parcel"
    return f"Hello! How can I help with your order? {'' if fast else 'Take your time.'}", None


@define_connector(type="shop-agent", config=ShopConfig)
def shop_agent(ctx: ConnectorContext) -> ConnectorResponse:
    text, version = ctx.messages[-1].text, VERSION.read_text()
    reply, tool = answer(text, version, ctx.config.fast)
    said = []
    if tool:
        function = {"name": tool, "arguments": json.dumps({"order": "A-1001"})}
        call = {"id": "c1", "type": "function", "function": function}
        said.append(Message.model_validate({"role": "assistant", "content": None, "tool_calls": [call]}))
        said.append(Message(role="tool", tool_call_id="c1", content=json.dumps({"status": "on its way"})))
    sent, got = 380 + len(text), 40 + len(reply)
    usage = {"input_tokens": sent, "output_tokens": got, "total_tokens": sent + got}
    return ConnectorResponse([*said, Message(role="assistant", content=reply)], tokens_usage=usage)
"""


def _scenario(name: str, script: list[str], pattern: str, **more: Any) -> dict[str, Any]:
    pattern_check = {"type": "regex", "name": "says the right thing", "config": {"pattern": pattern}}
    evaluators = [pattern_check, {"type": "latency"}, {"type": "response-length"}]
    return {"name": name, "script": script, "evaluators": evaluators, **more}


SCENARIOS = [
    _scenario("Refund status", ["Hello", "Where is my refund?"], "on its way", tags=["money"]),
    _scenario("Opening hours", ["When do you open?"], "9"),
    _scenario("Sunday hours", ["When do you open on Sunday?"], "closed"),
    _scenario("Late parcel", ["My parcel is late"], "tomorrow", tags=["delivery"]),
    _scenario("Greeting", ["Hi there"], "Hello"),
]


def story_project(folder: Path) -> Path:
    """The project before its first run; the path of its config file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "version.txt").write_text("first")
    config = folder / "evalstudio.config.json"
    config.write_text(json.dumps({"name": "shop", "plugins": ["./agent.py"]}))
    names = [one["name"] for one in SCENARIOS]
    evals = [
        {
            "name": "Shop assistant",
            "scenarios": names,
            "connectors": ["shop", "shop fast"],
            "repetitions": 3,
            "requirements": [{"passRate": 0.9}, {"maxErrors": 0}],
        },
        {"name": "Opening hours only", "scenarios": names[1:3], "connectors": ["shop"], "repetitions": 2},
    ]
    connectors = [
        {"name": "shop", "type": "shop-agent"},
        {"name": "shop fast", "type": "shop-agent", "config": {"fast": True}},
    ]
    definitions = {"connectors": connectors, "scenarios": SCENARIOS, "evals": evals}
    (folder / "evals.json").write_text(json.dumps(definitions))
    return config


def tell(site: Site) -> dict[str, str]:
    """Run what happened: a first version, the one on main, and a branch that broke refunds; their ids."""
    ids: dict[str, str] = {}
    versions = (("first", "main", "1f0c"), ("main", "main", "7be2"), ("shorter", "shorter-answers", "c0de"))
    for version, branch, commit in versions:
        (site.config.parent / "version.txt").write_text(version)
        labels = {"branch": branch, "commit": commit * 10}
        ids[version] = site.executed("Shop assistant", labels=labels)["id"]
        if version == "main":
            evaluation = site.named("evals", "Shop assistant")
            site.put(
                "/api/baselines", {"name": "main", "execution": ids[version], "evalId": evaluation["id"]}
            )
            ids["hours"] = site.executed("Opening hours only", labels=labels)["id"]
    return ids
