"""What a line of the table of cases says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Runs = Literal["repeated", "warm once", "once"]


class Sizes(NamedTuple):
    """A parameter that is another one where sizes are small."""

    full: object
    quick: object


@dataclass(frozen=True)
class Target:
    """What a variant should stay within; None: no target.

    Attributes:
        seconds: of its fastest run.
        rows_per_s: instead of ``seconds``, which are then the rows of the variant divided by this.
        bytes: of peak memory, B.
        gap: relative, to the lower bound.
    """

    seconds: float | None = None
    rows_per_s: float | None = None
    bytes: int | None = None
    gap: float | None = None


@dataclass(frozen=True)
class Part:
    """A set-up with its parameters: a part of a case.

    Attributes:
        case: that it is part of; parts of a case run in the order of the table, in one process.
        setup: "module:function" under ``setups``: takes a ``Runner`` and the parameters, gives rows.
        parameters: plain values, or ``Sizes``.
        targets: by pattern of the names of variants; the first that fits counts. There are none for small sizes.
        runs: of each variant: "repeated" as often as the user says, after a run that does not count; "warm once", the
            same for what takes long; "once", where even the first run counts.
        memory: whether rows tell the peak memory of the process so far.
        quick: whether it is one of the small sizes too.
    """

    case: str
    setup: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    runs: Runs = "repeated"
    memory: bool = False
    quick: bool = True

    def sized(self, quick: bool) -> dict[str, object]:
        """The parameters at full or small sizes."""
        return {
            name: (value.quick if quick else value.full) if isinstance(value, Sizes) else value
            for name, value in self.parameters.items()
        }
