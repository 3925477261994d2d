"""Differentiated latency in erasure-coded storage with service classes: priority and weighted queues (JLOP, JLWO)."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.differentiated.figures import FIGURES
from ecjax.studies.reproduce.claims.differentiated.formulas import FORMULAS
from ecjax.studies.reproduce.claims.differentiated.studies import STUDIES
from ecjax.studies.reproduce.claims.differentiated.theorems import THEOREMS

PAPER = Paper(
    "differentiated", "differentiated latency of service classes", STUDIES, (*THEOREMS, *FORMULAS, *FIGURES)
)
