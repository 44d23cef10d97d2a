"""Which call answers which rule: the most rules satisfied, never the first fit.

Pure functions over call numbers. A rule that competes claims calls for itself alone; other rules share.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice

from ...base.lazy_dataclass import dataclass

Placed = dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a rule asks for: so many of these calls (in ascending order), perhaps at a place in an order."""

    rule: int
    calls: Sequence[int]
    need: int = 1
    competes: bool = True
    order: int | None = None


def place(claims: Sequence[Claim]) -> tuple[Placed, set[int]]:
    """The calls each satisfied rule gets, and the rules that have calls but not in their order."""
    chain = _chain_beside_others(claims)
    late = {claim.rule for claim in claims if claim.order is not None and claim.rule not in chain}
    settled = [
        replace(claim, calls=chain[claim.rule]) if claim.rule in chain else claim
        for claim in claims
        if claim.rule not in late
    ]
    # Those in the chain have no choice left, so they come first.
    settled.sort(key=lambda claim: claim.rule not in chain)
    return _share_out(settled), late


def _chain_beside_others(claims: Sequence[Claim]) -> Placed:
    """The longest chain; of these, one that leaves the unordered rules their calls where there is one."""
    ordered = [claim for claim in claims if claim.order is not None]
    longest = longest_chain(ordered)
    shares = assign([claim for claim in claims if claim.competes])
    unordered = [claim.rule for claim in claims if claim.order is None and claim.competes]
    taken = {call for rule in unordered for call in shares.get(rule, ())}
    if not taken:
        return longest
    free = [replace(claim, calls=[call for call in claim.calls if call not in taken]) for claim in ordered]
    beside = longest_chain(free)
    return beside if len(beside) == len(longest) else longest


def _share_out(claims: Sequence[Claim]) -> Placed:
    placed: Placed = {
        claim.rule: list(claim.calls[: claim.need])
        for claim in claims
        if not claim.competes and len(claim.calls) >= claim.need
    }
    return placed | assign([claim for claim in claims if claim.competes])


def assign(claims: Sequence[Claim]) -> Placed:
    """Give every claim calls of its own, as many claims as can be; earlier ones come first.

    Augmenting paths: a claim that finds its calls taken has their owners move to others. One that cannot
    have all it needs takes none.
    """
    owner: dict[int, int] = {}
    satisfied: list[int] = []
    for number, claim in enumerate(claims):
        # Most calls are free; only who needs more has others move.
        free = list(islice((call for call in claim.calls if call not in owner), claim.need))
        moves = claim.need - len(free)
        if moves and len(claim.calls) < claim.need:
            continue
        before = dict(owner) if moves else owner
        owner.update(dict.fromkeys(free, number))
        if all(_augment(number, claims, owner) for _ in range(moves)):
            satisfied.append(number)
        else:
            owner = before
    placed: Placed = {claims[number].rule: [] for number in satisfied}
    for call in sorted(owner):
        placed[claims[owner[call]].rule].append(call)
    return placed


def _augment(root: int, claims: Sequence[Claim], owner: dict[int, int]) -> bool:
    """Find one more call for a claim, moving others along the shortest path that ends at a free call."""
    taker: dict[int, int] = {}
    gave_up: dict[int, int | None] = {root: None}
    waiting = deque([root])
    while waiting:
        claim = waiting.popleft()
        for call in claims[claim].calls:
            if call in taker or owner.get(call) == claim:
                continue
            taker[call] = claim
            if call not in owner:
                _move(call, taker, gave_up, owner)
                return True
            if owner[call] not in gave_up:
                gave_up[owner[call]] = call
                waiting.append(owner[call])
    return False


def _move(free: int, taker: dict[int, int], gave_up: dict[int, int | None], owner: dict[int, int]) -> None:
    call: int | None = free
    while call is not None:
        owner[call] = taker[call]
        call = gave_up[taker[call]]


def longest_chain(claims: Sequence[Claim]) -> Placed:
    """The most ordered claims whose calls can follow each other; equal places may come in any order."""
    # By its length, the end of the chain that ends soonest, and its calls.
    best: dict[int, tuple[int, Placed]] = {0: (-1, {})}
    levels = sorted(claims, key=lambda claim: claim.order or 0)
    for _, level in groupby(levels, key=lambda claim: claim.order or 0):
        together = list(level)
        for length in sorted(best, reverse=True):
            start, before = best[length]
            for end, placed in _after(together, start):
                longer = length + len(placed)
                if longer not in best or end < best[longer][0]:
                    best[longer] = (end, before | placed)
    return best[max(best)][1]


def _after(level: Sequence[Claim], start: int) -> Iterator[tuple[int, Placed]]:
    """For each number of claims of one place, the soonest end at which so many are satisfied."""
    if len(level) == 1:
        claim = level[0]
        first = bisect_right(claim.calls, start)
        calls = list(claim.calls[first : first + claim.need])
        if len(calls) == claim.need:
            yield calls[-1], {claim.rule: calls}
        return
    # Others take no more calls than they need, so the first ones up to the sum of needs are enough for each.
    most, enough = 0, sum(claim.need for claim in level)
    following = [replace(claim, calls=_first_after(claim.calls, start, enough)) for claim in level]
    for end in sorted({call for claim in following for call in claim.calls}):
        window = [replace(c, calls=c.calls[: bisect_right(c.calls, end)]) for c in following]
        placed = _share_out(window)
        if len(placed) > most:
            most = len(placed)
            yield end, placed


def _first_after(calls: Sequence[int], start: int, most: int) -> Sequence[int]:
    first = bisect_right(calls, start)
    return calls[first : first + most]
