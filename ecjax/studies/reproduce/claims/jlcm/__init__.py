"""Joint latency and cost optimization for erasure-coded data center storage: the JLCM paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.jlcm.formulas import FORMULAS

PAPER = Paper("jlcm", "joint latency and cost minimisation", (), FORMULAS)
