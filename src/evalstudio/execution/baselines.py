"""Which execution a word means, and the baselines of evals: what their executions are compared with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..base.problems import InvalidInput, Problem
from ..project.entities import Baseline, Execution
from ..storage.contract import Filters, every_item
from ..storage.errors import NotFound

if TYPE_CHECKING:
    from ..storage.store import SqlStore

_LAST = re.compile(r"last(?:~(\d{1,6}))?")
_LONGEST_NAME = 200


async def set_baseline(
    store: SqlStore, name: str, execution: str | None = None, *, eval_id: str | None = None
) -> Baseline:
    """Make an execution the baseline of this name: that which a word means, else the last whole one."""
    name = _checked(name)
    if execution is not None:
        chosen = await find_execution(store, execution, eval_id=eval_id)
    else:
        chosen = await _last_whole(store, eval_id)
    if chosen.eval_id is None:
        raise InvalidInput(f"execution {chosen.id} is the trial of a scenario; a baseline belongs to an eval")
    if eval_id is not None and chosen.eval_id != eval_id:
        raise InvalidInput(f"execution {chosen.id} is one of another eval ({chosen.eval_name})")
    if not chosen.is_over:
        raise InvalidInput(f"execution {chosen.id} is not over yet; it is {chosen.status}")
    return await store.set_baseline(chosen.eval_id, name, chosen.id)


def _checked(name: str) -> str:
    name = name.strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        message = f"a baseline's name is a line of up to {_LONGEST_NAME} characters"
        raise InvalidInput(Problem(message, ("name",)))
    if _LAST.fullmatch(name):
        raise InvalidInput(Problem(f'"{name}" always means the latest execution; choose another', ("name",)))
    return name


async def _last_whole(store: SqlStore, eval_id: str | None) -> Execution:
    filters = Filters(eval_id=eval_id, status="completed", whole=True)
    page = await store.executions(filters, limit=1)
    if not page.items:
        raise InvalidInput("there is no whole execution that is over; run the eval, or name an execution")
    return page.items[0]


async def remove_baseline(store: SqlStore, name: str, *, eval_id: str | None = None) -> None:
    """Forget a baseline; its execution stays. Without an eval the name must be that of one baseline."""
    if eval_id is None:
        eval_ids = [one.eval_id for one in await store.baselines() if one.name.casefold() == name.casefold()]
        if len(eval_ids) > 1:
            raise InvalidInput(f'several evals have a baseline "{name}"; say of which eval')
        eval_id = eval_ids[0] if eval_ids else ""
    await store.remove_baseline(eval_id, name)


async def find_execution(
    store: SqlStore, word: str, *, eval_id: str | None = None, other_than: Execution | None = None
) -> Execution:
    """An execution by its id, ``last`` or ``last~1``, or as the baseline of this name of an eval."""
    execution = await by_itself(store, word, eval_id)
    if execution is not None:
        return execution
    eval_id = eval_id or await _only_eval(store, word)
    baseline = await store.baseline(eval_id, word)
    if baseline is not None:
        return await store.execution(baseline.execution_id)
    newest = await _newest_of_branch(store, word, eval_id, other_than)
    if newest is not None:
        return newest
    raise InvalidInput(
        f'there is no execution "{word}", no baseline of this name, and no whole execution labelled '
        f'branch={word} without uncommitted changes; set one with "evalstudio baseline set {word}"'
    )


async def by_itself(store: SqlStore, word: str, eval_id: str | None) -> Execution | None:
    """What ``last`` stands for, or the execution of this id."""
    match = _LAST.fullmatch(word)
    if match is None:
        try:
            return await store.execution(word)
        except NotFound:
            return None
    back, count = int(match[1] or 0), 0
    pages = every_item(lambda cursor: store.executions(Filters(eval_id=eval_id), cursor=cursor, limit=200))
    async for execution in pages:
        if count == back:
            return execution
        count += 1
    there_are = f"there are {count} executions" if count else "there are no executions yet"
    raise InvalidInput(f'there is no "{word}": {there_are}')


async def _only_eval(store: SqlStore, word: str) -> str:
    page = await store.list_of("eval", limit=2)
    if len(page.items) == 1:
        return page.items[0].id
    raise InvalidInput(f'"{word}" is no execution; to find the baseline of this name, say of which eval')


async def _newest_of_branch(
    store: SqlStore, branch: str, eval_id: str, other_than: Execution | None
) -> Execution | None:
    """The newest whole execution of a branch. One with uncommitted changes, or of a pull request from a
    branch that happens to have this name, does not stand for it."""
    filters = Filters(eval_id=eval_id, status="completed", labels=[f"branch={branch}"], whole=True)
    async for execution in every_item(lambda cursor: store.executions(filters, cursor=cursor, limit=50)):
        own = other_than is not None and execution.id == other_than.id
        dirty = str(execution.labels.get("dirty", "")).lower() == "true"
        if not (own or dirty or "pullRequest" in execution.labels):
            return execution
    return None
