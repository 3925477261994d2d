"""What a claim of a paper is, and what can become of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ecjax.studies.reproduce.options import FULL

if TYPE_CHECKING:
    from ecjax.studies.reproduce.evidence import Evidence


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    IN_SHAPE = "holds in shape"  # the direction, not the size, or in another setting than the printed one
    FAILS = "does not hold"
    TESTBED = "testbed"  # seconds of the authors' machines, which no program can judge
    NOT_JUDGED = "not judged"  # a study that it needs failed


class Kind(StrEnum):
    """What sort of statement a claim is."""

    REPRODUCIBLE = "reproducible"
    TESTBED = "testbed"
    UNDECIDABLE = "undecidable"  # the paper does not print enough


class Finding(NamedTuple):
    """What a rule decides.

    Attributes:
        verdict: of the claim.
        ours: the claim's quantity; None where it is no number.
        low: lower end of its 95 % interval, or the least of several.
        high: upper end, or the largest of several.
        why: evidence in a sentence; never empty unless the claim holds.
    """

    verdict: Verdict
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""


Rule = Callable[["Evidence"], Finding]
# writes input tables into a folder for a size, and returns the words that name them
Inputs = Callable[[Path, str], tuple[str, ...]]


@dataclass(frozen=True)
class Study:
    """A command of another job.

    Attributes:
        name: of the study within its paper.
        words: the job, and words of its command line.
        small: further words for ``size=small``.
        full: further words for ``size=full``.
        inputs: makes input tables, where the command needs some.
        replays: name of the study whose plans it replays, one that comes before it; empty: none.
    """

    name: str
    words: tuple[str, ...]
    small: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    inputs: Inputs | None = None
    replays: str = ""

    @property
    def job(self) -> str:
        """Name of the job that runs it."""
        return self.words[0]

    def sized(self, size: str) -> tuple[str, ...]:
        """Words of its command line at a size, without those of its inputs."""
        return (*self.words[1:], *(self.full if size == FULL else self.small))


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and the rule that judges it.

    Attributes:
        id: its name, which begins with that of the paper.
        where: figure, table, section or equation.
        text: what the paper says, in other words.
        rule: judges it.
        studies: names of the studies whose tables the rule reads.
        paper_value: as printed; empty where nothing is printed.
        quantity: what ``Finding.ours`` is, with its unit; empty where the claim is no number.
        kind: of statement.
        timed: whether the rule measures times of the machine it runs on, which may decide otherwise.
    """

    id: str
    where: str
    text: str
    rule: Rule
    studies: tuple[str, ...] = ()
    paper_value: str = ""
    quantity: str = ""
    kind: Kind = Kind.REPRODUCIBLE
    timed: bool = False


@dataclass(frozen=True)
class Judged:
    """A claim, what became of it, and the command that computes it."""

    claim: Claim
    finding: Finding
    command: str


@dataclass(frozen=True)
class Paper:
    """A paper: its studies and its claims, in their order.

    Attributes:
        name: one of ``options.PAPERS``.
        title: of the paper.
        studies: what the claims need.
        claims: all of them.
    """

    name: str
    title: str
    studies: tuple[Study, ...]
    claims: tuple[Claim, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check that names are unique and every study is there.

        Raises:
            ValueError: they are not: a mistake of the program.
        """
        names = [study.name for study in self.studies]
        ids = [claim.id for claim in self.claims]
        missing = {name for claim in self.claims for name in claim.studies} - set(names)
        missing |= {study.replays for study in self.studies if study.replays} - set(names)
        if len(set(names)) < len(names) or len(set(ids)) < len(ids) or missing:
            raise ValueError(f"{self.name}: names twice, or no study {sorted(missing)}")
