"""Comparing two sides, pure: the overall difference, every subject's category, and the decision.

What is compared was counted by `comparison_rows.py`; the shapes of the answer are in `comparison.py`.
docs/statistics.md has the formulas.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.text import counted, first_few
from ..project.entities import OVER, Subject
from .comparison import (
    CATEGORIES,
    MOST_LISTED,
    Category,
    Change,
    ComparedSide,
    ComparedSubject,
    ComparisonResult,
    Decision,
    Difference,
    MeasureDelta,
    SideRuns,
    SubjectDrop,
    is_chosen_part,
    unchosen_parts,
)
from .comparison_rows import (
    QUESTION_PARTS,
    ComparisonTable,
    MeasureKey,
    SideCounts,
    SideName,
    SubjectPair,
)
from .flakiness import DropVerdict, History, judge_drops
from .paired import ALPHA, Comparison, Pair, benjamini_hochberg, compare_rates, compare_values
from .statistics import clustered_rate


def compare(
    table: ComparisonTable,
    base: ComparedSide,
    candidate: ComparedSide,
    *,
    changes: Sequence[Change] = (),
    notes: Sequence[str] = (),
    alpha: float = ALPHA,
    min_effect: float = 0.0,
    allow_gone: bool = False,
) -> ComparisonResult:
    """Compare what the table holds.

    Of ``alpha`` one half is for the overall difference and one half for single subjects, so that an unchanged
    agent is called worse in at most that share of comparisons. A drop of the overall rate by less than
    ``min_effect`` is no regression. Subjects that the candidate no longer runs leave it undecided unless
    ``allow_gone``: what fails must not get better by being left out.
    """
    pairs = list(table.pairs.values())
    judged = _judge_subjects(pairs, alpha / 2)
    comparable = [pair for pair in pairs if _comparable(pair)]
    changed = sorted((one for one in judged if one[1] != "unchanged"), key=_rank)
    counts = Counter[Category](category for _, category, _ in judged)
    result = ComparisonResult(
        base=_with_counts(base, pairs, "base"),
        candidate=_with_counts(candidate, pairs, "candidate"),
        alpha=alpha,
        decision="none",
        reasons=[],
        notes=[*notes, *_notes(counts, base, candidate)],
        overall=_overall(comparable, alpha),
        counts={name: counts[name] for name in CATEGORIES},
        subjects=[_subject(*one, changes) for one in changed[:MOST_LISTED]],
        not_listed=max(0, len(changed) - MOST_LISTED),
        measures=_measures(table, alpha),
        changes=list(changes),
    )
    decision, reasons = _decide(result, judged, min_effect, allow_gone=allow_gone)
    fell = counts["regressed"]
    if decision == "none" and fell:
        chance = "what fell is no more than chance explains, so it is no regression"
        result.notes.append(f"{_number(fell)} passed less often; {chance}")
    return result.model_copy(update={"decision": decision, "reasons": reasons})


_Judged = tuple[SubjectPair, Category, SubjectDrop | None]


def _judge_subjects(pairs: Sequence[SubjectPair], alpha: float) -> list[_Judged]:
    comparable = [pair for pair in pairs if _comparable(pair)]
    drops = dict(zip((pair.number for pair in comparable), _drops(comparable, alpha), strict=True))
    rises = dict(zip((pair.number for pair in comparable), _rises(comparable, alpha), strict=True))
    judged: list[_Judged] = []
    for pair in pairs:
        drop, rise = drops.get(pair.number), rises.get(pair.number)
        judged.append((pair, _category(pair, drop, rise), drop))
    return judged


def _comparable(pair: SubjectPair) -> bool:
    return pair.same_question and pair.scored


def _lacks_score(side: SideCounts | None) -> bool:
    return side is None or side.scored < max(1, side.errored)


def _decide(
    result: ComparisonResult, judged: Sequence[_Judged], min_effect: float, *, allow_gone: bool
) -> tuple[Decision, list[str]]:
    if reasons := list(_regressions(result, judged, min_effect)):
        return "regressed", reasons
    gone = [] if allow_gone or _chose_its_subjects(result) else [*_gone(judged)]
    if reasons := [*gone, *_doubts(result, judged, min_effect)]:
        return "undecided", reasons
    return "none", ["no regression was shown"]


def _regressions(result: ComparisonResult, judged: Sequence[_Judged], min_effect: float) -> Iterator[str]:
    overall = result.overall
    if _fell(result, min_effect) and overall.p_worse <= result.alpha / 2:
        yield f"the pass rate is lower overall (p = {overall.p:.3g})"
    dropped = sum(1 for _, _, drop in judged if drop is not None and drop.verdict == "beyond")
    if dropped:
        yield f"{_number(dropped)} dropped by more than known flakiness explains"


def _fell(result: ComparisonResult, min_effect: float) -> bool:
    """Whether the pass rate is lower by as much as counts."""
    difference = result.overall.difference
    return difference is not None and difference < 0 and -difference >= min_effect


def _doubts(result: ComparisonResult, judged: Sequence[_Judged], min_effect: float) -> Iterator[str]:
    """Why "no regression" cannot be said either."""
    candidate = result.candidate
    if not result.overall.subjects:
        yield "nothing could be compared: no subject with the same question was scored on both sides"
    errored = sum(1 for pair, category, _ in judged if category == "errored" and _lacks_score(pair.candidate))
    if errored:
        yield f"{_number(errored)} of the candidate came to errors instead of a result"
    silent = sum(1 for pair, category, _ in judged if category == "unasserted" and _was_scored(pair))
    if silent:
        yield f"{_number(silent)} passed or failed in the base, and nothing was asserted in the candidate"
    if candidate.status not in OVER:
        yield f"the candidate is not over yet: it is {candidate.status}"
    elif unchosen := unchosen_parts(candidate.partial):
        yield f"the candidate is not whole: {unchosen}"
    regressed = result.counts["regressed"]
    too_small = min_effect > 0 and not _fell(result, min_effect)
    if regressed and not too_small and not any(_rose(pair) for pair, _, drop in judged if drop is not None):
        # Noise goes both ways. Where all that moved got worse, a few subjects are too few to call it noise.
        yield f"{_number(regressed)} got worse and none better, too few to rule out chance; repeat them"


def _gone(judged: Sequence[_Judged]) -> Iterator[str]:
    labels = [_named_subject(pair).label for pair, category, _ in judged if category == "gone"]
    if labels:
        ran = f"{_number(len(labels))} of the base did not run in the candidate: {first_few(labels)}"
        yield f"{ran}; allow it if it is meant"


def _chose_its_subjects(result: ComparisonResult) -> bool:
    """Whether somebody chose what the candidate runs: part of its eval, or another eval."""
    base, candidate = result.base, result.candidate
    return base.eval_id != candidate.eval_id or is_chosen_part(candidate.partial)


def _was_scored(pair: SubjectPair) -> bool:
    return pair.base is not None and pair.base.scored > 0


def _rose(pair: SubjectPair) -> bool:
    before, after = _rates(pair)
    return after > before


def _number(count: int) -> str:
    return counted(count, "subject")


def _notes(counts: Mapping[Category, int], base: ComparedSide, candidate: ComparedSide) -> list[str]:
    notes: list[str] = []
    if changed := counts["changed"]:
        notes.append(
            f"{_number(changed)} asked or judged by something else, so not compared: shown as changed"
        )
    for name, side in (("base", base), ("candidate", candidate)):
        if side.partial:
            notes.append(f"the {name} is partial: {side.partial}")
        if side.replayed:
            notes.append(f"the {name} was replayed from a recording: its agent was not called")
    if errored := counts["errored"]:
        notes.append(f"{_number(errored)} not compared because one side came to errors")
    if gone := counts["gone"]:
        notes.append(f"{_number(gone)} of the base did not run in the candidate, so nothing is said of them")
    if base.eval_id != candidate.eval_id:
        notes.append("the two are executions of different evals; only scenarios they share are compared")
    return notes


def _rates(pair: SubjectPair) -> tuple[float, float]:
    assert pair.base is not None
    assert pair.candidate is not None
    return pair.base.passed / pair.base.scored, pair.candidate.passed / pair.candidate.scored


def _drops(pairs: Sequence[SubjectPair], alpha: float) -> list[SubjectDrop]:
    """Each drop against the base alone and, with half of alpha each, against all earlier runs.

    Earlier runs alone would explain too much: a subject that failed for months, was mended and is broken
    again has "always failed".
    """
    direct = [_history(pair, with_earlier=False) for pair in pairs]
    pooled = [_history(pair, with_earlier=True) for pair in pairs]
    level = alpha / 2 if pooled != direct else alpha
    judged = zip(pairs, pooled, judge_drops(direct, level), judge_drops(pooled, level), strict=True)
    drops: list[SubjectDrop] = []
    for pair, history, alone, earlier in judged:
        before, after = _rates(pair)
        decisive = alone if alone.verdict == "beyond" else earlier
        verdict: DropVerdict = decisive.verdict
        if after >= before:
            verdict = "none"
        elif verdict == "none":
            # Lower than in the base, not lower than usual.
            verdict = "explained"
        drops.append(
            SubjectDrop(
                verdict=verdict,
                p=decisive.p,
                adjusted_p=decisive.adjusted_p,
                history_passed=history.passed,
                history_scored=history.scored,
            )
        )
    return drops


def _rises(pairs: Sequence[SubjectPair], alpha: float) -> list[DropVerdict]:
    """The same of failures: whether a rise is more than earlier passes explain."""
    histories = [_history(pair, with_earlier=True) for pair in pairs]
    failures = [
        History(
            one.scored - one.passed,
            one.scored,
            one.candidate_scored - one.candidate_passed,
            one.candidate_scored,
        )
        for one in histories
    ]
    return [drop.verdict for drop in judge_drops(failures, alpha)]


def _history(pair: SubjectPair, *, with_earlier: bool) -> History:
    base, candidate = pair.base, pair.candidate
    assert base is not None
    assert candidate is not None
    passed, scored = (pair.history_passed, pair.history_scored) if with_earlier else (0, 0)
    return History(passed + base.passed, scored + base.scored, candidate.passed, candidate.scored)


def _category(pair: SubjectPair, drop: SubjectDrop | None, rise: DropVerdict | None) -> Category:
    base, candidate = pair.base, pair.candidate
    if candidate is None or not candidate.ended:
        return "gone"
    if base is None or not base.ended:
        return "new"
    if not pair.same_question:
        return "changed"
    if drop is None or rise is None:
        return "errored" if base.errored or candidate.errored else "unasserted"
    before, after = _rates(pair)
    if after == before:
        return "flaky" if base.flaky or candidate.flaky else "unchanged"
    verdict = drop.verdict if after < before else rise
    # Without earlier runs to tell, repetitions that disagree are flaky and those that agree have changed.
    unclear = verdict == "unknown" and candidate.flaky
    if verdict in ("explained", "none") or unclear:
        return "flaky"
    return "regressed" if after < before else "fixed"


def _rank(judged: _Judged) -> tuple[Any, ...]:
    """By category; within one what dropped beyond doubt comes first, then by p."""
    pair, category, drop = judged
    beyond = drop is not None and drop.verdict == "beyond"
    p = drop.adjusted_p if drop is not None else 1.0
    return CATEGORIES.index(category), not beyond, p, [name or "" for name in pair.names]


def _overall(pairs: Sequence[SubjectPair], alpha: float) -> Difference:
    rates = [_rates(pair) for pair in pairs]
    counted = [
        Pair(pair.base.passed, pair.base.scored, pair.candidate.passed, pair.candidate.scored)
        for pair in pairs
        if pair.base is not None and pair.candidate is not None
    ]
    return Difference.model_validate(_difference(compare_rates(counted, alpha), rates))


def _difference(comparison: Comparison, means: Sequence[tuple[float, float]]) -> dict[str, Any]:
    interval, number = comparison.difference, len(means)
    return {
        "subjects": comparison.subjects,
        "base": math.fsum(before for before, _ in means) / number if number else None,
        "candidate": math.fsum(after for _, after in means) / number if number else None,
        "difference": interval.estimate,
        "low": _finite(interval.low),
        "high": _finite(interval.high),
        "p": comparison.p,
        "p_worse": comparison.p_worse,
        "test": comparison.test,
        "detectable": comparison.detectable,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _measures(table: ComparisonTable, alpha: float) -> list[MeasureDelta]:
    """Every measure that both sides have, over the subjects whose question is the same."""
    comparable = [pair.number for pair in table.pairs.values() if pair.same_question]
    fields: list[tuple[MeasureKey, dict[str, Any]]] = []
    for key, column in sorted(table.measures.items()):
        means = [both for number in comparable if (both := column.means(number)) is not None]
        if not means:
            continue
        if key[0] == "evaluator":
            comparison = compare_rates([*column.pairs(comparable)], alpha)
        else:
            comparison = compare_values([after - before for before, after in means], alpha)
        fields.append((key, _difference(comparison, means)))
    adjusted = benjamini_hochberg([one["p"] for _, one in fields])
    return [
        MeasureDelta.model_validate({**one, "kind": kind, "name": name, "adjusted_p": p})
        for ((kind, name), one), p in zip(fields, adjusted, strict=True)
    ]


def _named_subject(pair: SubjectPair) -> Subject:
    return Subject.model_validate(dict(zip(Subject.model_fields, pair.names, strict=True)))


def _subject(
    pair: SubjectPair, category: Category, drop: SubjectDrop | None, environment: Sequence[Change]
) -> ComparedSubject:
    return ComparedSubject(
        subject=_named_subject(pair),
        category=category,
        base=SideRuns.of(pair.base) if pair.base else None,
        candidate=SideRuns.of(pair.candidate) if pair.candidate else None,
        drop=drop,
        changes=list(_changes(pair, environment)),
    )


def _changes(pair: SubjectPair, environment: Sequence[Change]) -> Iterable[Change]:
    """What differs for this subject: its own parts, and what of the environment it depends on."""
    if pair.sides is None:
        return
    base, candidate = pair.sides
    if base.answers and candidate.answers and base.answers != candidate.answers:
        yield Change(what="answer", base=_named(base.answers), candidate=_named(candidate.answers))
    for part in (*QUESTION_PARTS, "connector"):
        before, after = getattr(base.parts, part), getattr(candidate.parts, part)
        if before != after:
            yield Change.model_validate({"what": part, "base": before, "candidate": after})
    yield from (change for change in environment if _concerns(change, candidate))


def _named(answers: frozenset[str]) -> str:
    return next(iter(answers)) if len(answers) == 1 else f"{len(answers)} different answers"


def _concerns(change: Change, side: SideCounts) -> bool:
    parts = side.parts
    match change.what:
        case "evaluator code":
            return change.name in parts.evaluator_types
        case "connector code":
            return change.name == parts.connector_type
        case "simulator model":
            return parts.simulated
        case _:
            return True


def _with_counts(side: ComparedSide, pairs: Sequence[SubjectPair], name: SideName) -> ComparedSide:
    own = [counts for pair in pairs if (counts := getattr(pair, name)) is not None]
    total = SideCounts()
    for field in SideRuns.model_fields:
        setattr(total, field, sum(getattr(counts, field) for counts in own))
    rate = clustered_rate((counts.passed, counts.scored) for counts in own)
    return side.model_copy(update={"counts": SideRuns.of(total), "pass_rate": rate})
