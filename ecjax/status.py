"""How one item of a batch ended: a failure is a row with a status, never an exception for the batch."""

from enum import StrEnum


class Status(StrEnum):
    """The status column of the ``runs`` dataset."""

    OK = "ok"
    NOT_CONVERGED = "not_converged"  # the iteration limit came first; the plan is feasible and is reported
    NOT_STATIONARY = (
        "not_stationary"  # latencies of a replay still drift; its means depend on how long it was
    )
    UNSTABLE = "unstable"  # no plan with every node load below 1 was found
    INFEASIBLE = "infeasible"  # the constraints contradict each other
    FAILED = "failed"  # an error; its text is in the row

    @property
    def finished(self) -> bool:
        """Whether a resumed job may skip the run."""
        return self in (Status.OK, Status.NOT_CONVERGED, Status.NOT_STATIONARY)
