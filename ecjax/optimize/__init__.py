"""Joint latency and cost optimisation: the projection, the descent driver, JLCM and its baselines, batches."""

from ecjax.optimize.batch import (
    METHODS,
    STARTS,
    BatchSettings,
    Lanes,
    Plans,
    lanes_per_batch,
    settings,
    solve,
)
from ecjax.optimize.certified import Settings as Certified
from ecjax.optimize.descent import Descent, Stopping, descend
from ecjax.optimize.jlcm import Jlcm, Solution, published
from ecjax.optimize.problem import Problem, evaluate, node_work, of_files, prepare, scaled
from ecjax.optimize.projection import project_hypersimplex

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
