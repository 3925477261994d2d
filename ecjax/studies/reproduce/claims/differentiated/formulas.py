"""Formulas of the differentiated-latency paper, which need no study."""

from ecjax.studies.reproduce.claim import Claim, Finding, Kind
from ecjax.studies.reproduce.claims.judging import refuted, testbed
from ecjax.studies.reproduce.evidence import Evidence

_SERVICE_S, _NODES, _CHUNKS = 22.0, 12, 4


def _stable(evidence: Evidence) -> Finding:
    load = 0.28 * _CHUNKS * _SERVICE_S / _NODES
    halves = [0.14 * _CHUNKS * seconds / _NODES for seconds in (35, 60)]
    return refuted(
        load >= 1,
        load,
        f"0.28 reads/s of 4 chunks of 22 s on 12 nodes are a load of {load:.2f}; half "
        f"of them at the 35 and 60 s of the weighted classes are {halves[0]:.2f} and {halves[1]:.2f}: "
        "experiments keep ratios of rates and scale them to a stated load",
    )


def _seconds(evidence: Evidence) -> Finding:
    return testbed(
        _SERVICE_S,
        "seconds of the authors' deployment, whose law by node is not printed: their 22 s are an "
        "input of the claims on "
        "weights",
    )


FORMULAS = (
    Claim(
        "differentiated-fig7-seconds",
        "Fig. 7",
        "Mean chunk service: 22 s for both priority classes, 35 and 60 s with weights 0.6 and 0.4.",
        _seconds,
        paper_value="22, 22, 35, 60 s",
        quantity="s at full bandwidth",
        kind=Kind.TESTBED,
    ),
    Claim(
        "differentiated-rates-stable",
        "Sec. V-C",
        "The measured systems are stable at the printed rates and service times.",
        _stable,
        paper_value="load < 1",
        quantity="load of a node",
    ),
)
