"""Formulas of the differentiated-latency paper, which need no study."""

from ecjax.studies.reproduce.claim import Claim, Finding
from ecjax.studies.reproduce.claims.judging import refuted
from ecjax.studies.reproduce.evidence import Evidence

_SERVICE_S, _NODES, _CHUNKS = 22.0, 12, 4


def _stable(evidence: Evidence) -> Finding:
    load = 0.28 * _CHUNKS * _SERVICE_S / _NODES
    halves = [0.14 * _CHUNKS * seconds / _NODES for seconds in (35, 60)]
    return refuted(
        load >= 1,
        load,
        f"0.28 reads/s of 4 chunks of 22 s on 12 nodes are a load of {load:.2f}; half of them at the "
        f"35 and 60 s of the weighted classes are {halves[0]:.2f} and {halves[1]:.2f}: experiments keep ratios of rates and scale them to a stated load",
    )


FORMULAS = (
    Claim(
        "differentiated-rates-stable",
        "Sec. V-C",
        "The measured systems are stable at the printed rates and service times.",
        _stable,
        paper_value="load < 1",
        quantity="load of a node",
    ),
)
