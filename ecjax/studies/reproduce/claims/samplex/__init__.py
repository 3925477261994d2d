"""Caching chunks of erasure-coded items at the edge: the SampleX paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.samplex.decisions import DECISIONS
from ecjax.studies.reproduce.claims.samplex.formulas import FORMULAS
from ecjax.studies.reproduce.claims.samplex.plans import PLANS
from ecjax.studies.reproduce.claims.samplex.replays import REPLAYS
from ecjax.studies.reproduce.claims.samplex.studies import STUDIES
from ecjax.studies.reproduce.claims.samplex.theorems import THEOREMS

PAPER = Paper(
    "samplex",
    "caching chunks by sampled partitions",
    STUDIES,
    (*FORMULAS, *THEOREMS, *PLANS, *REPLAYS, *DECISIONS),
)
