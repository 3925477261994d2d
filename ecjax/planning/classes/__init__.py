"""Plans for service classes whose reads have queues of their own: priority (JLOP) and weighted (JLWO)."""

from ecjax.planning.classes.alternate import ClassPlan, Settings, Step, plan_classes
from ecjax.planning.classes.certificate import Gaps, scheduling_gap
from ecjax.planning.classes.model import ClassModel, class_model
from ecjax.planning.classes.search import search_start
from ecjax.planning.classes.start import start_plan

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
