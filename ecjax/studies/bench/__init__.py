"""``ecjax bench``: what ecjax takes beside what else could do the same, as a table with device and versions.

``python -m ecjax.studies.bench [CASE ...]`` runs it without Hydra.
"""

from ecjax.studies.bench.study import bench

__all__ = ["bench"]
