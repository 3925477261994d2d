"""What runs of ``ecjax optimize`` have in common: the problem at a point of the sweep, and the laws of its nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ecjax.errors import UserError
from ecjax.model import Nodes
from ecjax.planning import Lanes, Problem, scaled
from ecjax.problem.classes import Classes
from ecjax.problem.earlier_plan import EarlierPlan
from ecjax.problem.identity import Identity
from ecjax.problem.service_laws import depends_on_size, served_nodes, service_laws
from ecjax.problem.small_reads import SmallTraffic, counted_as_full
from ecjax.simulation.laws import Laws
from ecjax.studies.optimize.arrivals import LoggedArrivals
from ecjax.studies.optimize.floors import Judged
from ecjax.studies.optimize.options import OptimizeOptions


class Lane(NamedTuple):
    """What the problem of a run is traded and multiplied by.

    Attributes:
        theta: s per dollar of mean cost per file, whatever ``theta_per`` says.
        rate_scale: of all rates.
        size_scale: of all file sizes.
    """

    theta: float
    rate_scale: float
    size_scale: float


@dataclass(frozen=True, eq=False)
class Case:
    """The problem at one k, d and scaling of the classes' rates, with all that its runs have in common.

    Attributes:
        problem: before the scaling of a lane; of full reads, where files have small ones too.
        fixed_lengths: the same with the code lengths of the files as floor, which queues by class keep.
        lanes: of all its runs; theta is in s per dollar of mean cost per file.
        names: ids.
        nodes: checked table.
        files: checked table, overrides applied.
        earlier: a plan to start from, or None.
        classes: of the files, for queues by class; else None.
        k: what k of every file was set to, or None.
        d: what d of every file was set to, or None.
        class_rate_scale: JSON: what rates of the files were multiplied by, by class; or None.
        input_id: fingerprint of both tables.
        parameters: by name, what else changes results: network, plan_run, the log and how it is read.
        places: by name, where the input tables and the earlier plan are, or how nodes were described.
        arrivals: of a log, that rates come from and that latencies are estimated for; or None.
        what_if: scenario that the tables were changed for, or None: they are as they are.
        error: why no placement is allowed in that scenario, or with that code, or None.
        code: that all files have, or None: they have k's of their own.
        floors: that follow from a durability, one for each k; none where none is asked for.
        small: small reads of the files, or None.
    """

    problem: Problem
    fixed_lengths: Problem
    lanes: Lanes
    names: Identity
    nodes: pa.Table
    files: pa.Table
    earlier: EarlierPlan | None
    classes: Classes | None
    k: int | None
    d: int | None
    class_rate_scale: str | None
    input_id: str
    parameters: dict[str, Any]
    places: dict[str, Any]
    arrivals: LoggedArrivals | None = None
    what_if: str | None = None
    error: str | None = None
    code: str | None = None
    floors: Sequence[Judged] = ()
    small: SmallTraffic | None = None

    def placed(self, size_scale: float) -> Problem:
        """The problem before scaling that placements of lanes of this size_scale are made for."""
        return self.problem if self.small is None else counted_as_full(self.problem, self.small, size_scale)

    def lane(self, number: int) -> Lane:
        """One of the lanes."""
        lanes = self.lanes
        return Lane(*(float(part[number]) for part in (lanes.theta, lanes.rate_scale, lanes.size_scale)))

    def problem_of(self, lane: Lane) -> Problem:
        """The problem as a lane scales it."""
        return scaled(self.problem, lane.rate_scale, lane.size_scale)


def laws_of(options: OptimizeOptions, case: Case, lane: Lane, nodes: pa.Table | None = None) -> Laws:
    """Laws of the nodes' services in the family of ``service``.

    Args:
        options: of the study.
        case: whose files are read.
        lane: of the run.
        nodes: checked table instead of the case's.
    """
    table, files = case.nodes if nodes is None else nodes, case.problem.files
    return service_laws(table, files, options.service, options.size_scaling, lane.size_scale)


def nodes_of(options: OptimizeOptions, nodes: pa.Table, chunk_bytes: float) -> Nodes:
    """Nodes that serve by the laws of ``service``.

    Args:
        options: of the study.
        nodes: checked table.
        chunk_bytes: mean size of the chunks read, B, before it is scaled.

    Raises:
        UserError: the family has no law with a node's moments, or one for each of several sizes.
    """
    if len(set(options.size_scale)) > 1 and depends_on_size(nodes, options.service):
        raise UserError(
            f"size_scale: found {len(options.size_scale)} values with service={options.service}, whose laws are "
            "made for one chunk size where services are affine in it; allowed: one value, or service=auto"
        )
    return served_nodes(nodes, chunk_bytes * options.size_scale[0], options.service, options.size_scaling)
