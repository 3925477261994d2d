"""When requests of ``ecjax adapt`` arrive: the points of a sweep."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.adapt.arrivals import Rates, Requests, constant, given, mean_count, poisson, varying
from ecjax.adapt.proxy import RequestClass
from ecjax.errors import UserError
from ecjax.streams.arrivals import Factors
from ecjax.studies.adapt.classes import Traced
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.studies.spine.option import is_number
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.place import Place
from ecjax.tables.read import read_input

_MOST_REQUESTS = 10**8


@dataclass(frozen=True)
class Point:
    """Arrivals of one point of the sweep.

    Attributes:
        kind: "poisson" (one rate, perhaps times a table of factors), "steps" or "trace".
        rate_per_s: requests per second, mean over the time that they last; of a rate with factors: that rate.
        load: rate_per_s / capacity of the (1, 1) code.
        rate_scale: what it was multiplied by.
        end_s: s, when steps end; None elsewhere.
        drawn: whether the requests depend on the seed; not those of a trace.
        names: what names the point beside the case's ``input_id`` and the seed, for run ids.
        requests: the requests, by seed; drawn anew by every call.
    """

    kind: str
    rate_per_s: float
    load: float
    rate_scale: float
    end_s: float | None
    drawn: bool
    names: dict[str, Any]
    requests: Callable[[int], Requests]


_Points = Callable[[float], list[Point]]


def check_arrivals(options: AdaptOptions) -> None:
    """That one option says when requests arrive.

    Raises:
        UserError: two do.
    """
    given = [name for name in ("trace", "steps", "rate") if getattr(options, name) is not None]
    if len(given) > 1:
        raise UserError(f"{given[1]}: found beside {given[0]}; allowed: one of trace, steps and rate")
    if options.rates is not None and given and given != ["rate"]:
        raise UserError(f"rates={options.rates}: found beside {given[0]}; allowed: with rate or load")


def read_points(options: AdaptOptions, classes: list[RequestClass], traced: Traced | None) -> _Points:
    """The points by the capacity of the (1, 1) code (requests/s), of which loads are shares.

    Args:
        options: checked, steps and rates apart.
        classes: of the requests.
        traced: the requests of the trace, if there is one.

    Raises:
        UserError: the steps or the table of rates are malformed.
    """
    if traced is not None:
        return _of_trace(options, traced)
    return _of_rates(options, classes) if options.steps is None else _of_steps(options, classes)


def _of_trace(options: AdaptOptions, traced: Traced) -> _Points:
    rate = len(traced.arrival_s) / traced.span_s

    def points(capacity: float) -> list[Point]:
        return [
            Point(
                "trace",
                rate * scale,
                rate * scale / capacity,
                scale,
                None,
                False,
                {"rate_scale": scale},
                partial(_traced, traced, scale),
            )
            for scale in options.rate_scale
        ]

    return points


def _traced(traced: Traced, scale: float, seed: int) -> Requests:
    return given(traced.arrival_s, traced.class_of, scale)


def _of_steps(options: AdaptOptions, classes: list[RequestClass]) -> _Points:
    steps = _checked_steps(options.steps)
    start, rate = np.array(steps).T
    rates = Rates(start[:-1], float(start[-1]), rate[:-1, None] * [one.share for one in classes])
    scales = options.rate_scale
    expected = mean_count(rates)
    if expected * max(scales) > _MOST_REQUESTS:
        raise UserError(
            f"steps: found {expected * max(scales):.3g} requests; allowed: at most {_MOST_REQUESTS:.0g} are expected"
        )
    mean = expected / float(start[-1] - start[0])

    def points(capacity: float) -> list[Point]:
        return [
            Point(
                "steps",
                mean * scale,
                mean * scale / capacity,
                scale,
                rates.end_s,
                True,
                {"steps": steps, "rate_scale": scale},
                partial(poisson, rates._replace(rate=rates.rate * scale), None),
            )
            for scale in scales
        ]

    return points


def _checked_steps(steps: Any) -> list[list[float]]:
    allowed = (
        "allowed: [[start_s, rate], ...], times ascending from 0 or later, rates >= 0, the last [end_s, 0]"
    )
    if not isinstance(steps, list | tuple) or len(steps) < 2:
        raise UserError(f"steps: found {steps!r}; {allowed}")
    last = -np.inf
    for row, step in enumerate(steps):
        pair = isinstance(step, list | tuple) and len(step) == 2
        if not pair or not all(is_number(value) and value >= 0 for value in step) or not step[0] > last:
            raise UserError(f"steps: row {row}: found {step!r}; {allowed}")
        last = step[0]
    if steps[-1][1] != 0 or not any(rate > 0 for _, rate in steps):
        raise UserError(
            f"steps: row {len(steps) - 1}: found {steps[-1]!r}, no end or no rates above 0; {allowed}"
        )
    return [[float(start), float(rate)] for start, rate in steps]


def _of_rates(options: AdaptOptions, classes: list[RequestClass]) -> _Points:
    shares = np.array([one.share for one in classes])
    factors, fingerprints = None, {}
    if options.rates is not None:
        table = read_input(options.rates, "rates")
        fingerprints["rates"] = fingerprint(table, "rates")
        factors = _factors(table, options.rates, [one.name for one in classes])

    def points(capacity: float) -> list[Point]:
        base = options.rate or [load * capacity for load in options.load]
        return [
            Point(
                "poisson",
                rate,
                rate / capacity,
                scale,
                None,
                True,
                {"rate_per_s": rate, "requests": options.requests, **fingerprints},
                partial(
                    poisson,
                    constant(rate, shares) if factors is None else varying(rate, shares, factors),
                    options.requests,
                ),
            )
            for rate, scale in ((rate * scale, scale) for rate in base for scale in options.rate_scale)
        ]

    return points


def _factors(table: pa.Table, path: str, names: list[str]) -> Factors:
    """Factors of the classes that a rates table names in ``service_class``; empty cells mean all.

    Raises:
        UserError: it names files or unknown classes, or leaves no requests.
    """
    place = Place(table, "rates", path)
    if "file_id" in table.column_names:
        raise place.error("found files; allowed: empty cells, as a proxy has classes", column="file_id")
    chosen: list[np.ndarray | None] = [None] * len(table)
    if "service_class" in table.column_names:
        for row, name in enumerate(table["service_class"].to_pylist()):
            if name is None:
                continue
            if name not in names:
                message = f"found {name!r}; allowed: {', '.join(names)}"
                raise place.error(message, column="service_class", row=row)
            chosen[row] = np.array([names.index(name)])
    start, factor = table["start_s"].to_numpy(), table["factor"].to_numpy()
    order = np.argsort(start, kind="stable")
    factors = Factors(start[order], factor[order], [chosen[row] for row in order])
    if not varying(1.0, np.ones(len(names)), factors).rate.any():
        raise place.error("found factors of 0 for all time; allowed: some above 0", column="factor")
    return factors
