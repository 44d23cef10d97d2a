"""Runs every contender as a process of its own, in turns, and says who is first.

Of each the round with the least CPU counts: what else the machine does only ever adds to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..conversations import agent
from ..scoring import write_dataset
from .work import CALLS, RECORDS, TALKS

ROUNDS = 3
PEERS = Path(".venv-peers/bin/python")
PLAIN, OURS = "plain code", "EvalStudio"
PROGRAMS = {
    PLAIN: (sys.executable, "plain"),
    "autoevals": (str(PEERS), "autoevals_work"),
    "pydantic-evals": (str(PEERS), "pydantic_evals_work"),
    OURS: (sys.executable, "ours"),
}
# Answers a tool call to who offers tools, else a JSON document.
JUDGE = """
import asyncio, json
from aiohttp import web

def body(**message):
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "judge", "choices": [choice]}
    return json.dumps({**whole, "usage": usage}).encode()

PLAIN = body(content=json.dumps({"reasoning": "It did.", "met": True}))
CHOSEN = {"name": "select_choice", "arguments": json.dumps({"reasons": "It did.", "choice": "Y"})}
TOOL = body(content=None, tool_calls=[{"id": "c", "type": "function", "function": CHOSEN}])

async def answer(request):
    tools = b'"tools"' in await request.read()
    return web.Response(body=TOOL if tools else PLAIN, content_type="application/json")

async def main():
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@dataclass(frozen=True)
class Took:
    """What one process took: its work, and all of it with start and imports."""

    work: float
    process: float
    wall: float


def main() -> int:
    if not PEERS.exists():
        print("The peers are not installed: make bench-peers", file=sys.stderr)
        return 2
    table = Table("work", "by", "CPU of the work", "× of plain", "CPU of the process", "wall of the work")
    verdicts: list[str] = []
    with tempfile.TemporaryDirectory() as name, _judge() as judge, agent() as url:
        folder = Path(name)
        records = folder / "records.jsonl"
        write_dataset(records, RECORDS)
        _line(
            table,
            verdicts,
            f"scoring {RECORDS:,} records × 4 checks, on disk",
            (PLAIN, "autoevals", "pydantic-evals", OURS),
            lambda key: ["score", str(records), str(folder / f"{key}.jsonl")],
        )
        _line(table, verdicts, f"{CALLS} judge calls", (PLAIN, "autoevals", OURS), lambda _: ["judge", judge])
        _line(
            table,
            verdicts,
            f"{TALKS} conversations of 3 turns",
            (PLAIN, "pydantic-evals", OURS),
            lambda key: ["talk", url, *([str(folder / key)] if "ours" in key else [])],
        )
    Console().print(table, *verdicts, sep="\n")
    return 0


def _line(
    table: Table,
    verdicts: list[str],
    what: str,
    names: tuple[str, ...],
    arguments: Callable[[str], list[str]],
) -> None:
    rounds: dict[str, list[Took]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in names:
            python, program = PROGRAMS[name]
            command = [python, "-m", f"benchmarks.peers.{program}", *arguments(f"{program} {number}")]
            rounds[name].append(_took(command))
    best = {
        name: Took(*(min(getattr(one, part) for one in took) for part in ("work", "process", "wall")))
        for name, took in rounds.items()
    }
    title = what
    for name, took in best.items():
        ratio = f"{took.work / best[PLAIN].work:.2f} ×"
        table.add_row(what, name, f"{took.work:.2f} s", ratio, f"{took.process:.2f} s", f"{took.wall:.2f} s")
        what = ""
    verdicts.append(f"{title}: {_verdict(best)}")


def _verdict(best: dict[str, Took]) -> str:
    peers = [took for name, took in best.items() if name not in (PLAIN, OURS)]
    said: list[str] = []
    for part, words in (("work", "CPU of the work"), ("process", "CPU of the process"), ("wall", "wall")):
        first = all(getattr(best[OURS], part) <= getattr(peer, part) for peer in peers)
        said.append(f"{words} {'yes' if first else 'no'}")
    return "are we first? " + ", ".join(said)


def _took(command: list[str]) -> Took:
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    took = json.loads(said)
    return Took(took["cpu"], used.ru_utime + used.ru_stime, took["wall"])


@contextmanager
def _judge() -> Iterator[str]:
    server = subprocess.Popen([sys.executable, "-c", JUDGE], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    raise SystemExit(main())
