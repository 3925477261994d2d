"""Joint latency and cost optimization for erasure-coded data center storage: the JLCM paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.jlcm.fig7 import FIG7
from ecjax.studies.reproduce.claims.jlcm.figures import FIGURES
from ecjax.studies.reproduce.claims.jlcm.formulas import FORMULAS
from ecjax.studies.reproduce.claims.jlcm.studies import STUDIES
from ecjax.studies.reproduce.claims.jlcm.theorems import THEOREMS

PAPER = Paper("jlcm", "joint latency and cost minimisation", STUDIES, (*THEOREMS, *FORMULAS, *FIG7, *FIGURES))
