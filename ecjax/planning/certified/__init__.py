"""Plans with a proof of how far they are from the best: a Lagrangian lower bound and a rounded primal."""

from ecjax.planning.certified.certify import Certificate, Settings, certify
from ecjax.planning.certified.lanes import plan_lanes
from ecjax.planning.certified.nearby import NEAR, is_convex, nearby_bound

__all__ = ["NEAR", "Certificate", "Settings", "certify", "is_convex", "nearby_bound", "plan_lanes"]
