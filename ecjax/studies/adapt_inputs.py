"""What ``ecjax adapt`` replays: laws of task delays, classes of requests, and their arrivals."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ecjax.adapt.arrivals import Requests
from ecjax.adapt.delays import DelayModel
from ecjax.adapt.proxy import RequestClass


@dataclass(frozen=True)
class Point:
    """Arrivals of one point of the sweep.

    Attributes:
        kind: "poisson" (one rate, perhaps times a table of factors), "steps" or "trace".
        rate_per_s: requests per second, mean over the time that they last; of a rate with factors: that rate.
        load: rate_per_s / capacity of the (1, 1) code.
        rate_scale: divides the times of a trace; 1 elsewhere.
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


@dataclass(frozen=True)
class Case:
    """One law of delays (per class) with the arrivals to replay under it.

    Attributes:
        delays: its name: of ``BUILT_IN``, of a row of a delays table, or the path of a log or folder.
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


def read_cases(options: Any) -> list[Case]:
    """Every law of delays that the options name, with the points of the sweep: load, rate, steps or trace.

    Args:
        options: of ``ecjax adapt``, lists where one value was given: delays, rate, load, rate_scale.

    Raises:
        UserError: something in the options, or in what they name, is wrong.
    """
    raise NotImplementedError
