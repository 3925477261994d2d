"""What was asked: inputs, configuration, versions and devices of the runs."""

import json

import pyarrow as pa

from ecjax.report.parts import Listing, Section
from ecjax.report.results import Results, pick

_SHOWN = ("run_id", "status", "seed", "device", "version", "solve_s", "input_id")


def section(results: Results) -> Section | None:
    """Configuration of the run that the page is about, and a row per run."""
    listings = []
    run = results.run or next(iter(results.runs.to_pylist()), None)
    if run is not None:
        params = json.loads(run.get("params") or "{}")
        settings = {"run": run["run_id"], **params, **json.loads(run.get("input_files") or "{}")}
        table = pa.table(
            {
                "option": pa.array(list(settings), pa.string()),
                "value": pa.array(
                    [value if isinstance(value, str) else json.dumps(value) for value in settings.values()],
                    pa.string(),
                ),
            }
        )
        listings.append(Listing("Configuration", table))
    listings.append(Listing("Runs", pick(results.runs, _SHOWN)))
    nodes = results.table("inputs/nodes")
    if nodes is not None:
        listings.append(Listing("Input: nodes", pick(nodes, nodes.column_names)))
    return Section("What was asked", listings=listings, warnings=sorted(set(results.lacks)))
