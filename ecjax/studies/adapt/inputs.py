"""What ``ecjax adapt`` replays: proxies in front of a storage, classes of requests, and their arrivals."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ecjax.adaptation.delays import DelayModel, mean_delay, tasks_of
from ecjax.adaptation.proxy import RequestClass, Tasks
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.adapt.classes import Traced, read_classes
from ecjax.studies.adapt.delays import Laws, fingerprint_of, read_laws
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.points import Point, read_points
from ecjax.tables.run_ids import run_id

_MOST_NAMED = 4  # classes in a line
_INTERVALS = 120  # of the timeline of steps
_MOST_INTERVALS = 10**6


@dataclass(frozen=True, eq=False)
class Proxy:
    """A proxy with its classes of requests, in front of a storage of one law of delays.

    Attributes:
        delays: name of the law: of ``BUILT_IN``, of a row of a delays table, or of a log or folder.
        classes: C of them.
        models: law of the tasks' delays, one per class.
        threads: L.
        basic_capacity_per_s: capacity of the (1, 1) code, requests/s.
        input_id: names delays, classes and what arrivals are taken from, apart from points and seed.
        description: one line for the user.
    """

    delays: str
    classes: list[RequestClass]
    models: list[DelayModel]
    threads: int
    basic_capacity_per_s: float
    input_id: str
    description: str

    @cached_property
    def tasks(self) -> Tasks:
        """Delays of the tasks of every class."""
        return tasks_of(self.classes, self.models)

    @property
    def shares(self) -> np.ndarray:
        """(C,) shares of the classes in the requests."""
        return np.array([each.share for each in self.classes])


class Case(NamedTuple):
    """A proxy with the arrivals of one point of the sweep.

    Attributes:
        proxy: the same object in all cases of a law.
        point: when requests arrive.
        timeline_s: length of the intervals of the timeline, s; None: there is none.
    """

    proxy: Proxy
    point: Point
    timeline_s: float | None


def read_cases(options: AdaptOptions) -> list[Case]:
    """Every law of delays that the options name, with every point of the sweep.

    Points are those of a trace, of steps, of the rates, or of the loads; times ``rate_scale``, the last fastest.

    Args:
        options: checked.

    Raises:
        UserError: something in what the options name is wrong.
    """
    laws = read_laws(options)
    classes, traced = read_classes(options)
    points = read_points(options, classes, traced)
    return [case for law in laws for case in _cases(options, _proxy(options, law, classes, traced), points)]


def _cases(options: AdaptOptions, proxy: Proxy, points: Callable[[float], list[Point]]) -> list[Case]:
    """The cases of a law.

    Raises:
        UserError: a timeline has more intervals than a table should.
    """
    cases = []
    for point in points(proxy.basic_capacity_per_s):
        length = options.timeline_s
        if length is None and point.end_s is not None:
            length = (point.end_s - point.begin_s) / _INTERVALS
        if length is not None and point.span_s > _MOST_INTERVALS * length:
            raise UserError(
                f"timeline_s={length:g}: found about {point.span_s / length:.3g} intervals, as requests come for "
                f"{point.span_s:.3g} s at {point.rate_per_s:.3g} requests/s; allowed: at most {_MOST_INTERVALS:,}"
            )
        cases.append(Case(proxy, point, length))
    return cases


def _proxy(options: AdaptOptions, laws: Laws, classes: list[RequestClass], traced: Traced | None) -> Proxy:
    of_op = {op: laws.of(op) for op in dict.fromkeys(each.op for each in classes)}
    models = [of_op[each.op] for each in classes]
    for op, model in of_op.items():
        _log_sizes(laws.name, op, model, [each for each in classes if each.op == op])
    means = [_mean_delay(laws.name, each, model) for each, model in zip(classes, models, strict=True)]
    capacity = options.threads / float(np.dot([each.share for each in classes], means))
    names: dict[str, Any] = {
        "classes": [list(each) for each in classes],
        "models": [fingerprint_of(model) for model in models],
    }
    if traced is not None:
        names |= traced.names
    few = len(classes) <= _MOST_NAMED
    words = ", ".join(each.name for each in classes) if few else f"{len(classes)} classes"
    return Proxy(
        laws.name,
        classes,
        models,
        options.threads,
        capacity,
        run_id("inputs", names, "", None, ""),
        f"delays {laws.name} ({laws.description}), {words}: the (1,1) code serves {capacity:.4g} requests/s with "
        f"{options.threads} threads",
    )


def _mean_delay(name: str, request_class: RequestClass, model: DelayModel) -> float:
    """Mean delay of a task for a whole object of a class, s.

    Raises:
        UserError: it is not positive and finite for each of the chunks that codes of the class may have.
    """
    sizes = [request_class.bytes / k for k in range(1, request_class.k_max + 1)]
    means = [mean_delay(model, size) for size in sizes]
    for k, (size, mean) in enumerate(zip(sizes, means, strict=True), 1):
        if not 0 < mean < np.inf:
            chunk = f"a chunk of {size:g} bytes, k={k}" if k > 1 else f"{size:g} bytes"
            raise UserError(
                f"delays: {name}: found a mean delay of {mean:g} s for {chunk} (class {request_class.name}); allowed: "
                "finite numbers above 0 for bytes / k, k from 1 to k_max"
            )
    return means[0]


def _log_sizes(name: str, op: str, model: DelayModel, classes: list[RequestClass]) -> None:
    """A log line where classes of an operation need chunks beyond the sizes that its law was measured at."""
    sizes = model.sizes
    least, most = min(each.bytes / each.k_max for each in classes), max(each.bytes for each in classes)
    if len(sizes) > 1 and (most > sizes[-1] or least < sizes[0]):
        log.info(
            "delays: %s: the law of %ss is of chunks of %.4g to %.4g bytes; those of the classes have %.4g to %.4g: "
            "beyond what was measured the line through the two nearest sizes goes on%s",
            name,
            op,
            sizes[0],
            sizes[-1],
            least,
            most,
            ", but below it delays are at least in proportion to the size" if least < sizes[0] else "",
        )
