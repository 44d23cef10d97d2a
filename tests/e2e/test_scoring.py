"""Scoring in the browser: a dataset uploaded, a plan begun and mended, the results read and compared."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Page, expect
from tests.e2e.browsing import check_pages
from tests.e2e.editing import add_evaluator, choose, field
from tests.e2e.site import Site
from tests.support.scoring_files import rows

PLAN = """\
# what must be said
criteria:
  - name: long
    scale: binary
evaluators:
  - type: rule-based
    config:
      rules:
        - criterionName: long
          config:
            type: length
            min: 3
thresholds:
  long: 0.9
"""
# As the form writes it: without comments, stricter, and with a pattern.
PLAN_IN_BOTH = (
    PLAN.partition("\n")[2]
    .replace("min: 3", "min: 99")
    .replace("thresholds:", "  - type: regex\n    config:\n      pattern: answer\nthresholds:")
)
# The server reads a rule whose check is written beside its other fields; the form has no fields for it.
LOOSE_PLAN = "evaluators:\n  - type: rule-based\n    config: {rules: [{type: length, min: 3}]}\n"
LINES = "".join(json.dumps(one) + "\n" for one in rows(6))


def _yaml(page: Page) -> str:
    return page.get_by_label("YAML of the plan").input_value()


def test_a_dataset_is_uploaded_scored_by_a_written_plan_and_compared(
    site: Site, page: Page, project: Path
) -> None:
    (project.parent / "plan.yaml").write_text(PLAN)
    page.goto("/scoring")
    expect(page.get_by_role("heading", name="Nothing scored yet")).to_be_visible()
    page.get_by_role("link", name="Score a dataset").click()
    start = page.get_by_role("button", name="Start scoring")
    expect(start).to_be_disabled()
    page.locator("input[type=file]").set_input_files(
        {"name": "answers.jsonl", "mimeType": "application/jsonl", "buffer": LINES.encode()}
    )
    expect(page.get_by_text("answers.jsonl")).to_be_visible()

    # Opening a plan changes nothing of it: it is scored by the file.
    choose(page, "Plan of the project", "plan.yaml (just now)")
    expect(page.get_by_text("Can be used")).to_be_visible()
    expect(field(page, "long")).to_have_value("0.9")
    assert _yaml(page) == PLAN
    with page.expect_request("**/api/scoring/jobs") as started:
        start.click()
    assert started.value.headers["idempotency-key"]
    expect(page.get_by_role("heading", name="answers.jsonl")).to_be_visible()
    expect(page.get_by_text("Met", exact=True)).to_be_visible()
    expect(page.get_by_role("table", name="Criteria and metrics")).to_contain_text("long")
    expect(page.get_by_role("img", name="long in ten steps")).to_be_visible()
    expect(page.get_by_role("row", name="r0")).to_contain_text("8 characters")

    # The same records under a stricter plan, changed in the form and in the text.
    page.get_by_role("link", name="Scoring").last.click()
    page.get_by_role("link", name="Score a dataset").click()
    page.locator("input[type=file]").set_input_files(
        {"name": "answers.jsonl", "mimeType": "application/jsonl", "buffer": LINES.encode()}
    )
    choose(page, "Plan of the project", "plan.yaml (just now)")
    expect(page.get_by_text("Can be used")).to_be_visible()
    text = page.get_by_label("YAML of the plan")
    text.fill(PLAN.replace("rule-based", "rule-bassed"))
    expect(page.get_by_role("button", name="line 6")).to_be_visible()
    expect(page.get_by_text("Mend the plan first.")).to_be_visible()
    text.fill(LOOSE_PLAN)
    expect(page.get_by_text("Can be used")).to_be_visible()
    loose = field(page.get_by_role("region", name="Evaluator 1: Rules"), "Settings")
    assert json.loads(loose.input_value()) == {"rules": [{"type": "length", "min": 3}]}
    text.fill(PLAN.replace("min: 3", "min: 99"))
    page.get_by_role("button", name="Edit as a form").click()
    expect(page.get_by_text("Can be used")).to_be_visible()
    field(add_evaluator(page, "Regex Match"), "Pattern").fill("answer")
    expect(text).to_have_value(PLAN_IN_BOTH)
    expect(page.get_by_text("The comments in the YAML are gone").first).to_be_visible()
    expect(page.get_by_text("Can be used")).to_be_visible()
    start.click()
    expect(page.get_by_text("Missed", exact=True)).to_be_visible()
    expect(page.get_by_text('"long" must be at least 0.9; it is 0.000.')).to_be_visible()

    page.get_by_role("combobox", name="Results to compare with").click()
    page.get_by_role("option").first.click()
    page.get_by_role("link", name="Compare").last.click()
    expect(page.get_by_role("tab", name="Changed 6", exact=True)).to_be_visible()
    page.get_by_role("table", name="Subjects").get_by_role("link", name="r0").click()
    expect(page.get_by_role("region", name="Base")).to_contain_text("Pass")
    expect(page.get_by_role("region", name="Candidate")).to_contain_text("fewer than 99")
    first, second = (one["results"] for one in site.get("/api/scoring/jobs"))
    check_pages(page, ["/scoring", "/scoring/new", f"/compare?base={second}&candidate={first}"])
