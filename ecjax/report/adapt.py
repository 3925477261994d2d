"""Figures of ``ecjax adapt``, drawn from its result tables only."""

from ecjax.report.adapt_bars import composition
from ecjax.report.adapt_lines import delay, deviation, tradeoff
from ecjax.report.adapt_tables import replayed
from ecjax.report.adapt_timeline import timeline
from ecjax.report.saving import Kind, drawing

KINDS = {
    "tradeoff": Kind(tradeoff, "two static codes and two rates (strategy=static codes=all)"),
    "delay": Kind(delay, "two rates"),
    "composition": Kind(composition, "a strategy that changes k: tofec, greedy or calibrated", ("codes",)),
    "deviation": Kind(deviation, "two rates"),
    "timeline": Kind(timeline, "steps, or timeline_s", ("timeline",)),
}

draw = drawing(KINDS, replayed)
