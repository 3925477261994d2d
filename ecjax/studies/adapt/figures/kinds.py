"""Figures of ``ecjax adapt``, drawn from its result tables only."""

from ecjax.plotting.saving import Drawing, Kind
from ecjax.studies.adapt.figures.bars import composition
from ecjax.studies.adapt.figures.lines import delay, deviation, tradeoff
from ecjax.studies.adapt.figures.tails import ccdf, task_delays
from ecjax.studies.adapt.figures.timeline import timeline
from ecjax.studies.adapt.words import replayed

KINDS = {
    "tradeoff": Kind(tradeoff, "two static codes and two rates (strategy=static codes=all)"),
    "delay": Kind(delay, "two rates"),
    "composition": Kind(composition, "a strategy that changes k: tofec, greedy or calibrated", ("codes",)),
    "deviation": Kind(deviation, "two rates"),
    "ccdf": Kind(ccdf, "requests that were replayed", ("latencies",)),
    "task_delays": Kind(task_delays, "a run that ended", ("delays",)),
    "timeline": Kind(timeline, "steps, or timeline_s", ("timeline",)),
}

draw = Drawing(KINDS, replayed)
