"""Which call answers which rule: properties against trying everything."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from evalstudio.evaluators.builtin.tool_matching import Claim, assign, longest_chain, place

wishes = st.lists(st.sets(st.integers(0, 5)).map(sorted), max_size=5)


def most_pairs(candidates: list[list[int]]) -> int:
    if not candidates:
        return 0
    rest = candidates[1:]
    taking = [1 + most_pairs([[c for c in other if c != call] for other in rest]) for call in candidates[0]]
    return max([most_pairs(rest), *taking])


@given(wishes)
@settings(deadline=None)
def test_as_many_rules_get_a_call_of_their_own_as_can(candidates: list[list[int]]) -> None:
    placed = assign([Claim(rule, calls) for rule, calls in enumerate(candidates)])
    taken = [call for calls in placed.values() for call in calls]
    assert len(placed) == len(taken) == len(set(taken)) == most_pairs(candidates)
    assert all(call in candidates[rule] for rule, calls in placed.items() for call in calls)


@given(wishes)
@settings(deadline=None)
def test_the_chain_is_as_long_as_any(candidates: list[list[int]]) -> None:
    claims = [Claim(rule, calls, 1, False, rule) for rule, calls in enumerate(candidates)]
    chain = longest_chain(claims)
    steps = [chain[rule][0] for rule in sorted(chain)]
    assert all(first < second for first, second in itertools.pairwise(steps))
    choices = itertools.product(*[[None, *calls] for calls in candidates])
    rising = [[call for call in choice if call is not None] for choice in choices]
    longest = max(len(run) for run in rising if all(a < b for a, b in itertools.pairwise(run)))
    assert len(chain) == longest


@given(wishes, st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 2)), min_size=5, max_size=5))
@settings(deadline=None)
def test_competing_rules_never_share_a_call(
    candidates: list[list[int]], kinds: list[tuple[bool, int | None]]
) -> None:
    claims = [
        Claim(rule, calls, 1, competes, order)
        for rule, (calls, (competes, order)) in enumerate(zip(candidates, kinds, strict=False))
    ]
    placed, late = place(claims)
    taken = [call for claim in claims if claim.competes for call in placed.get(claim.rule, ())]
    assert len(taken) == len(set(taken))
    assert not late & placed.keys()
    ordered = [(c.order, placed[c.rule][0]) for c in claims if c.order is not None and c.rule in placed]
    assert all(a[1] < b[1] for a, b in itertools.permutations(ordered, 2) if a[0] < b[0])
