"""Two sides compared: categories, the decision, what changed, and how often an unchanged agent is blamed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from evalstudio.reporting.comparing import compare
from evalstudio.reporting.comparison import Change, ComparedSide, ComparisonResult
from evalstudio.reporting.comparison_rows import ComparedRow, ComparisonTable, Parts, SideName

BASE, CANDIDATE = ComparedSide(id="b", eval_id="e"), ComparedSide(id="c", eval_id="e")
OUTCOMES: dict[str, Any] = {"p": "pass", "f": "fail", "e": "error", "u": "unasserted", "-": None}


def names(name: str) -> tuple[str | None, ...]:
    return (f"id of {name}", name, None, None, None, "c1", "agent")


def add(table: ComparisonTable, side: SideName, name: str, outcomes: str, **more: Any) -> None:
    """Runs of one subject, a letter each."""
    for letter in outcomes:
        table.add(side, ComparedRow(name, names(name), OUTCOMES[letter], **more))


def compared(*subjects: tuple[str, str, str], **more: Any) -> ComparisonResult:
    """Subjects by name with their runs on the base and on the candidate."""
    table = ComparisonTable()
    for name, base, candidate in subjects:
        add(table, "base", name, base)
        add(table, "candidate", name, candidate)
    return compare(table, BASE, CANDIDATE, **more)


def category(base: str, candidate: str, history: tuple[int, int] | None = None, **more: Any) -> str:
    table = ComparisonTable()
    add(table, "base", "s", base)
    add(table, "candidate", "s", candidate, **more)
    if history is not None:
        table.add_history("s", Parts().question, *history)
    result = compare(table, BASE, CANDIDATE)
    (known,) = [name for name, number in result.counts.items() if number]
    assert [one.category for one in result.subjects] == ([] if known == "unchanged" else [known])
    return known


@pytest.mark.parametrize(
    ("base", "candidate", "expected"),
    [
        ("p", "p", "unchanged"),
        ("fff", "ff", "unchanged"),
        ("p", "f", "regressed"),
        ("pppp", "ffff", "regressed"),
        ("f", "p", "fixed"),
        ("ppp", "ppf", "flaky"),
        ("pf", "pf", "flaky"),
        ("pf", "ff", "flaky"),
        ("", "p", "new"),
        ("-", "p", "new"),
        ("p", "", "gone"),
        ("p", "--", "gone"),
        ("p", "e", "errored"),
        ("p", "peee", "errored"),
        ("p", "ppe", "unchanged"),
        ("e", "p", "errored"),
        ("u", "u", "unasserted"),
        ("p", "u", "unasserted"),
    ],
)
def test_every_subject_has_a_category(base: str, candidate: str, expected: str) -> None:
    assert category(base, candidate) == expected


def test_what_the_candidate_no_longer_runs_is_no_improvement() -> None:
    """A scenario that fails is not mended by deleting it."""
    subjects = (("fails", "f", ""), ("stopped", "p", "--"), ("same", "p", "p"))
    result = compared(*subjects)
    assert result.decision == "undecided"
    said = "2 subjects of the base did not run in the candidate: fails · agent, stopped · agent; allow it"
    assert result.reasons[0].startswith(said)
    assert [one.category for one in result.subjects] == ["gone", "gone"]
    assert compared(*subjects, allow_gone=True).decision == "none"


@pytest.mark.parametrize(
    ("change", "decision"),
    [
        ({"partial": "only"}, "none"),
        ({"partial": "last-failed"}, "none"),
        ({"eval_id": "another"}, "none"),
        ({"partial": "budget"}, "undecided"),
        ({"partial": "only, budget"}, "undecided"),
    ],
)
def test_subjects_that_somebody_left_out_may_be_missing(change: dict[str, str], decision: str) -> None:
    table = ComparisonTable()
    add(table, "base", "left out", "f")
    for side in ("base", "candidate"):
        add(table, side, "same", "p")
    assert compare(table, BASE, CANDIDATE.model_copy(update=change)).decision == decision


def test_a_known_flakiness_explains_a_drop_and_a_rise() -> None:
    assert category("p", "f", history=(6, 10)) == "flaky"
    assert category("f", "p", history=(6, 10)) == "flaky"
    assert category("p", "f", history=(10, 10)) == "regressed"


def test_a_drop_beyond_its_flakiness_is_a_regression_by_itself() -> None:
    table = ComparisonTable()
    add(table, "base", "s", "ppp")
    add(table, "candidate", "s", "fff")
    for number in range(4):
        add(table, "base", f"other {number}", "ppp")
        add(table, "candidate", f"other {number}", "ppp")
    table.add_history("s", Parts().question, 60, 60)
    result = compare(table, BASE, CANDIDATE)
    assert result.decision == "regressed"
    assert result.reasons == ["1 subject dropped by more than known flakiness explains"]
    (subject,) = result.subjects
    assert subject.drop is not None
    assert (subject.drop.verdict, subject.drop.history_scored) == ("beyond", 63)


def test_what_failed_for_months_and_was_mended_is_not_excused_when_it_breaks_again() -> None:
    table = ComparisonTable()
    add(table, "base", "s", "p" * 12)
    add(table, "candidate", "s", "f" * 12)
    table.add_history("s", Parts().question, 0, 200)
    result = compare(table, BASE, CANDIDATE)
    assert (result.decision, result.subjects[0].category) == ("regressed", "regressed")


def test_a_lower_rate_over_many_subjects_is_a_regression() -> None:
    result = compared(*((f"s{number}", "p", "f" if number < 9 else "p") for number in range(30)))
    assert result.decision == "regressed"
    assert result.overall.difference == pytest.approx(-0.3)
    assert result.overall.p == pytest.approx(2 * 0.5**9)
    assert result.overall.test == "mcnemar"
    assert compared(("s", "p", "p")).decision == "none"


def test_a_small_drop_is_none_where_a_larger_one_was_asked_for() -> None:
    subjects = [(f"s{number}", "p", "f" if number < 9 else "p") for number in range(30)]
    assert compared(*subjects, min_effect=0.2).decision == "regressed"
    assert compared(*subjects, min_effect=0.4).decision == "none"
    few = [(f"s{number}", "p", "f" if number < 2 else "p") for number in range(30)]
    assert compared(*few).decision == "undecided"
    assert compared(*few, min_effect=0.1).decision == "none"


def test_all_that_moved_got_worse_but_too_little_ran_to_tell() -> None:
    result = compared(("a", "p", "f"), ("b", "p", "p"))
    assert result.decision == "undecided"
    assert "too few to rule out chance" in result.reasons[0]
    both_ways = compared(("a", "p", "f"), ("b", "f", "p"), ("c", "p", "p"))
    assert both_ways.decision == "none"


def test_errors_and_nothing_in_common_are_not_decided() -> None:
    assert compared(("a", "p", "e"), ("b", "p", "p")).decision == "undecided"
    assert compared(("a", "p", ""), ("b", "", "p")).decision == "undecided"
    assert compared().decision == "undecided"
    # Errors of the base are told; they do not hang over every later candidate.
    base_erred = compared(("a", "e", "p"), ("b", "p", "p"))
    assert base_erred.decision == "none"
    assert any("errors" in note for note in base_erred.notes)


@pytest.mark.parametrize(
    ("side", "decision"),
    [
        ({"status": "running"}, "undecided"),
        ({"partial": "cancelled"}, "undecided"),
        ({"partial": "only, budget"}, "undecided"),
        ({"partial": "only, last-failed"}, "none"),
        ({"replayed": True}, "none"),
    ],
)
def test_a_candidate_that_is_not_whole_says_so(side: dict[str, Any], decision: str) -> None:
    table = ComparisonTable()
    add(table, "base", "s", "p")
    add(table, "candidate", "s", "p")
    result = compare(table, BASE, ComparedSide.model_validate({"id": "c", "eval_id": "e", **side}))
    assert result.decision == decision
    assert result.notes or side.get("status")


class TestAnotherQuestion:
    @pytest.mark.parametrize("part", ["scenario", "case", "persona", "evaluators"])
    def test_is_shown_and_never_compared(self, part: str) -> None:
        table = ComparisonTable()
        add(table, "base", "s", "ppp", parts=Parts()._replace(**{part: "1"}))
        add(table, "candidate", "s", "fff", parts=Parts()._replace(**{part: "2"}))
        result = compare(table, BASE, CANDIDATE)
        assert (result.counts["changed"], result.overall.subjects, result.decision) == (1, 0, "undecided")
        assert [change.what for change in result.subjects[0].changes] == [part]
        assert any("shown as changed" in note for note in result.notes)

    def test_another_agent_is_the_same_question(self) -> None:
        table = ComparisonTable()
        add(table, "base", "s", "p", parts=Parts(connector="1"), answer="x")
        add(table, "candidate", "s", "f", parts=Parts(connector="2"), answer="y")
        (subject,) = compare(table, BASE, CANDIDATE).subjects
        assert subject.category == "regressed"
        assert [change.what for change in subject.changes] == ["answer", "connector"]

    def test_history_of_another_question_explains_nothing(self) -> None:
        table = ComparisonTable()
        add(table, "base", "s", "p", parts=Parts(scenario="1"))
        add(table, "candidate", "s", "f", parts=Parts(scenario="1"))
        table.add_history("s", Parts(scenario="0").question, 6, 10)
        (subject,) = compare(table, BASE, CANDIDATE).subjects
        assert (subject.category, subject.drop and subject.drop.history_scored) == ("regressed", 1)


def test_a_flip_names_what_of_the_environment_concerns_it() -> None:
    environment = [
        Change(what="evaluator code", name="regex", base="1", candidate="2"),
        Change(what="evaluator code", name="mine", base="1", candidate="2"),
        Change(what="simulator model", base="a", candidate="b"),
        Change(what="version", base="1.0", candidate="1.1"),
    ]
    table = ComparisonTable()
    parts = Parts(evaluator_types=frozenset({"regex"}), connector_type="http")
    add(table, "base", "s", "p", parts=parts, answer="same")
    add(table, "candidate", "s", "f", parts=parts, answer="same")
    result = compare(table, BASE, CANDIDATE, changes=environment)
    assert [(one.what, one.name) for one in result.subjects[0].changes] == [
        ("evaluator code", "regex"),
        ("version", None),
    ]
    assert len(result.changes) == 4


def test_measures_are_compared_by_subject_and_corrected_for_their_number() -> None:
    table = ComparisonTable()
    for number in range(20):
        base = [(("latency", "latency"), 100.0 + number), (("evaluator", "regex"), 1.0)]
        slow = [(("latency", "latency"), 150.0 + number % 3), (("evaluator", "regex"), float(number > 9))]
        add(table, "base", f"s{number}", "pp", measures=base)
        add(table, "candidate", f"s{number}", "p", measures=[*slow, (("metric", "new one"), 1.0)])
    measures = {one.name: one for one in compare(table, BASE, CANDIDATE).measures}
    assert set(measures) == {"latency", "regex"}
    latency = measures["latency"]
    assert (latency.base, latency.candidate) == pytest.approx((109.5, 150.95))
    assert latency.difference == pytest.approx(41.45)
    assert latency.adjusted_p is not None
    assert latency.p <= latency.adjusted_p < 0.001
    assert measures["regex"].difference == pytest.approx(-0.5)
    assert measures["regex"].test == "sign-flip"


def test_what_matters_most_is_listed_first_and_unchanged_is_only_counted() -> None:
    result = compared(
        ("same", "p", "p"), ("new", "", "p"), ("better", "f", "p"), ("broken", "e", "e"), ("worse", "p", "f")
    )
    assert [one.category for one in result.subjects] == ["regressed", "errored", "fixed", "new"]
    assert result.counts["unchanged"] == 1
    assert sum(result.counts.values()) == 5


def test_as_json_it_is_camel_case_and_has_no_infinities() -> None:
    table = ComparisonTable()
    add(table, "base", "s", "p", measures=[(("latency", "latency"), 5.0)])
    add(table, "candidate", "s", "p", measures=[(("latency", "latency"), 6.0)])
    result = compare(table, BASE, CANDIDATE)
    (latency,) = result.measures
    assert (latency.low, latency.high) == (None, None)
    sent = result.model_dump(mode="json", by_alias=True)
    assert {"notListed", "pWorse"} <= {*sent, *sent["overall"]}
    assert ComparisonResult.model_validate(sent) == result


def noisy(random: Random, rates: list[float], repetitions: int) -> list[str]:
    return ["".join("p" if random.random() < rate else "f" for _ in range(repetitions)) for rate in rates]


def simulated(seed: int, *, worse: float, subjects: int, repetitions: int, earlier: int) -> ComparisonResult:
    """An agent whose subjects pass at different rates, run twice: as it is, and so much worse."""
    random = Random(seed)
    rates = [random.choice((0.5, 0.8, 0.95, 1.0)) for _ in range(subjects)]
    table = ComparisonTable()
    worsened = [rate * (1 - worse) for rate in rates]
    for number, runs in enumerate(noisy(random, rates, repetitions)):
        add(table, "base", str(number), runs)
    for number, runs in enumerate(noisy(random, worsened, repetitions)):
        add(table, "candidate", str(number), runs)
    for number, runs in enumerate(noisy(random, rates, repetitions * earlier)):
        table.add_history(str(number), Parts().question, runs.count("p"), len(runs))
    return compare(table, BASE, CANDIDATE)


@pytest.mark.parametrize(
    ("subjects", "repetitions", "earlier"), [(40, 1, 0), (30, 5, 0), (30, 5, 5), (12, 3, 20)]
)
def test_the_same_noisy_agent_is_not_blamed_more_often_than_stated(
    subjects: int, repetitions: int, earlier: int
) -> None:
    results = [
        simulated(seed, worse=0, subjects=subjects, repetitions=repetitions, earlier=earlier)
        for seed in range(200)
    ]
    blamed = sum(result.decision == "regressed" for result in results)
    assert blamed <= 0.05 * len(results)


@pytest.mark.parametrize(("subjects", "repetitions", "earlier"), [(40, 5, 0), (30, 5, 5), (12, 10, 20)])
def test_a_worsened_agent_is_flagged(subjects: int, repetitions: int, earlier: int) -> None:
    results = [
        simulated(seed, worse=0.3, subjects=subjects, repetitions=repetitions, earlier=earlier)
        for seed in range(200)
    ]
    flagged = sum(result.decision == "regressed" for result in results)
    assert flagged >= 0.95 * len(results)


def test_subjects_that_fell_by_chance_are_said_to_be_no_regression() -> None:
    result = compared(("a", "p", "f"), ("b", "f", "p"), ("c", "p", "p"), ("d", "p", "p"))
    assert (result.decision, result.counts["regressed"]) == ("none", 1)
    assert any("no more than chance explains, so it is no regression" in note for note in result.notes)
