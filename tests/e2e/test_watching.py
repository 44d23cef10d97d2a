"""Watching evals at work: starting one, seeing it finish, reading a run, and a server that goes away."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.e2e.browsing import check_pages, measured_tasks, new_context, watched
from tests.e2e.seeding import QUOTE, seed_large_execution, seed_long_run
from tests.e2e.site import Site
from tests.support.projects import make_project, scripted

# Milliseconds of the processor. By the clock no task may hold a page up for over 200: this leaves room.
LONGEST_TASK = 150
MOST_OF_A_STEP = 34
STORED_RUNS = 100_000
LARGEST_SCRIPT = 300_000


@pytest.fixture
def own_site(tmp_path: Path) -> Iterator[Site]:
    """A site of this test alone; it must be started."""
    own = Site(make_project(tmp_path / "project", [scripted("Greets the guest", "hello until=go-on")]))
    yield own
    own.stop()


def test_an_empty_project_shows_the_three_steps_to_a_first_result(own_site: Site, browser: Browser) -> None:
    own_site.start()
    page = watched(new_context(browser, own_site.url), own_site.url).page
    page.goto("/")
    for step in ("Connect your agent", "Write a scenario", "Run an eval"):
        expect(page.get_by_role("heading", name=step)).to_be_visible()
    page.get_by_role("link", name="Add a connector").click()
    expect(page).to_have_url(f"{own_site.url}/connectors/new")
    page.context.close()


def test_an_eval_is_run_and_watched_until_it_is_done(site: Site, page: Page) -> None:
    page.goto("/evals")
    page.get_by_role("button", name="Run all").click()
    page.get_by_label("Repetitions").fill("3")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("9 of 9 runs done")).to_be_visible()
    expect(page.get_by_label("3 pass, 3 fail, 3 error")).to_be_visible()
    table = page.get_by_role("table", name="Runs")
    expect(table.get_by_role("row")).to_have_count(10)
    page.get_by_text("Fail 3", exact=True).click()
    expect(table.get_by_role("row")).to_have_count(4)
    expect(page).to_have_url(re.compile("show=fail"))
    assert site.get("/api/executions")["items"][0]["trigger"] == "web"


def test_rows_fill_in_while_it_runs(site: Site, project: Path, page: Page) -> None:
    with site.changed("Greets the guest", script=["hello until=go-on", "and until=further"]):
        started = site.post("/api/executions", {"evalId": site.named("evals", "all")["id"]})
    page.goto(f"/executions/{started['id']}")
    row = page.get_by_role("row").filter(has_text="Greets the guest")
    expect(row).to_contain_text("Running")
    turns = row.get_by_role("cell").nth(5)
    expect(turns).to_have_text("0")
    (project.parent / "go-on").touch()
    expect(turns).to_have_text("1")
    expect(row).to_contain_text("Running")
    (project.parent / "further").touch()
    expect(page.get_by_text("3 of 3 runs done")).to_be_visible()
    expect(row).to_contain_text("Pass")


def test_errored_runs_are_retried_and_waiting_ones_cancelled(site: Site, page: Page) -> None:
    done = site.executed()
    page.goto(f"/executions/{done['id']}")
    page.get_by_role("button", name="Retry 1 errored").click()
    expect(page.get_by_text("1 run queued again")).to_be_visible()
    site.finished(done["id"])
    expect(page.get_by_text("3 of 3 runs done")).to_be_visible()
    [broken] = [run for run in site.runs(done["id"]) if run["scenarioName"] == "Breaks down"]
    assert broken["attempt"] == 2

    with site.changed("Greets the guest", script=["hello until=never"]):
        started = site.post("/api/executions", {"evalId": site.named("evals", "all")["id"]})
    page.goto(f"/executions/{started['id']}")
    page.get_by_role("button", name="Cancel").click()
    row = page.get_by_role("row").filter(has_text="Greets the guest")
    expect(row).to_contain_text("Cancelled")


def test_a_run_is_read_with_its_metadata_and_the_keyboard(site: Site, page: Page) -> None:
    done = site.executed()
    page.goto(f"/executions/{done['id']}")
    page.get_by_role("link", name="Greets the guest").click()
    expect(page.get_by_role("heading", name="Greets the guest")).to_be_visible()
    expect(page.get_by_text("echo: how are you")).to_be_visible()
    assertions = page.get_by_role("table", name="Assertions")
    assert [one.inner_text() for one in assertions.get_by_role("columnheader").all()] == [
        "Evaluator",
        "Result",
        "Score",
        "Reason",
    ]
    metrics = page.get_by_role("table", name="Metrics")
    assert [one.inner_text() for one in metrics.get_by_role("columnheader").all()] == [
        "Metric",
        "Value",
        "Reason",
    ]
    assertions.get_by_role("button", name="Details of").first.click()
    expect(assertions.get_by_text('"match": "echo"')).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator('[aria-current="step"]')).to_have_text("Turn 2")
    page.keyboard.press("k")
    expect(page.locator('[aria-current="step"]')).to_have_text("Turn 1")
    page.go_back()
    expect(page.get_by_role("table", name="Runs")).to_be_visible()


def test_a_run_without_evaluator_results_hides_their_sections(site: Site, page: Page) -> None:
    done = site.executed()
    [broken] = [run for run in site.runs(done["id"]) if run["scenarioName"] == "Breaks down"]
    page.goto(f"/runs/{broken['id']}")
    expect(page.get_by_text("Error: fault of the agent")).to_be_visible()
    expect(page.get_by_text("please break")).to_be_visible()
    expect(page.get_by_role("table", name="Assertions")).to_have_count(0)
    expect(page.get_by_role("table", name="Metrics")).to_have_count(0)


def test_a_run_tells_what_was_tried_what_is_missing_and_where_it_broke(site: Site, page: Page) -> None:
    done = site.executed()
    runs = {run["scenarioName"]: run for run in site.runs(done["id"])}
    page.goto(f"/runs/{runs['Greets the guest']['id']}")
    expect(page.get_by_text('ended early: every "eventually" check had held')).to_be_visible()
    usage = page.get_by_role("table", name="Metrics").get_by_role("row", name="token-usage")
    expect(usage.get_by_role("cell", name="missing", exact=True)).to_be_visible()

    def told_more(route: Route) -> None:
        run = route.fetch().json()
        run["output"] |= {"log": "looked up 3 tables", "traceback": 'File "agent.py", line 12, in answer'}
        tries = [{"number": 1, "error": "busy (503)", "waitMs": 2000, "retryAfter": 2}, {"number": 2}]
        run["turns"] = [{"turn": 1, "messageCount": 2, "latencyMs": 300, "evaluatorResults": []}]
        run["turns"][0] |= {"attempts": tries, "firstTokenMs": 80, "usageMissing": "it was empty"}
        run["messages"].append({"role": "assistant", "content": "Hello"})
        route.fulfill(json=run)

    page.route("**/api/runs/*", told_more)
    page.goto(f"/runs/{runs['Breaks down']['id']}")
    expect(page.get_by_text("attempt 1: busy (503); waited 2.0 s, as the agent asked (2 s)")).to_be_visible()
    expect(page.get_by_text("first token after 80 ms")).to_be_visible()
    expect(page.get_by_text("tokens missing")).to_be_visible()
    page.get_by_text("Log", exact=True).click()
    expect(page.get_by_text("looked up 3 tables")).to_be_visible()
    page.get_by_text("Traceback", exact=True).click()
    expect(page.get_by_text('File "agent.py", line 12, in answer')).to_be_visible()


def test_a_server_that_is_killed_is_told_of_and_comes_back(own_site: Site, browser: Browser) -> None:
    own_site.apply()
    own_site.start_process()
    page = watched(new_context(browser, own_site.url), own_site.url).page
    started = own_site.post("/api/executions", {"evalId": own_site.named("evals", "all")["id"]})
    page.goto(f"/executions/{started['id']}")
    row = page.get_by_role("row").filter(has_text="Greets the guest")
    expect(row).to_contain_text("Running")
    own_site.kill()
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    (own_site.config.parent / "go-on").touch()
    own_site.start_process()
    expect(page.get_by_text("The server does not answer")).to_have_count(0)
    expect(page.get_by_text("1 of 1 run done")).to_be_visible(timeout=60_000)
    expect(row).to_contain_text("Pass")
    page.context.close()


@pytest.fixture(scope="module")
def ids(project: Path, site: Site) -> tuple[str, str]:
    """Of a run of 300 messages, and of an execution of 5,000 runs."""
    return seed_long_run(project, 300), seed_large_execution(project, 5000)


def scroll(page: Page, pixels: int, steps: int = 10) -> None:
    """Turn the wheel step by step; each is drawn before the next."""
    for _ in range(steps):
        page.mouse.wheel(0, pixels)
        page.evaluate(
            "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
        )


class TestLargeThings:
    """Three hundred messages and five thousand runs open without holding the page up."""

    def test_they_open(self, ids: tuple[str, str], site: Site, page: Page) -> None:
        self.look_at_both(page, *ids)

    @pytest.mark.soak
    def test_they_open_without_a_long_task(self, ids: tuple[str, str], site: Site, page: Page) -> None:
        with measured_tasks(page) as tasks:
            self.look_at_both(page, *ids)
        assert tasks[0] <= LONGEST_TASK, tasks[:5]

    def look_at_both(self, page: Page, run: str, execution: str) -> None:
        page.goto(f"/runs/{run}")
        expect(page.get_by_text("Question 1:")).to_be_visible()
        scroll(page, 2_000)
        page.goto(f"/executions/{execution}")
        expect(page.get_by_text("5,000 of 5,000 runs done")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="Scenario 0").first).to_be_visible()
        page.get_by_role("table", name="Runs").hover()
        scroll(page, 20_000)
        page.get_by_text("Fail 400", exact=True).click()
        expect(page.get_by_role("table", name="Runs")).to_have_attribute("aria-rowcount", "401")
        page.get_by_role("button", name="Scenario", exact=True).click()
        expect(page).to_have_url(re.compile("sort=name"))

    @pytest.mark.soak
    def test_no_page_is_held_up_with_a_hundred_thousand_runs_stored(
        self, ids: tuple[str, str], project: Path, site: Site, page: Page
    ) -> None:
        run, execution = ids
        others = [seed_large_execution(project, 5000) for _ in range(STORED_RUNS // 5000 - 1)]
        evaluation = site.named("evals", "all")["id"]
        columns = f"/executions/{execution}?columns=%5B%22reference%20given%22%2C%22tool-call-count%22%5D"
        paths = ["/", "/executions", "/runs", columns, f"/runs/{run}", "/scenarios", "/evaluators"]
        paths += [
            "/evaluators/regex",
            f"/evals/{evaluation}",
            f"/compare?base={execution}&candidate={others[0]}",
        ]
        longest: dict[str, list[float]] = {}
        for path in paths:
            with measured_tasks(page) as tasks:
                page.goto(path)
                page.get_by_role("heading", level=1).wait_for()
                expect(page.locator("[aria-busy], .mantine-Skeleton-root")).to_have_count(0)
                page.mouse.move(700, 600)
                scroll(page, 5_000)
            longest[path] = tasks[:3]
        print("", *(f"{path}: {tasks}" for path, tasks in longest.items()), sep="\n")
        assert not {path: tasks for path, tasks in longest.items() if tasks[0] > LONGEST_TASK}

    @pytest.mark.soak
    def test_ten_thousand_rows_scroll_smoothly(self, project: Path, site: Site, page: Page) -> None:
        page.goto(f"/executions/{seed_large_execution(project, 10_000)}")
        expect(page.get_by_text("10,000 of 10,000 runs done")).to_be_visible()
        rows = page.get_by_role("table", name="Runs")
        expect(rows).to_have_attribute("aria-rowcount", "10001")
        rows.hover()
        rounds: list[list[float]] = []
        for _ in range(6):
            with measured_tasks(page) as tasks:
                scroll(page, 6_000)
            rounds.append(tasks)
        # Others slow even a thread that has a processor: the quickest round tells what the page needs.
        step = min(sum(tasks) for tasks in rounds) / 10
        longest = [max(tasks) for tasks in rounds]
        print(f"\nscrolling 10,000 rows: {step:.0f} ms a step, longest task of each round {longest}")
        assert step <= MOST_OF_A_STEP
        assert max(longest) <= LONGEST_TASK, longest

    def test_evidence_is_marked_and_failures_are_found(
        self, ids: tuple[str, str], site: Site, page: Page
    ) -> None:
        page.goto(f"/runs/{ids[0]}")
        plain = QUOTE.replace("**", "")
        marks = page.locator("section[aria-label=Transcript] mark")
        expect(marks.first).to_be_visible()
        assert marks.first.inner_text() in plain
        expect(page.get_by_text("not found in the transcript").first).to_be_visible()
        page.keyboard.press("n")
        expect(page.locator('[aria-current="step"]')).to_have_text("Turn 37")
        expect(page.get_by_text("Question 37:")).to_be_in_viewport()
        page.keyboard.press("n")
        expect(page.get_by_text("Question 75:")).to_be_in_viewport()


def test_the_first_load_is_small(site: Site, page: Page) -> None:
    site.executed()
    page.goto("/evals")
    expect(page.get_by_role("table", name="Evals")).to_be_visible()
    sent = page.evaluate(
        """() => performance.getEntriesByType('resource')
          .filter((one) => one.name.endsWith('.js'))
          .reduce((sum, one) => sum + one.encodedBodySize, 0)"""
    )
    assert 0 < sent < LARGEST_SCRIPT, sent


def test_pages_are_accessible_and_fit_narrow_windows(site: Site, page: Page) -> None:
    done = site.executed(repetitions=2)
    runs = site.runs(done["id"])
    # Executions are looked at with what real runs left behind, a run that passed with its turns: elsewhere.
    broken = [f"/runs/{run['id']}" for run in runs[::2] if run["result"]["outcome"] != "pass"]
    assert len(broken) == 2
    check_pages(page, ["/evals", "/evals/new", "/executions", "/nowhere", *broken])
