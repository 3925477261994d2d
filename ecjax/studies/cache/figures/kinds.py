"""Figures of ``ecjax cache``, drawn from its result tables only."""

from ecjax.plotting.saving import Drawing, Kind
from ecjax.studies.cache.figures.bars import decisions, edges, failures, policies, throughput
from ecjax.studies.cache.figures.lines import neighbours, sweep
from ecjax.studies.cache.words import replayed

KINDS = {
    "policies": Kind(policies, "a replay"),
    "sweep": Kind(sweep, "runs that differ in k, capacity, copies, items, zipf or half_life_s"),
    "neighbours": Kind(neighbours, "two distances of neighbours: neighbours=0.05,0.2"),
    "failures": Kind(failures, "nodes or buckets that are down: fail=each_bucket"),
    "decisions": Kind(decisions, "a policy that decides"),
    "throughput": Kind(throughput, "a replay"),
    "edges": Kind(edges, "two edges", ("latencies",)),
}

draw = Drawing(KINDS, replayed)
