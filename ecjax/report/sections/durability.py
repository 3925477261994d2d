"""Codes beside each other: nines, overhead, repairs, and what the nines rest on."""

import pyarrow as pa

from ecjax.report.drawing import bars, look, numbers
from ecjax.report.parts import Chart, Json, Listing, Section
from ecjax.report.results import Results, pick, words

_NINES = (
    ("nines", "as described"),
    ("nines_double_afr", "disks fail twice as often"),
    ("nines_double_domain_losses", "domains are lost twice as often"),
    ("nines_double_repair", "repairs take twice as long"),
)


def section(results: Results) -> Section | None:
    """Charts of the dataset ``codes``."""
    table = results.of_run("codes") if results.job == "codes" else None
    if table is None:
        return None
    charts = [
        _tradeoff(table),
        bars("What the nines rest on", table, "code", _NINES, ("code", "nines of an object per year")),
        bars(
            "Any loss within a year",
            table,
            "code",
            [
                ("any_loss_probability", "any loss"),
                ("any_group_loss_probability", "whole groups"),
                ("latent_loss_probability", "latent errors"),
            ],
            ("code", "probability per year"),
            log=True,
        ),
        bars(
            "Repair of a disk",
            table,
            "code",
            [
                ("disk_repair_s", "until all of its groups are whole"),
                ("repair_s", "a group that lost a chunk"),
            ],
            ("code", "time with detection (s)"),
        ),
        bars(
            "Repair traffic",
            table,
            "code",
            [("repair_bytes_per_day", "read and written")],
            ("code", "repair traffic (B/day)"),
        ),
    ]
    listing = Listing("Codes", pick(table, [name for name in table.column_names if name != "run_id"]))
    return Section(
        "Codes and durability", charts=[chart for chart in charts if chart is not None], listings=[listing]
    )


def _tradeoff(table: pa.Table) -> Chart | None:
    """Nines against overhead: codes that no other beats are full."""
    shown = pick(table, ("code", "overhead", "nines", "pareto", "durable", "dollars_per_period"))
    if not {"overhead", "nines"} <= set(shown.column_names):
        return None
    traces: list[dict[str, Json]] = []
    for number, (durable, label) in enumerate(((True, "durable enough"), (False, "not durable enough"))):
        rows = [
            place for place, row in enumerate(shown.to_pylist()) if bool(row.get("durable", True)) is durable
        ]
        if rows:
            part = shown.take(rows)
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers+text",
                    "name": label,
                    "x": numbers(part, "overhead"),
                    "y": numbers(part, "nines"),
                    "text": words(part, "code"),
                    "textposition": "top center",
                    "hovertemplate": "%{text}: %{x:.5g}, %{y:.5g}",
                    **look(number),
                }
            )
    axes = ("overhead (stored bytes per byte)", "nines of an object per year")
    return Chart("Durability against overhead", traces, *axes, shown, {"xaxis": {"rangemode": "normal"}})
