"""The fewest chunks beyond k that keep a durability."""

from collections.abc import Sequence
from typing import NamedTuple

from ecjax.durability.assessment import (
    MOST_STATES,
    NEGLIGIBLE_LOAD,
    Assessment,
    Failures,
    assess,
    loss_states,
    nines,
)
from ecjax.durability.codes import MOST_CHUNKS, Code
from ecjax.durability.repair_times import RepairCluster


class Target(NamedTuple):
    """What must be kept.

    Attributes:
        nines: of an object per year, at least; None: any
        any_loss: probability per year that anything is lost, at most; None: any
    """

    nines: float | None
    any_loss: float | None

    def kept_by(self, assessment: Assessment) -> bool:
        """Whether a code keeps it; none does whose repairs queue, as its losses are unknown."""
        return (
            assessment.repair_share <= NEGLIGIBLE_LOAD
            and (self.nines is None or nines(assessment.losses) >= self.nines)
            and (self.any_loss is None or assessment.any_loss_probability <= self.any_loss)
        )


class Floor(NamedTuple):
    """A number of chunks beyond k, and what a code of so many is worth.

    Attributes:
        code: k + that many
        assessment: of the code
        fewer: of the code with one chunk less; None where a domain takes more than that survives, or its repairs never
            catch up
        kept: whether it keeps the target; where none does, this is the code that has most nines
    """

    code: Code
    assessment: Assessment
    fewer: Assessment | None
    kept: bool


def mds(k: int, extra: int) -> Code:
    """The MDS code k+extra."""
    return Code(f"{k}+{extra}", k, 0, extra)


def longest(k: int, clusters: Sequence[RepairCluster], most: int) -> int:
    """Most chunks beyond k with which a code is judged, however many nines that has.

    Args:
        k: data chunks
        clusters: as of ``floor_of``
        most: chunks of a group that there is room for
    """
    extra = 0
    while k + extra < min(most, MOST_CHUNKS) and not too_many_states(mds(k, extra + 1), clusters):
        extra += 1
    return extra


def too_many_states(code: Code, clusters: Sequence[RepairCluster]) -> bool:
    """Whether the chain of a group's losses is too long to be solved, in any of the spreads."""
    return any(loss_states(code, each) > MOST_STATES for each in clusters)


def floor_of(
    k: int, clusters: Sequence[RepairCluster], failures: Failures, target: Target, most: int
) -> Floor | None:
    """The fewest chunks beyond k with which the target is kept; None where no code of this k can be judged.

    Codes end with the room for them, with ``MOST_CHUNKS`` and with the first that has too many states of loss.

    Args:
        k: data chunks
        clusters: the cluster, once for every spread of a group over its domains with which the target is to be kept
        failures: rates per year
        target: what must be kept
        most: chunks of a group that there is room for
    """
    fewer, best = None, None
    for extra in range(1, min(most, MOST_CHUNKS) - k + 1):
        code = mds(k, extra)
        if too_many_states(code, clusters):
            break
        assessments = _assessments(code, clusters, failures)
        worst = max(assessments, key=lambda each: each.losses, default=None)
        if worst is not None:
            floor = Floor(code, worst, fewer, all(map(target.kept_by, assessments)))
            if floor.kept:
                return floor
            if best is None or worst.losses < best.assessment.losses:
                best = floor
        fewer = worst
    return best


def _assessments(code: Code, clusters: Sequence[RepairCluster], failures: Failures) -> list[Assessment]:
    """Of every spread; none where repairs never catch up, or a domain takes more chunks than the code survives."""
    if any(each.spread(code.n)[0] > code.parity for each in clusters):
        return []
    assessments = [assess(code, each, failures) for each in clusters]
    return [each for each in assessments if each is not None] if all(assessments) else []
