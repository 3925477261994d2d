"""The table of cases: what is measured, at which sizes, and within what it should stay.

Light on purpose: the names of the cases are read before anything heavy loads. ``run`` measures what stands here.
"""

from ecjax.studies.bench.cases import caches, engine, plans, replays

CASES = {case.name: case for case in (*plans.CASES, *replays.CASES, *caches.CASES, *engine.CASES)}
