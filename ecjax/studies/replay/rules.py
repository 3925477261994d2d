"""The options of ``ecjax replay``, checked: every mistake names the option, what was found and what is allowed."""

import math
from numbers import Integral
from typing import Any

import numpy as np

from ecjax.errors import UserError
from ecjax.options import is_number
from ecjax.replay.law_fit import FAMILIES
from ecjax.replay.run import POLICIES, QUEUES
from ecjax.studies.replay.figures.kinds import KINDS
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PLAN_QUEUES, PlanCase
from ecjax.studies.replay.system import classes
from ecjax.studies.spine.checks import numbers, words_of

_ABOVE = {"pareto_ratio": 1.0, "burst_factor": 1.0, "burst_share": 0.0, "burst_mean_s": 0.0}
_ABOVE |= {"hedge_delay_s": 0.0, "client_bandwidth_bytes_per_s": 0.0}
_OPTIONAL = ("hedge_delay_s", "client_bandwidth_bytes_per_s")
_WHOLE = {
    "probes": (1, 10**6),
    "hedges": (1, 10**6),
    "requests": (100, 10**11),
    "replications": (1, 10**6),
    "seed": (0, 2**62),
}


def checked(options: ReplayOptions) -> ReplayOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = {name: getattr(options, name) for name in vars(options)}
    words = {
        "policy": POLICIES,
        "queue": QUEUES,
        "service": (*FAMILIES, "empirical"),
        "figures": tuple(KINDS),
    }
    for name, allowed in words.items():
        if name == "queue" and values[name] is None:
            continue
        values[name] = words_of(name, values[name], allowed)
        if not values[name] and name not in ("figures", "service"):
            raise UserError(f"{name}: found an empty list; allowed: {', '.join(allowed)}")
    if values["arrivals"] is None:
        both = values["trace"] is not None and values["plan"] is not None
        values["arrivals"] = "trace" if both else "poisson"
    if values["arrivals"] not in ("poisson", "bursts", "trace"):
        raise UserError(f"arrivals: found {values['arrivals']!r}; allowed: poisson, bursts, trace")
    if values["arrivals"] == "trace" and values["trace"] is None:
        raise UserError("arrivals=trace: trace=PATH is missing, the access log whose arrivals are replayed")
    if "empirical" in values["service"] and values["trace"] is None:
        raise UserError("service=empirical: trace=PATH is missing, the access log with the service times")
    for name in ("rate_scale", "size_scale"):
        values[name] = numbers(name, values[name], None)
    for name, above in _ABOVE.items():
        value = values[name]
        if not (is_number(value) and value > above) and not (value is None and name in _OPTIONAL):
            raise UserError(f"{name}: found {value}; allowed: a number above {above:g}")
    if values["burst_share"] >= 1:
        raise UserError(f"burst_share: found {values['burst_share']}; allowed: a number between 0 and 1")
    decode = values["decode_s_per_byte"]
    if not (is_number(decode) and decode >= 0):
        raise UserError(f"decode_s_per_byte: found {decode}; allowed: a number, at least 0")
    for name, (least, most) in _WHOLE.items():
        value = values[name]
        if not (is_number(value) and isinstance(value, Integral) and least <= int(value) <= most):
            raise UserError(f"{name}: found {value}; allowed: a whole number from {least} to {most}")
    if values["plan"] in (None, "none") and (values["plan_run"] or values["plan_where"]):
        raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
    values["weights"] = _weights(values["weights"])
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    return ReplayOptions(**values)


def queues_of(options: ReplayOptions, case: PlanCase) -> list[str]:
    """The queues that a plan is replayed under: those asked for, else the one that it was made for."""
    return options.queue or [PLAN_QUEUES[case.queue]]


def weights_of(options: ReplayOptions, case: PlanCase) -> np.ndarray:
    """Shares of the classes at every node, (K, m): those asked for, else the plan's own, else equal parts."""
    if options.weights is None and case.weights is not None:
        return case.weights
    count = len(classes(case).names)
    own = np.full(count, 1 / count) if options.weights is None else np.array(options.weights)
    return np.tile(own[:, None], len(case.nodes))


def check_queues(options: ReplayOptions, case: PlanCase) -> None:
    """Queues by class need classes, and weights one each.

    Raises:
        UserError: files have no service_class, or weights are not one per class.
    """
    by_class = [name for name in queues_of(options, case) if name != "fcfs"]
    if by_class and "service_class" not in case.files.column_names:
        raise UserError(f"queue={by_class[0]}: files have no column service_class; allowed without it: fcfs")
    names = classes(case).names
    if options.weights and len(options.weights) != len(names):
        raise UserError(
            f"weights: found {len(options.weights)} numbers; allowed: one per service class: {', '.join(names)}"
        )


def _weights(value: Any) -> list[float] | None:
    if value is None:
        return None
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if (
        not listed
        or not all(is_number(w) and w > 0 for w in listed)
        or not math.isclose(sum(listed), 1.0, rel_tol=1e-9)
    ):
        raise UserError(
            f"weights: found {value}; allowed: a positive number per service class, that sum to 1"
        )
    return [float(w) for w in listed]
