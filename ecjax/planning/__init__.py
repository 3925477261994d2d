"""Joint latency and cost optimisation: the projection, the descent driver, JLCM and its baselines, batches."""

from ecjax.planning.batch import (
    METHODS,
    STARTS,
    BatchSettings,
    Lanes,
    Plans,
    lanes_per_batch,
    settings,
    solve,
)
from ecjax.planning.certified import Settings as Certified
from ecjax.planning.descent import Descent, Stopping, descend
from ecjax.planning.jlcm import Jlcm, Solution, published
from ecjax.planning.problem import Problem, evaluate, node_work, of_files, prepare, scaled
from ecjax.planning.projection import project_hypersimplex

__all__ = [
    "METHODS",
    "STARTS",
    "BatchSettings",
    "Certified",
    "Descent",
    "Jlcm",
    "Lanes",
    "Plans",
    "Problem",
    "Solution",
    "Stopping",
    "descend",
    "evaluate",
    "lanes_per_batch",
    "node_work",
    "of_files",
    "prepare",
    "project_hypersimplex",
    "published",
    "scaled",
    "settings",
    "solve",
]
