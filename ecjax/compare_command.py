"""The command ``ecjax compare A B``: two plans, or two replays, beside each other; or a plan and a newer log."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ecjax.console import OUTPUT, OutputMode, conclude, output_mode, say
from ecjax.errors import UserError
from ecjax.units import fitting_unit, formatted

if TYPE_CHECKING:
    from ecjax.comparison import Side

_SECONDS = "(s)"  # at the end of a quantity that is a time
_NAMED = ("method", "theta", "k", "d", "policy", "queue", "service", "rate_scale", "size_scale")


def run_compare(words: Sequence[str]) -> int:
    """Print both runs with their differences, and what they come to in a sentence; returns the exit code, 0.

    Raises:
        UserError: a run cannot be told, or they are of different jobs.
    """
    # slow to import
    from ecjax.comparison import compared, moved_chunks, sentence, side_of
    from ecjax.drift_report import is_log, run_drift
    from ecjax.studies.spine.as_json import print_object
    from ecjax.studies.spine.printed import print_table

    conditions = [word for word in words if word.startswith("where=")]
    drift = [word for word in words if word.startswith(("format=", "write="))]
    sides = [word.removeprefix("out=") for word in words if word not in (*conditions, *drift)]
    if len(sides) != 2 or len(conditions) > 1 or any(side.startswith("-") for side in sides):
        text = " ".join(words) or "nothing"
        raise UserError(
            f"compare: found {text}; allowed: two runs, ecjax compare A B (each OUT, OUT:RUN_ID or OUT:column=value)"
        )
    where = conditions[0].removeprefix("where=") if conditions else None
    if is_log(sides[1]):
        return run_drift(side_of(sides[0], where), sides[1], dict(word.split("=", 1) for word in drift))
    if drift:
        raise UserError(f"compare: found {drift[0]} with two runs; allowed: with a plan and a log")
    one, other = (side_of(side, where) for side in sides)

    def described(letter: str, side: "Side") -> str:
        values = {name: side.run.get(name) for name in _NAMED}
        differing = [name for name in _NAMED if one.run.get(name) != other.run.get(name)]
        of_it = [f"{name}={_word(values[name])}" for name in differing if values[name] is not None]
        return f"{letter}: {side.out} {' '.join((side.run['run_id'], *of_it))}"

    quantities, moved = compared(one, other), moved_chunks(one, other)
    if output_mode() is OutputMode.JSON:
        print_object(
            {
                "job": "compare",
                **{name: _named(side) for name, side in (("a", one), ("b", other))},
                "quantities": [
                    {"quantity": name, "a": _finite(before), "b": _finite(after)}
                    for name, before, after in quantities
                ],
                "moved_chunks": None if moved is None else moved[0],
                "sentence": sentence(one, other),
                "exit_code": 0,
            }
        )
        return 0
    rows = [_cells(*quantity) for quantity in quantities]
    if moved is not None:
        rows.append(("chunks moved from A to B", "", str(moved[0]), "", f"{moved[0] / moved[1]:.1%}"))
    for letter, side in (("A", one), ("B", other)):
        say(OUTPUT, described(letter, side), soft_wrap=True)
    print_table(
        OUTPUT, f"{one.job}: B against A", ("quantity", "A", "B", "B - A", "change"), rows, ("quantity",)
    )
    conclude(OUTPUT, sentence(one, other))
    return 0


def _cells(name: str, before: float, after: float) -> tuple[str, str, str, str, str]:
    """A row of the table; times in a unit that fits them."""
    if not name.endswith(_SECONDS):
        return (
            name,
            formatted(before, ".4g"),
            formatted(after, ".4g"),
            f"{after - before:+.4g}",
            _percent(before, after),
        )
    unit = fitting_unit((before, after))
    name = f"{name.removesuffix(_SECONDS)}({unit.name})"
    sign = "-" if after < before else "+"
    difference = f"{sign}{unit.cell(abs(after - before))}"
    return name, unit.cell(before), unit.cell(after), difference, _percent(before, after)


def _named(side: "Side") -> dict[str, str]:
    return {"out": side.out, "job": side.job, "run_id": side.run["run_id"]}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _percent(before: float, after: float) -> str:
    """The change as a share of what was; empty where that has none."""
    return f"{after / before - 1:+.1%}" if before and math.isfinite(before) else ""
