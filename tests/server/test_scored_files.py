"""``/api/scoring``: results of ``evalstudio score`` are found, opened and compared; nothing outside is."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.api_server import serving
from tests.support.projects import apply_project, make_project, scripted
from tests.support.scoring_files import PLAN, rows

from evalstudio.scoring.job import ScoringJob, score_dataset


def _scored(folder: Path, name: str, answers: str) -> None:
    (folder / "plan.json").write_text(json.dumps(PLAN))
    records = [{**one, "response": answers} for one in rows(4)]
    (folder / f"{name}.data.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    score_dataset(
        ScoringJob(folder / f"{name}.data.jsonl", folder / "plan.json", output=folder / f"{name}.jsonl")
    )


async def test_results_of_score_are_opened_and_compared(tmp_path: Path) -> None:
    config = make_project(tmp_path / "project", [scripted("s", "hi")])
    apply_project(config)
    folder = config.parent
    _scored(folder, "before", "answer 1")
    _scored(folder, "after", "no")
    (tmp_path / "outside.jsonl").write_text("{}\n")
    (folder / "other.jsonl").write_text('{"no": "result"}\n')
    async with serving(config) as api:
        found = await api.found("/api/scoring/files")
        assert {one["path"] for one in found} == {"before.jsonl", "after.jsonl"}
        opened = await api.found("/api/scoring/results?path=after.jsonl")
        assert opened["summary"]["outcomes"]["fail"] == 4
        close = opened["summary"]["criteria"]["close"]
        assert (close["n"], close["coverage"], len(close["histogram"]), len(close["interval"])) == (
            4,
            1,
            10,
            2,
        )
        assert [one["recordId"] for one in opened["records"]] == ["r0", "r1", "r2", "r3"]
        assert {one["reasons"][0]["reason"] for one in opened["records"]} == {"2 characters, fewer than 3"}
        passed = await api.found("/api/scoring/results?path=after.jsonl&outcome=pass")
        assert (passed["records"], passed["moreRecords"], passed["summary"]["records"]) == ([], 0, 4)

        compared = await api.found("/api/scoring/compare?base=before.jsonl&candidate=after.jsonl")
        assert (compared["base"]["id"], compared["counts"]["regressed"]) == ("before.jsonl", 4)
        for path in ("../outside.jsonl", str(tmp_path / "outside.jsonl"), "missing.jsonl", "other.jsonl"):
            answer = await api("GET", f"/api/scoring/results?path={path}")
            assert answer.status in (400, 422), path
