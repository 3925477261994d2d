"""Sources and order of the transfers of reads: the D-Target paper."""

from ecjax.studies.reproduce.claim import Paper
from ecjax.studies.reproduce.claims.dtarget.formulas import FORMULAS
from ecjax.studies.reproduce.claims.dtarget.replays import REPLAYS, STUDIES

PAPER = Paper("dtarget", "scheduling the transfers of erasure-coded reads", STUDIES, (*FORMULAS, *REPLAYS))
