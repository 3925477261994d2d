"""What becomes of the claims at size=small: a verdict that changes fails."""

import pytest

from ecjax.studies.reproduce.claim import Verdict
from ecjax.studies.reproduce.claims import paper
from ecjax.studies.reproduce.evidence import Evidence

# claims that do more or less than hold
EXPECTED = {
    "tofec": {
        Verdict.TESTBED: {"fig4-threads-alike", "correlation"},
        Verdict.IN_SHAPE: {
            *("fit-trimmed", "fig5-p99-cuts", "total-delay-layouts", "fig1-high-code-capacity"),
            *("fixed-k-envelope-loss", "fig10-adaptive-recovers"),
        },
        Verdict.FAILS: {
            *("fig5-layouts-alike-to-p99", "cap-negligible-gain", "light-medians"),
            *("greedy-equals-tofec-mean", "envelope", "p90-p99-best-static"),
        },
    },
    "dtarget": {
        Verdict.TESTBED: {"fig5-cdfs"},
        Verdict.IN_SHAPE: {
            *("first", "fig3a-dtarget", "fig3a-width-trend", "sec6-without-slf", "fig3b-same-sources"),
            *("fig3c-slf-values", "fig4a-n-trend", "fig4a-n4", "table1", "fig4b-k-trend", "fig5a-loss"),
            "fig5c-random-loss",
        },
        Verdict.FAILS: {
            *("alg2-order", "abstract-ratios", "fig4b-20-percent", "fig3a-others", "fig3a-pfabric-below-tcp"),
            "fig3a-barrat-above-tcp",
        },
    },
    "samplex": {
        Verdict.TESTBED: {"tab2-times", "fig5-ms", "tab3-times"},
        Verdict.IN_SHAPE: {
            *("fig4-periodic", "fig4-front-better", "fig5-rands-loss", "offline-loss", "fig7-share-below"),
            *("fig8-offline-S", "fig8-near-optimal", "fig8-online-S", "hit-ratio"),
            *("fig11-capacity", "fig12-K", "fig13-replicas", "fig14-items"),
            *(
                "tab3-order",
                "tab5-online-small",
                "fig9b-faster",
                "fig9c-tail",
                "fig10-throughput",
                "iterations",
                "tab6-speed",
            ),
        },
        Verdict.FAILS: {
            *("chi-bound", "tab4-factorial", "alg1-uniform", "eq16-edc", "online-ratio"),
            *("online-never-worse", "fig5-rands-best"),
            *("tab5-offline-large", "tab5-agar"),
        },
    },
}
COUNTS = {"tofec": 34, "dtarget": 28, "samplex": 45}  # claims that are judged


def expected(name, claim):
    short = claim.removeprefix(f"{name}-")
    return next((verdict for verdict, ids in EXPECTED[name].items() if short in ids), Verdict.HOLDS)


@pytest.mark.parametrize("name", EXPECTED)
def test_all_claims_are_there(name):
    ids = {claim.id.removeprefix(f"{name}-") for claim in paper(name).claims}
    assert len(ids) == COUNTS[name]
    assert set().union(*EXPECTED[name].values()) <= ids


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts_that_need_no_study(name):
    evidence = Evidence("small", {})
    claims = [claim for claim in paper(name).claims if not claim.studies and not claim.timed]
    found = {claim.id: claim.rule(evidence).verdict for claim in claims}
    assert found == {claim: expected(name, claim) for claim in found}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts(name, reproduced):
    code, claims = reproduced(name)
    assert code == 0
    found = claims.set_index("id")["verdict"].to_dict()
    timed = {claim.id for claim in paper(name).claims if claim.timed}
    assert {found[claim] for claim in timed} <= {Verdict.HOLDS, Verdict.IN_SHAPE, Verdict.FAILS}
    untimed = set(found) - timed
    assert {claim: found[claim] for claim in untimed} == {claim: expected(name, claim) for claim in untimed}
