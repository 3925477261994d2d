"""Which options of ``ecjax optimize`` go together. Imports nothing heavy: the command line reads it first."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ecjax.durability.codes import code_of
from ecjax.errors import UserError
from ecjax.options import Wrong
from ecjax.studies.optimize.class_rules import ORDERS
from ecjax.studies.optimize.objective_rules import TRACE
from ecjax.studies.spine.log_options import at_peak, shrinking

if TYPE_CHECKING:
    from ecjax.studies.optimize.options import OptimizeOptions

# what a streamed plan does without: option, and the only value that goes with it
_STREAM_ONLY: dict[str, Any] = {
    "queue": ["fcfs"],
    "method": ["certified"],
    "objective": "bound",
    "class_rate_scale": None,
    "max_chunks_per_node": 1,
    "migration_dollars_per_byte": 0.0,
    "network": None,
    "fixed_groups": False,
    "scenarios": [],
    "what_if": [],
    "polish": False,
    "plan": None,
    "trace": None,
    "codes": None,
    "durability_nines": None,
    "max_any_loss": None,
    "dtype": "float64",
}
# what plans for files with small reads do without: the same
SMALL_READS_ONLY: dict[str, Any] = {
    "queue": ["fcfs"],
    "objective": "bound",
    "max_chunks_per_node": 1,
    "network": None,
    "scenarios": [],
    "robust": "none",
    "polish": False,
    "stream": False,
    "trace": None,
    "plan": None,
    "class_rate_scale": None,
}
METHODS = ("certified", "published", "oblivious_lb", "random_cp", "max_ec")  # of queue=fcfs
GAP, TRACE_GAP = 1e-4, 1e-2  # where it is not set; of plans for a log, whose waits are not as exact
# options that stay at their defaults where a log is named, and why
_NOT_WITH_LOG = {
    "max_chunks_per_node": (1, "chunks served together have no queue of their own"),
    "queue": (["fcfs"], "estimates under a log's arrivals are of queues that serve first come, first served"),
    "what_if": ([], "reads are those of the log"),
    "class_rate_scale": (None, "reads are those of the log"),
}
# the same of plans for its arrivals
_NOT_BY_TRACE = {
    "robust": ("none", "placements are changed for the bound at mean rates"),
    "shrink": ("none", "plans are made for the reads as they came"),
    "rate": ("mean", "plans are made for all of the log, its peaks with it"),
    "compare_cold_start": (False, "every plan starts from nothing"),
}


CODES = "K+M as 8+3, copies as 3x"


def code_name(value: Any) -> str:
    """The name of a code in which any k chunks rebuild a file.

    Raises:
        Wrong: it is none.
    """
    code = code_of(str(value))
    if code is None or code.local_groups or code.checks or code.repair_read is not None:
        raise Wrong(str(value))
    return code.name


def together(options: "OptimizeOptions") -> "OptimizeOptions":
    """Options that go together, with what follows from them.

    Args:
        options: each checked alone, those of queues by class also with the others.

    Raises:
        UserError: they do not go together.
    """
    if "fcfs" in options.queue:
        for name in options.method or []:
            if name not in METHODS:
                raise UserError(f"method: found {name!r}; allowed: {', '.join(METHODS)}")
        if not options.method:
            raise UserError(f"method: found an empty list; allowed: {', '.join(METHODS)}")
    if options.stream:
        for name, only in _STREAM_ONLY.items():
            if getattr(options, name) != only:
                raise UserError(
                    f"{name}: found {getattr(options, name)} with stream=true; allowed with it: {only}"
                )
        if options.device == "jax":
            raise UserError("device: found jax with stream=true; allowed with it: auto, host")
    _check_durability(options)
    options = _for_trace(options)
    if options.plan is None:
        if options.start == "plan":
            raise UserError("start=plan: plan=FOLDER is missing, the folder of an earlier optimize")
        if options.plan_run or options.plan_where:
            raise UserError("plan_run and plan_where choose a run of plan=FOLDER: give plan too")
    else:
        options = replace(options, start="plan")
    per_node, per_site = options.max_chunks_per_node, options.max_chunks_per_site
    if options.objective not in ("bound", *ORDERS) and per_node != 1:
        raise UserError(
            f"objective={options.objective}: found max_chunks_per_node={per_node}; allowed: 1, as chunks served "
            "together have no estimate"
        )
    if per_site is not None and per_site < per_node:
        raise UserError(
            f"max_chunks_per_site: found {per_site}; allowed: at least max_chunks_per_node={per_node}"
        )
    if options.robust != "none" and not options.scenarios:
        raise UserError(f"robust={options.robust}: scenarios is empty; allowed: scenarios=node, site or both")
    return options


def _check_durability(options: "OptimizeOptions") -> None:
    if options.codes is not None and options.k is not None:
        raise UserError(f"k: found {_text(options.k)} with codes; allowed: one of them, codes have a k")
    at_sites = options.judges_durability and options.domain == "site"
    if at_sites and options.max_chunks_per_site is None:
        raise UserError(
            "domain=site: max_chunks_per_site is missing, the most chunks of a file that the loss of a site takes"
        )


def _for_trace(options: "OptimizeOptions") -> "OptimizeOptions":
    """Options that go with a log, or with none; of plans for its arrivals the gap is another where it is not set."""
    by_trace = options.objective == TRACE
    if options.trace_form != "wait" and not by_trace:
        raise UserError(
            f"trace_form={options.trace_form}: found objective={options.objective}; allowed with it: trace"
        )
    if options.trace is None:
        if by_trace:
            raise UserError(
                "objective=trace: trace=PATH is missing, the access log whose arrivals are planned for, or its analysis"
            )
        if at_peak(options):
            raise UserError("rate=peak: trace=PATH is missing, the access log that has the peak")
        if shrinking(options):
            raise UserError("shrink=gamma: trace=PATH is missing, the access log that has the reads")
        return options
    if by_trace and options.method != ["certified"]:
        raise UserError(
            f"method: found {', '.join(options.method or [])} with objective=trace; allowed with it: certified"
        )
    beside = "objective=trace" if by_trace else f"trace={options.trace}"
    for name, (only, why) in (_NOT_WITH_LOG | (_NOT_BY_TRACE if by_trace else {})).items():
        value = getattr(options, name)
        if value != only:
            raise UserError(
                f"{name}: found {_text(value)} with {beside}; allowed with it: {_text(only)}, as {why}"
            )
    return replace(options, gap=TRACE_GAP) if by_trace and options.gap == GAP else options


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value).lower()
