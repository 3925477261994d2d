"""The options of ``ecjax schedule``, checked: every mistake names the option, what was found and what is allowed."""

from numbers import Integral
from typing import Any

from ecjax.coflow.replay import SCHEDULERS, SOURCES
from ecjax.errors import UserError
from ecjax.studies.schedule.figures.kinds import KINDS
from ecjax.studies.schedule.options import ScheduleOptions
from ecjax.studies.spine.checks import numbers, whole_numbers, words_of
from ecjax.studies.spine.option import is_number

CHOSEN = tuple(name for name in SOURCES if name != "given")  # rules for flows whose sources are not given
_WHOLE = {"seeds": (1, 10**6), "seed": (0, 2**62), "clients": (1, 10**9)}


def checked(options: ScheduleOptions) -> ScheduleOptions:
    """Options with lists where one value was given.

    Raises:
        UserError: an option has a value that is not allowed.
    """
    values = dict(vars(options))
    for name, allowed in (("scheduler", SCHEDULERS), ("sources", CHOSEN), ("figures", tuple(KINDS))):
        values[name] = words_of(name, values[name], tuple(allowed))
        if not values[name] and name != "figures":
            raise UserError(f"{name}: found an empty list; allowed: {', '.join(allowed)}")
    for name in ("rate_scale", "size_scale"):
        values[name] = numbers(name, values[name], None)
    values["share_at_zero"] = numbers("share_at_zero", values["share_at_zero"], 0.0)
    if max(values["share_at_zero"]) > 1:
        raise UserError(f"share_at_zero: found {max(values['share_at_zero'])}; allowed: numbers from 0 to 1")
    for name in ("n", "k"):
        values[name] = whole_numbers(name, values[name])
    for name, (least, most) in _WHOLE.items():
        value = values[name]
        if not (_is_whole(value) and least <= int(value) <= most):
            raise UserError(f"{name}: found {value}; allowed: a whole number from {least} to {most}")
    for name in ("port_bytes_per_s", "client_bytes_per_s"):
        if values[name] is not None and not (is_number(values[name]) and values[name] > 0):
            raise UserError(f"{name}: found {values[name]}; allowed: a number above 0")
    if values["client_bytes_per_s"] is not None and values["ports"] is not None:
        raise UserError(
            f"client_bytes_per_s: found {values['client_bytes_per_s']:g} beside ports={values['ports']}; allowed: one "
            "of them, as the ports table has receive_bytes_per_s"
        )
    edges = whole_numbers("widths", values["widths"])
    if edges != sorted(edges):
        raise UserError(f"widths: found {edges}; allowed: ascending whole numbers")
    values["widths"] = edges
    if values["plan"] is None and (values["plan_run"] or values["plan_where"]):
        raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
    if values["trace"] is None and values["format"] != "auto":
        raise UserError(f"format={values['format']}: trace=PATH is missing, what is of that format")
    if isinstance(values["write"], str):
        values["write"] = [values["write"]]
    return ScheduleOptions(**values)


def _is_whole(value: Any) -> bool:
    return is_number(value) and isinstance(value, Integral)
