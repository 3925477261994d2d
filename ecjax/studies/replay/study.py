"""``ecjax replay``: what plans and dispatch policies deliver, beside their estimate and their bound."""

from dataclasses import fields
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
from rich.console import Console

from ecjax import programs
from ecjax.console import log
from ecjax.cores import available_cores
from ecjax.display import without_secrets
from ecjax.engine import Engine
from ecjax.options import checked
from ecjax.studies.replay.figures.kinds import draw
from ecjax.studies.replay.inputs import Case, queues_of, read_cases
from ecjax.studies.replay.log import READ_WITH_LOGS, log_work, show_log
from ecjax.studies.replay.options import BY_WEIGHT, NO_PLAN, ReplayOptions
from ecjax.studies.replay.plans import Plan
from ecjax.studies.replay.recommend import recommend
from ecjax.studies.replay.run import items_of, solve
from ecjax.studies.replay.summary import show
from ecjax.studies.replay.tables import TABLES
from ecjax.studies.spine.batches import Batch
from ecjax.studies.spine.log_options import LogOptions
from ecjax.studies.spine.study import Work, run_study, unfinished
from ecjax.studies.spine.unused import say_unused
from ecjax.tables.ids import id_types
from ecjax.tables.recommendation import Recommendation


def replay_study(options: ReplayOptions, console: Console) -> int:
    """Run the replays; returns the exit code (0, or 1 where some found no stable queues).

    Raises:
        UserError: something the user gave is wrong; no replay was written.
    """
    unchecked, options = options, checked(options)
    programs.use_compilation_cache()
    if options.predicts_log:
        _say_unused_of_logs(unchecked, options)
    else:
        _say_unused(options)
    prepare, print_runs = (log_work, show_log) if options.predicts_log else (_work, show)

    def present(runs: pd.DataFrame) -> Recommendation | None:
        print_runs(runs, console, options)
        draw(options.out, runs, options.figures, console)
        return recommend(runs, options)

    # workers with GPUs are few: most replays are better off on all processors
    return run_study(TABLES, options, partial(prepare, options), present, console, options.device == "jax")


def _say_unused(options: ReplayOptions) -> None:
    """Options of policies and arrivals that are not replayed."""
    policies, arrivals = f"policy={','.join(options.policy)}", f"arrivals={options.arrivals}"
    if "power_of_d" not in options.policy:
        say_unused(options, ["probes"], policies)
    if "hedged" not in options.policy:
        say_unused(options, ["hedge_delay_s", "hedges", "hedge_budget"], policies)
    if not {"fork_join", "hedged"} & set(options.policy):
        say_unused(options, ["cancel"], policies)
    if "pareto" not in (options.service or []):
        say_unused(options, ["pareto_ratio"], f"service={','.join(options.service or [])}")
    if options.arrivals != "bursts":
        say_unused(options, ["burst_factor", "burst_share", "burst_mean_s"], arrivals)
    if options.arrivals == "trace":
        say_unused(options, ["requests"], arrivals)
    if options.plan not in (None, NO_PLAN):
        say_unused(options, ["planning"], f"plan={without_secrets(str(options.plan))}")


def _say_unused_weights(options: ReplayOptions, plans: list[Plan]) -> None:
    """Weights where no queue has them, which plans decide unless the options do."""
    queues = dict.fromkeys(queue for plan in plans for queue in queues_of(options, plan))
    if not BY_WEIGHT & queues.keys():
        say_unused(options, ["weights"], f"queue={','.join(queues)}")


def _say_unused_of_logs(unchecked: ReplayOptions, options: ReplayOptions) -> None:
    """Options of plans and replays where a log is predicted from itself, before and after the check."""
    beside = f"trace={without_secrets(str(options.trace))} without plan=FOLDER, which is predicted as it was logged"
    read = {*(item.name for item in fields(LogOptions)), *READ_WITH_LOGS}
    say_unused(options, [item.name for item in fields(options) if item.name not in read], beside)
    say_unused(unchecked, ["arrivals"], beside)  # checked, it is never as by default


def _work(options: ReplayOptions, engine: Engine) -> Work:
    cases = read_cases(options)
    _say_unused_weights(options, [case.plan for case in cases])
    if len(options.policy) > 1 and all(_reads_all(case) for case in cases):
        log.warning("every read takes all chunks of its file (n = k), so policies cannot differ")
    # a task per replay: its replications take the cores first, then replays do
    batches = [Batch(case, {item.run.run_id: item}) for case in cases for item in items_of(case, options)]
    return Work(
        [name for batch in batches for name in batch.items],
        unfinished(batches),
        partial(solve, options),
        id_types(*(table for case in cases for table in (case.plan.nodes, case.plan.files))),
        "replaying",
        inputs=_inputs,
        at_once=max(1, available_cores() // options.replications),
    )


def _reads_all(case: Case) -> bool:
    """Whether no read has a choice of nodes."""
    plan = case.plan
    return bool(np.all(np.asarray(plan.stored).sum(axis=1) <= np.asarray(plan.problem.k)))


def _inputs(case: Case) -> tuple[str, dict[str, pa.Table]]:
    return case.plan.run.input_id, {"nodes": case.plan.nodes, "files": case.plan.files}
