"""Figures of ``ecjax cache``, drawn from its result tables only."""

from ecjax.report.cache_bars import decisions, edges, failures, policies, throughput
from ecjax.report.cache_lines import neighbours, sweep
from ecjax.report.cache_tables import replayed
from ecjax.report.saving import Kind, drawing

KINDS = {
    "policies": Kind(policies, "a replay"),
    "sweep": Kind(sweep, "runs that differ in k, capacity, copies, items, zipf or half_life_s"),
    "neighbours": Kind(neighbours, "two distances of neighbours: neighbours=[0.05,0.2]"),
    "failures": Kind(failures, "nodes or buckets that are down: fail=each_bucket"),
    "decisions": Kind(decisions, "a policy that decides"),
    "throughput": Kind(throughput, "a replay"),
    "edges": Kind(edges, "two edges", ("latencies",)),
}

draw = drawing(KINDS, replayed)
