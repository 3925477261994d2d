"""What ``ecjax adapt`` replays: laws of task delays, classes of requests, and their arrivals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ecjax.adapt.delays import DelayModel, mean_delay
from ecjax.adapt.proxy import RequestClass
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.studies.adapt.classes import Traced, read_classes
from ecjax.studies.adapt.delays import Laws, named, read_laws
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.adapt.points import Point, check_arrivals, read_points
from ecjax.tables.store import run_id

__all__ = ["Case", "Point", "read_cases"]

_MOST_NAMED = 4  # classes in a line


@dataclass(frozen=True)
class Case:
    """One law of delays (per class) with the arrivals to replay under it.

    Attributes:
        delays: its name: of ``BUILT_IN``, of a row of a delays table, or of a log or folder.
        classes: of requests.
        models: law of the tasks' delays, one per class.
        basic_capacity_per_s: capacity of the (1, 1) code with the given threads, requests/s.
        points: of the sweep.
        input_id: names delays, classes and what arrivals are taken from, apart from points and seed.
        description: one line for the user.
    """

    delays: str
    classes: list[RequestClass]
    models: list[DelayModel]
    basic_capacity_per_s: float
    points: list[Point]
    input_id: str
    description: str


def read_cases(options: AdaptOptions) -> list[Case]:
    """Every law of delays that the options name, with the points of the sweep.

    Points are those of a trace, of steps, of the rates, or of the loads; times ``rate_scale``, the last fastest.

    Args:
        options: checked; classes, steps and what paths lead to apart.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    check_arrivals(options)
    laws = read_laws(options)
    classes, traced = read_classes(options)
    points = read_points(options, classes, traced)
    return [_case(options, own, classes, traced, points) for own in laws]


def _case(
    options: AdaptOptions,
    laws: Laws,
    classes: list[RequestClass],
    traced: Traced | None,
    points: Callable[[float], list[Point]],
) -> Case:
    of_op = {op: laws.of(op) for op in dict.fromkeys(one.op for one in classes)}
    models = [of_op[one.op] for one in classes]
    for op in of_op:
        _tell_of_sizes(laws, op, [one for one in classes if one.op == op])
    means = [mean_delay(model, one.bytes) for one, model in zip(classes, models, strict=True)]
    for one, mean in zip(classes, means, strict=True):
        if not 0 < mean < np.inf:
            raise UserError(
                f"delays: {laws.name}: found a mean delay of {mean:g} s for {one.bytes:g} bytes (class {one.name}); "
                "allowed: finite numbers above 0"
            )
    capacity = options.threads / float(np.dot([one.share for one in classes], means))
    names: dict[str, Any] = {
        "classes": [list(one) for one in classes],
        "models": [named(model) for model in models],
    }
    if traced is not None:
        columns = None if options.columns is None else {str(k): v for k, v in options.columns.items()}
        names |= {"trace": traced.fingerprint, "columns": columns, "format": options.format}
    few = len(classes) <= _MOST_NAMED
    words = ", ".join(one.name for one in classes) if few else f"{len(classes)} classes"
    return Case(
        laws.name,
        classes,
        models,
        capacity,
        points(capacity),
        run_id("inputs", names, "", None, ""),
        f"delays {laws.name} ({laws.description}), {words}: the (1,1) code serves {capacity:.4g} requests/s with "
        f"{options.threads} threads",
    )


def _tell_of_sizes(laws: Laws, op: str, classes: list[RequestClass]) -> None:
    """A log line where classes of an operation need chunks beyond the sizes that were measured."""
    sizes = laws.of_op[op].sizes if op in laws.of_op else np.empty(0)
    least, most = min(one.bytes / one.k_max for one in classes), max(one.bytes for one in classes)
    if len(sizes) > 1 and (most > sizes[-1] or least < sizes[0]):
        log.info(
            "delays: %s has %ss of chunks of %.4g to %.4g bytes; those of the classes have %.4g to %.4g: beyond what "
            "was measured the line through the two nearest sizes goes on",
            laws.name,
            op,
            sizes[0],
            sizes[-1],
            least,
            most,
        )
