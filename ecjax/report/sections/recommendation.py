"""What the study recommends, how its runs ended, and what of them to doubt."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ecjax.report.parts import Section
from ecjax.report.results import Results
from ecjax.units import count_text

_DOUBTS = {
    "unstable": "the load of a node is 1 or more: its queue grows without end",
    "not_converged": "stopped before it converged: the value is that of its last step",
    "not_stationary": "has not settled: a longer replay may differ",
    "infeasible": "no plan meets what was required",
    "failed": "has no result",
}
_GAP = 0.05
_OF_A_RUN = (
    "analyze",
    "optimize",
    "replay",
    "adapt",
    "cache",
    "ceph",
    "codes",
)  # jobs with charts of one run


def section(results: Results) -> Section | None:
    """Recommendation and state of the runs."""
    rows = results.runs.to_pylist()
    counts = Counter(row["status"] for row in rows)
    sentences = []
    if results.recommendation is not None:
        sentences.append(results.recommendation.sentence)
        sentences += results.recommendation.remarks
    else:
        sentences.append("This study recommends nothing.")
    listed = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    sentences.append(
        f"ecjax {results.job}: {len(rows)} run{'s' * (len(rows) != 1)}{f' ({listed})' if listed else ''}."
    )
    if len(rows) > 1 and results.run is not None and results.job in _OF_A_RUN:
        which = (
            "the recommended one" if results.recommendation and results.recommendation.run_id else "the first"
        )
        sentences.append(f"Charts of a single run are about run {results.run['run_id']}, {which}.")
    warnings = ["This study is empty: no run was finished."] if not rows else []
    warnings += [
        f"{counts[status]} of {count_text(len(rows), 'run')} {status}: {why}."
        for status, why in _DOUBTS.items()
        if counts[status]
    ]
    warnings += [
        f"{count}x: {text}" for text, count in Counter(row.get("error") for row in rows).items() if text
    ]
    wide = [row for row in rows if (row.get("gap") or 0) > _GAP]
    if wide:
        warnings.append(
            f"In {len(wide)} of {count_text(len(rows), 'run')}{_named(wide)} the gap to the lower bound is above "
            f"{_GAP:.0%}: better "
            "ones may exist."
        )
    for name in ("notices", "trace_remarks", "notes"):
        warnings += dict.fromkeys(text for row in rows for text in _sentences(row.get(name)))
    return Section("Recommendation", sentences, warnings=warnings)


def _sentences(text: str | None) -> list[str]:
    """Sentences of a column that has one per line, or all of them as a JSON list."""
    try:
        listed = json.loads(text or "[]")
    except ValueError:
        listed = None
    return listed if isinstance(listed, list) else (text or "").splitlines()


def _named(rows: Sequence[dict[str, Any]]) -> str:
    """Methods or schedulers of runs, in brackets."""
    names = sorted({str(row[name]) for row in rows for name in ("method", "scheduler") if row.get(name)})
    return f" ({', '.join(names)})" if names else ""
