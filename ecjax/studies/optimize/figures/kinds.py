"""Figures of ``ecjax optimize``, drawn from its result tables only."""

import pandas as pd

from ecjax.plotting.method_names import BY_CLASS
from ecjax.plotting.saving import Drawing, Kind
from ecjax.studies.optimize.figures import plans
from ecjax.studies.optimize.figures.classes import class_convergence, class_latency
from ecjax.studies.optimize.figures.scenarios import scenarios
from ecjax.studies.optimize.figures.tradeoff import tradeoff


def _planned(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["objective"].notna()]


def _fcfs(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[~runs["method"].isin(BY_CLASS)]


def _by_class(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["method"].isin(BY_CLASS)]


KINDS = {
    "tradeoff": Kind(tradeoff),
    "convergence": Kind(plans.convergence, datasets=("history",), about=_fcfs),
    "methods": Kind(plans.methods, "several methods at a theta (method=certified,published)"),
    "classes": Kind(plans.classes, datasets=("file_plans",)),
    "sizes": Kind(plans.sizes, "runs that differ in size_scale"),
    "rates": Kind(plans.rates, "runs that differ in rate_scale"),
    "code_lengths": Kind(plans.code_lengths, datasets=("file_plans",)),
    "gap": Kind(plans.gap, about=_fcfs),
    "scenarios": Kind(scenarios, datasets=("scenarios",), about=_fcfs),
    "class_latency": Kind(class_latency, datasets=("class_plans",), about=_by_class),
    "class_convergence": Kind(class_convergence, datasets=("history",), about=_by_class),
}

draw = Drawing(KINDS, _planned)
