"""Figures of ``ecjax replay``, drawn from its result tables only."""

from ecjax.plotting.saving import Drawing, Kind, replayed
from ecjax.studies.replay.figures.bars import classes, latency, utilisation
from ecjax.studies.replay.figures.classes import class_sizes, class_sweep, queue_sweep
from ecjax.studies.replay.figures.distribution import cdf, services
from ecjax.studies.replay.figures.sweep import bounds, sweep

_ROWS = ("latencies",)
_SWEEP = "runs that differ in rate_scale, size_scale or load"
KINDS = {
    "cdf": Kind(cdf, _SWEEP, (*_ROWS, "latency_bins")),
    "latency": Kind(latency, _SWEEP, _ROWS),
    "utilisation": Kind(utilisation, _SWEEP, _ROWS),
    "sweep": Kind(sweep, _SWEEP, _ROWS),
    "classes": Kind(classes, _SWEEP, _ROWS),
    "bounds": Kind(bounds, _SWEEP, _ROWS),
    "class_sweep": Kind(
        class_sweep,
        "runs that differ in the importance or the rates of one class, rate_scale or size_scale",
        _ROWS,
    ),
    "queue_sweep": Kind(
        queue_sweep,
        "runs that differ in the importance or the rates of one class, rate_scale or size_scale",
        _ROWS,
    ),
    "services": Kind(services, "a replay", ("services",)),
    "class_sizes": Kind(class_sizes, "files of several sizes, 50 at most", _ROWS),
}

draw = Drawing(KINDS, replayed)
