"""When requests of ``ecjax adapt`` arrive: the points of a sweep."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ecjax.adaptation import arrivals
from ecjax.adaptation.arrivals import Rates, Requests
from ecjax.adaptation.proxy import RequestClass
from ecjax.console import log
from ecjax.errors import UserError
from ecjax.streams.arrivals import Factors
from ecjax.studies.adapt.classes import Traced
from ecjax.studies.adapt.options import AdaptOptions
from ecjax.tables.fingerprint import fingerprint
from ecjax.tables.place import Place
from ecjax.tables.rates import end_of_rates, ends_early
from ecjax.tables.read import read_input
from ecjax.units import count_text, time_text

_LEAST_REQUESTS, _MOST_REQUESTS = 1, 10**8


@dataclass(frozen=True)
class Point:
    """Arrivals of one point of the sweep.

    Attributes:
        kind: "poisson" (one rate, perhaps times a table of factors), "steps" or "trace".
        rate_per_s: requests per second, mean over the time that they last; of a rate with factors: that rate.
        load: rate_per_s / capacity of the (1, 1) code.
        rate_scale: what it was multiplied by.
        names: what names the point beside the proxy's ``input_id`` and the seed, for run ids.
        requests: the requests, by seed; drawn anew by every call.
        span_s: about how long they come, s.
        constant: whether the rate is constant, so that latencies become stationary.
        begin_s: s, when steps begin.
        end_s: s, when they end; None elsewhere.
    """

    kind: str
    rate_per_s: float
    load: float
    rate_scale: float
    names: dict[str, Any]
    requests: Callable[[int], Requests]
    span_s: float
    constant: bool = False
    begin_s: float = 0.0
    end_s: float | None = None


_Points = Callable[[float], list[Point]]


def read_points(options: AdaptOptions, classes: list[RequestClass], traced: Traced | None) -> _Points:
    """The points by the capacity of the (1, 1) code (requests/s), of which loads are shares.

    Args:
        options: checked.
        classes: of the requests.
        traced: the requests of the trace, if there is one.

    Raises:
        UserError: steps have too many requests, or the table of rates is malformed.
    """
    if traced is not None:
        return partial(_of_trace, traced, options.rate_scale)
    if options.steps is not None:
        return _of_steps(options.steps, options.rate_scale, classes)
    return _of_rates(options, classes)


def _of_trace(traced: Traced, scales: list[float], capacity: float) -> list[Point]:
    rate = len(traced.arrival_s) / traced.span_s
    return [
        Point(
            "trace",
            rate * scale,
            rate * scale / capacity,
            scale,
            {"rate_scale": scale},
            partial(_traced, traced, scale),
            traced.span_s / scale,
        )
        for scale in scales
    ]


def _traced(traced: Traced, scale: float, seed: int) -> Requests:
    return arrivals.of_trace(traced.arrival_s, traced.class_of, scale)


def _of_steps(steps: list[tuple[float, float]], scales: list[float], classes: list[RequestClass]) -> _Points:
    start, rate = np.array(steps).T
    rates = Rates(start[:-1], float(start[-1]), rate[:-1, None] * [each.share for each in classes])
    expected = arrivals.mean_count(rates)
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
                {"steps": steps, "rate_scale": scale},
                partial(arrivals.poisson, rates._replace(rate=rates.rate * scale), None),
                float(start[-1] - start[0]),
                begin_s=float(start[0]),
                end_s=rates.end_s,
            )
            for scale in scales
        ]

    return points


def _of_rates(options: AdaptOptions, classes: list[RequestClass]) -> _Points:
    shares = np.array([each.share for each in classes])
    factors, end = None, 0.0
    names: dict[str, Any] = {"requests": options.requests}
    if options.rates is not None:
        table = read_input(options.rates, "rates")
        names["rates"] = fingerprint(table, "rates")
        factors = _factors(table, options.rates, [each.name for each in classes])
        end = end_of_rates(table)

    def rates_of(rate: float) -> Rates:
        if factors is None:
            return arrivals.constant(rate, shares)
        return arrivals.varying(rate, shares, factors)

    def points(capacity: float) -> list[Point]:
        base = options.rate or [load * capacity for load in options.load]
        if factors is not None:
            _say_end(options, arrivals.varying(1.0, shares, factors), end, base)
        return [
            Point(
                "poisson",
                rate,
                rate / capacity,
                scale,
                {"rate_per_s": rate, **names},
                partial(arrivals.poisson, rates, options.requests),
                arrivals.mean_time_of(rates, options.requests),
                constant=factors is None,
            )
            for rate, scale, rates in (
                (rate * scale, scale, rates_of(rate * scale)) for rate in base for scale in options.rate_scale
            )
        ]

    return points


def _say_end(options: AdaptOptions, unit: Rates, end: float, base: list[float]) -> None:
    """Warn where the slowest point has more requests than a table has intervals for, or than ever come.

    Args:
        options: checked, with rates.
        unit: rates of a point of one request/s.
        end: of the intervals of the table, s; 0: not known.
        base: requests/s before rate_scale.
    """
    ends = not unit.rate[-1].any()
    until = float(unit.start_s[-1]) if ends else end
    slowest = min(base) * min(options.rate_scale)
    come = round(slowest * arrivals.mean_count_until(unit, until))
    if until <= 0 or come >= options.requests:
        return
    least = f" at {slowest:.3g} requests/s" if len(base) * len(options.rate_scale) > 1 else ""
    if ends:
        log.warning(
            "rates=%s: its factors are 0 from %s on: %s of %s are expected to come until then%s, and no others come",
            options.rates,
            time_text(until),
            f"{come:,}",
            count_text(options.requests, "request"),
            least,
        )
        return
    log.warning(
        ends_early(str(options.rates), end, come, options.requests, "request", least, _LEAST_REQUESTS)
    )


def _factors(table: pa.Table, path: str, names: list[str]) -> Factors:
    """Factors of the classes that a rates table names in ``service_class``; empty cells mean all.

    Raises:
        UserError: it names files or unknown classes, or leaves no requests.
    """
    place = Place(table, "rates", path)
    if "file_id" in table.column_names:
        raise place.error("found files; allowed: empty cells, as a proxy has classes", column="file_id")
    class_of_row: list[np.ndarray | None] = [None] * len(table)
    if "service_class" in table.column_names:
        for row, name in enumerate(table["service_class"].to_pylist()):
            if name is None:
                continue
            if name not in names:
                message = f"found {name!r}; allowed: {', '.join(names)}"
                raise place.error(message, column="service_class", row=row)
            class_of_row[row] = np.array([names.index(name)])
    start, factor = table["start_s"].to_numpy(), table["factor"].to_numpy()
    order = np.argsort(start, kind="stable")
    factors = Factors(start[order], factor[order], [class_of_row[row] for row in order])
    if not arrivals.varying(1.0, np.ones(len(names)), factors).rate.any():
        raise place.error("found factors of 0 for all time; allowed: some above 0", column="factor")
    return factors
