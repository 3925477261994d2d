"""What rules make of the tables of studies, where those are made by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd
import pytest

from ecjax.studies.reproduce.claim import Finding, Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.evidence import Evidence, Made


@dataclass(frozen=True)
class _ByHand(Made):
    """Runs and datasets that no study made."""

    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def dataset(self, name: str) -> pd.DataFrame:
        return self.tables[name]


def _made(runs: list[dict], **tables: list[dict]) -> Made:
    return _ByHand("", pd.DataFrame(runs), {name: pd.DataFrame(rows) for name, rows in tables.items()})


def _found(claim: str, **studies: Made) -> Finding:
    rules = {each.id: each.rule for each in paper(claim.partition("-")[0]).claims}
    return rules[claim](Evidence("small", studies))


def _fig4a(gains: list[float]) -> Made:
    """TCP takes twice as long as D-Target at n = 4, and so much longer at n = 18, a number for each seed."""
    times = {("fair", "random"): lambda n, gain: 2.0 + gain * (n == 18), ("dtarget", "smallest_load"): lambda *_: 1.0}
    return _made(
        [
            {"scheduler": scheduler, "sources": sources, "seed": seed, "n": n, "mean_s": time(n, gain)}
            for (scheduler, sources), time in times.items()
            for seed, gain in enumerate(gains)
            for n in (4, 18)
        ]
    )


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [([0.3] * 99 + [-0.1], Verdict.IN_SHAPE), ([0.1, -0.1] * 50, Verdict.FAILS), ([-0.3] * 3, Verdict.FAILS)],
)
def test_growth_with_n_is_that_of_the_mean_over_seeds(gains, verdict):
    """One seed of a hundred that says otherwise does not refute a difference of far more than two standard errors."""
    finding = _found("dtarget-fig4a-n-trend", fig4a=_fig4a(gains))
    assert finding.verdict == verdict
    assert f"{sum(gain > 0 for gain in gains)} of {len(gains)}" in finding.why
