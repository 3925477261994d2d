"""Caching chunks of erasure-coded items at the edge: the SampleX paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.samplex.formulas import FORMULAS
from ecjax.studies.reproduce.claims.samplex.theorems import THEOREMS

PAPER = Paper("samplex", "caching chunks by sampled partitions", (), (*FORMULAS, *THEOREMS))
