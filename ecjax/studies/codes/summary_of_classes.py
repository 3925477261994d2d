"""What ``ecjax codes`` prints of classes of files: a line per class and candidate, and one per combination."""

import json

import pandas as pd
from rich.console import Console

from ecjax.studies.codes.words import domain_of_all
from ecjax.studies.spine.printed import dollars, number, print_table
from ecjax.units import Unit, fitting_unit


def show_combinations(class_codes: pd.DataFrame, combinations: pd.DataFrame, console: Console) -> None:
    """Print candidates by class, and the combinations that were planned.

    Args:
        class_codes: rows of ``class_codes``; none where they were not written.
        combinations: rows of ``combinations``.
        console: where to.
    """
    domain = domain_of_all(combinations)
    unit = fitting_unit(combinations["healthy_mean_s"], combinations["down_p99_s"])
    if not class_codes.empty:
        print_table(
            console,
            f"full reads of each class, if all files had that code, mean/99 % quantile, {unit.name}",
            [
                "class",
                "files",
                "of\nbytes",
                "of\nreads",
                "code",
                "$ in\n30 days",
                "load",
                "healthy",
                f"{domain}\ndown",
            ],
            [
                [
                    row["service_class"],
                    number(row["file_count"], ".0f"),
                    f"{row['bytes_share']:.0%}",
                    f"{row['read_share']:.0%}",
                    row["code"],
                    dollars(row["dollars_per_period"]),
                    number(row["load"], ".2f"),
                    _pair(row, "healthy", unit),
                    _pair(row, "down", unit),
                ]
                for row in class_codes.to_dict("records")
            ],
            words=("class", "code"),
            least=("of\nbytes", "files"),
            dataset="class_codes",
        )
        _show_small(class_codes, unit, domain, console)
    classes = " / ".join(json.loads(combinations["codes"].iloc[0]))
    print_table(
        console,
        f"codes of {classes}, planned together",
        [
            "codes",
            "n/k",
            "$ in\n30 days",
            "nines",
            "any loss\nin a year",
            "healthy",
            f"{domain}\ndown",
            "front",
            "take",
        ],
        [
            [
                " / ".join(json.loads(row["codes"]).values()),
                number(row["overhead"], ".3f"),
                dollars(row["dollars_per_period"]),
                number(row["nines"], ".1f"),
                number(row["any_loss_probability"], ".1e"),
                _pair(row, "healthy", unit),
                _pair(row, "down", unit),
                "*" if row["pareto"] else "",
                "<-" if row["recommended"] else "",
            ]
            for row in combinations.to_dict("records")
        ],
        words=("codes", "take"),
        least=("n/k", "front"),
        dataset="combinations",
    )


def _show_small(class_codes: pd.DataFrame, unit: Unit, domain: str, console: Console) -> None:
    """Small reads by class, where there are any."""
    some = class_codes[class_codes["small_healthy_mean_s"].notna()]
    if some.empty:
        return
    print_table(
        console,
        f"small reads of each class, if all files had that code, mean/99 % quantile, {unit.name}",
        ["class", "code", "healthy", f"{domain}\ndown"],
        [
            [
                row["service_class"],
                row["code"],
                _pair(row, "small_healthy", unit),
                _pair(row, "small_down", unit),
            ]
            for row in some.to_dict("records")
        ],
        words=("class", "code"),
        dataset="class_codes",
    )


def _pair(row: dict, state: str, unit: Unit) -> str:
    mean, tail = (row[f"{state}_{what}_s"] for what in ("mean", "p99"))
    return "-" if pd.isna(mean) or pd.isna(tail) else f"{unit.cell(mean, 3)}/{unit.cell(tail, 3)}"
