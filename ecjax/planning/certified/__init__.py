"""Plans with a proof of how far they are from the best: a Lagrangian lower bound and a rounded primal."""

from ecjax.planning.certified.certify import Certificate, Settings, certify
from ecjax.planning.certified.lanes import plan_lanes

__all__ = ["Certificate", "Settings", "certify", "plan_lanes"]
