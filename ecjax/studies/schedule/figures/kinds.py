"""Figures of ``ecjax schedule``, drawn from its result tables only."""

from ecjax.plotting.saving import Drawing, Kind, replayed
from ecjax.studies.schedule.figures.bars import gap, improvement, sources
from ecjax.studies.schedule.figures.lines import cdf, sweep
from ecjax.studies.schedule.words import by_setting

KINDS = {
    "improvement": Kind(improvement, "a scheduler besides fair", ("coflow_widths",)),
    "sources": Kind(sources, "two rules of source selection"),
    "cdf": Kind(cdf, "replays", ("coflows",)),
    "sweep": Kind(
        sweep,
        "a scheduler besides fair, and runs that differ in n, k, share_at_zero, rate_scale or size_scale",
    ),
    "gap": Kind(gap, "lower_bound=true, and a mean above the bound"),
}

draw = Drawing(KINDS, lambda runs: by_setting(replayed(runs)))
