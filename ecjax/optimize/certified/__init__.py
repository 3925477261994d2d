"""Plans with a proof of how far they are from the best: a Lagrangian lower bound and a rounded primal."""

from ecjax.optimize.certified.certify import Certificate, Settings, certify
from ecjax.optimize.certified.lanes import plan_lanes

__all__ = ["Certificate", "Settings", "certify", "plan_lanes"]
