"""Joint latency and cost optimization for erasure-coded data center storage: the JLCM paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.jlcm.baselines import BASELINES
from ecjax.studies.reproduce.claims.jlcm.formulas import FORMULAS
from ecjax.studies.reproduce.claims.jlcm.studies import STUDIES

PAPER = Paper(
    "jlcm",
    "joint latency and cost minimisation",
    STUDIES,
    (*FORMULAS, *BASELINES),
)
