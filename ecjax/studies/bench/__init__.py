"""``ecjax bench``: what ecjax takes beside what else could do the same, as a table with device and versions.

``cases`` lists what there is to measure, ``run`` measures it, ``setups`` holds what is timed. ``python -m
ecjax.studies.bench [CASE ...]`` runs it without Hydra.
"""
