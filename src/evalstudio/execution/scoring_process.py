"""A process that scores one dataset, told of by lines of JSON on its output. It ends with its parent.

Scoring takes the processor for minutes: in the server's own process it would hold up every answer.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import traceback
from time import monotonic
from typing import IO, Any

import orjson

from ..base.problems import InvalidInput
from ..reporting.recorded import dataset_standing
from ..scoring.datasets import BadRecord
from ..scoring.job import score_dataset
from ..scoring.plan import ScoringJob
from ..scoring.summary import DatasetSummary

_TELL_SECONDS = 0.2
_MOST_PROBLEMS = 20
_LONGEST_PROBLEM = 1_000


def serve() -> None:
    """Read a job, score it, and tell how far it is and what came of it."""
    job: ScoringJob = pickle.load(sys.stdin.buffer)
    out = os.fdopen(os.dup(1), "wb")
    # What a plugin prints must not get between the lines.
    os.dup2(2, 1)
    # The parent keeps the input open for as long as it lives.
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(1)), daemon=True).start()
    tell(out, score(job, out))
    os._exit(0)


def score(job: ScoringJob, out: IO[bytes]) -> dict[str, Any]:
    """What came of a job: ``done`` with its standing, or ``failed`` with the problems."""
    told = 0.0

    def progress(summary: DatasetSummary, share: float) -> None:
        nonlocal told
        if monotonic() - told >= _TELL_SECONDS:
            told = monotonic()
            tell(out, {"records": summary.records, "bad": summary.bad, "share": share})

    try:
        summary, plan = score_dataset(job, progress)
    except BadRecord as error:
        return _failed(f"{error}. Mend it, or let unreadable records be counted and left out.")
    except InvalidInput as error:
        return _failed(*map(str, error.problems))
    except OSError as error:
        return _failed(f"{error.filename or job.output}: {error.strerror}")
    except Exception as error:
        traceback.print_exc()
        return _failed(f"Scoring broke off ({type(error).__name__}: {error}); log.txt beside it has more.")
    if summary.bad == summary.read:
        return _failed(f"{job.dataset}: not one of its {summary.bad:,} records could be read")
    standing, remarks = dataset_standing(summary, plan)
    left_out = [f"line {line}: {reason}"[:_LONGEST_PROBLEM] for line, reason in summary.left_out]
    return {
        "status": "done",
        "records": summary.records,
        "bad": summary.bad,
        "share": 1.0,
        "standing": standing,
        "remarks": remarks,
        "leftOut": left_out[:_MOST_PROBLEMS],
    }


def _failed(*problems: str) -> dict[str, Any]:
    return {"status": "failed", "problems": [one[:_LONGEST_PROBLEM] for one in problems[:_MOST_PROBLEMS]]}


def tell(out: IO[bytes], message: dict[str, Any]) -> None:
    out.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))
    out.flush()
