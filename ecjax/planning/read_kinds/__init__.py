"""Small reads from one data chunk, or decoded from k others: shares, spread and bounds for a placement."""

from ecjax.planning.read_kinds.model import KindModel, SmallReads
from ecjax.planning.read_kinds.spread import KindPlan, plan_kinds

__all__ = ["KindModel", "KindPlan", "SmallReads", "plan_kinds"]
