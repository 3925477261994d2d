"""Adaptive erasure coding at a proxy to a public object store: the TOFEC paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.tofec.formulas import FORMULAS
from ecjax.studies.reproduce.claims.tofec.measured import MEASURED
from ecjax.studies.reproduce.claims.tofec.replays import REPLAYS, STUDIES

PAPER = Paper("tofec", "adaptive erasure codes at a proxy", STUDIES, (*FORMULAS, *MEASURED, *REPLAYS))
