"""``ecjax replay``: what plans and dispatch policies deliver, beside their estimate and their bound."""

import itertools
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.console import Console

from ecjax import precision
from ecjax.cores import available_cores
from ecjax.engine import Worker, open_engine
from ecjax.studies.replay import summary
from ecjax.studies.replay.figures import kinds as figures
from ecjax.studies.replay.inputs import Inputs, read_inputs
from ecjax.studies.replay.log import replay_log
from ecjax.studies.replay.options import ReplayOptions
from ecjax.studies.replay.plans import PlanCase, plan_cases
from ecjax.studies.replay.points import Item
from ecjax.studies.replay.rules import check_queues, checked, queues_of, weights_of
from ecjax.studies.replay.run import JOB, run, run_row
from ecjax.studies.spine.batches import Solved, run_batches
from ecjax.studies.spine.outcome import exit_code, runs_of
from ecjax.tables.ids import id_types
from ecjax.tables.store import ResultStore, run_id

Given = tuple[PlanCase, Inputs]  # what the replays of a plan share


def replay_study(options: ReplayOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some found no stable queues).

    Raises:
        UserError: something the user gave is wrong; no replay was written.
    """
    options = checked(options)
    if options.trace is not None and options.plan is None and options.arrivals != "trace":
        return replay_log(options, console)
    precision.use_compilation_cache()
    with ExitStack() as stack:
        # first of all: Ray starts processes, which is not safe once JAX has started threads; planning joins it
        engine = stack.enter_context(open_engine(options.engine))
        options.planning.engine = options.engine
        cases = plan_cases(options)
        for case in cases:
            check_queues(options, case)
        # a task per replay: its replications take the cores first, then replays do
        grid = [
            (shared, {_run_id(item, *shared, options): item})
            for shared in _given(options, cases)
            for item in _items(shared[0], options)
        ]
        names = list(dict.fromkeys(name for _, items in grid for name in items))
        ids = id_types(*(table for case in cases for table in (case.nodes, case.files)))
        store = stack.enter_context(ResultStore(options.out, ids, options.write))

        def keep(shared: Given) -> None:
            case, _ = shared
            store.write_input("nodes", case.input_id, case.nodes)
            store.write_input("files", case.input_id, case.files)

        run_batches(
            grid,
            partial(_solve, options),
            partial(_blank, options),
            store,
            engine,
            options.resume,
            "replaying",
            at_once=max(1, available_cores() // options.replications),
            keep=keep,
        )
    runs = runs_of(options.out, names)
    summary.show(runs, console, options)
    figures.draw(options.out, runs, options.figures, console)
    return exit_code(runs)


def _given(options: ReplayOptions, cases: list[PlanCase]) -> list[Given]:
    """Each plan with its other inputs, which plans for the same tables have in common."""
    read: dict[str, Inputs] = {}
    for case in cases:
        if case.input_id not in read:
            read[case.input_id] = read_inputs(options, case)
    return [(case, read[case.input_id]) for case in cases]


def _items(case: PlanCase, options: ReplayOptions) -> list[Item]:
    """The replays of a plan."""
    ways = itertools.product(
        options.policy,
        queues_of(options, case),
        options.service or ["auto"],
        options.rate_scale,
        options.size_scale,
    )
    return list(dict.fromkeys(Item(*way) for way in ways))


def _solve(options: ReplayOptions, shared: Given, items: dict[str, Item], worker: Worker) -> Solved:
    precision.use_compilation_cache()
    [(name, item)] = items.items()
    row, tables = run(name, item, *shared, options, worker)
    return [row], tables


def _blank(options: ReplayOptions, shared: Given, name: str, item: Item) -> dict[str, Any]:
    return run_row(name, item, shared[0], options)


def _run_id(item: Item, case: PlanCase, given: Inputs, options: ReplayOptions) -> str:
    names = (
        *("probes", "cancel", "hedge_delay_s", "hedges", "pareto_ratio", "arrivals"),
        *("burst_factor", "burst_share", "burst_mean_s", "decode_s_per_byte", "client_bandwidth_bytes_per_s"),
        *("requests", "replications", "estimate", "earlier_bounds"),
    )
    parameters = {name: getattr(options, name) for name in names} | asdict(item)
    parameters |= {"plan_run": case.run["run_id"], "inputs": given.fingerprints}
    shares = item.queue in ("partitioned", "shared")
    parameters["weights"] = weights_of(options, case).tolist() if shares else None
    return run_id(JOB, parameters, case.input_id, options.seed, "float64")
