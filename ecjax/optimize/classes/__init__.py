"""Plans for service classes whose reads have queues of their own: priority (JLOP) and weighted (JLWO)."""

from ecjax.optimize.classes.alternate import ClassPlan, Settings, Step, plan_classes
from ecjax.optimize.classes.certificate import Gaps, scheduling_gap
from ecjax.optimize.classes.model import ClassModel, class_model
from ecjax.optimize.classes.search import search_start
from ecjax.optimize.classes.start import start_plan

__all__ = [
    "ClassModel",
    "ClassPlan",
    "Gaps",
    "Settings",
    "Step",
    "class_model",
    "plan_classes",
    "scheduling_gap",
    "search_start",
    "start_plan",
]
