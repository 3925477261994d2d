"""Rows of the result datasets of ``ecjax reproduce``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ecjax.status import Status
from ecjax.studies.reproduce.claim import Judged, Verdict
from ecjax.studies.reproduce.tables import TABLES
from ecjax.studies.spine.run import Run

COUNTS = {
    Verdict.HOLDS: "holds",
    Verdict.IN_SHAPE: "holds_in_shape",
    Verdict.FAILS: "does_not_hold",
    Verdict.TESTBED: "testbed",
    Verdict.NOT_JUDGED: "not_judged",
}


def run_row(paper: str, size: str, claims: Sequence[Judged], seconds: float) -> dict[str, Any]:
    """The row of ``runs`` of a paper: judging the same claims at the same size again is the same run."""
    parameters = {"paper": paper, "size": size, "claims": [item.claim.id for item in claims]}
    run = Run(TABLES.job, parameters, "", None, {"paper": paper, "size": size}, dtype="")
    counts = Counter(item.finding.verdict for item in claims)
    errors = [item.finding.why for item in claims if item.finding.verdict is Verdict.NOT_JUDGED]
    return run.row() | {
        "status": str(Status.FAILED if errors else Status.OK),
        "error": "; ".join(dict.fromkeys(errors)) or None,
        "solve_s": seconds,
        "claim_count": len(claims),
        **{column: counts[verdict] for verdict, column in COUNTS.items()},
    }


def claims_table(run_id: str, paper: str, size: str, claims: Sequence[Judged]) -> pa.Table:
    """The rows of ``claims`` of a paper."""
    return pa.Table.from_pylist(
        [
            {
                "run_id": run_id,
                "id": item.claim.id,
                "paper": paper,
                "size": size,
                "where": item.claim.where,
                "claim": item.claim.text,
                "paper_value": item.claim.paper_value or None,
                "quantity": item.claim.quantity or None,
                "ours": item.finding.ours,
                "ours_low": item.finding.low,
                "ours_high": item.finding.high,
                "verdict": str(item.finding.verdict),
                "why": item.finding.why or None,
                "command": item.command,
            }
            for item in claims
        ]
    )
