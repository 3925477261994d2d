"""What of a log was not read as an access: malformed lines, counted and sampled, and lines of other operations."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError
from ecjax.units import count_text

OTHER_KINDS = "lines of other kinds"
SAMPLED = 100  # lines of each reason that are named
_WORDS = 6
_TIMED = 1 << 16  # durations that a median is of


class Rejected(NamedTuple):
    """A malformed line: its file, its number from 1, what is wrong with it, and its text if that may be shown."""

    file: str
    line: int
    reason: str
    text: str | None


@dataclass
class Tally:
    """Counts of one pass over a log; begun anew by each pass.

    Attributes:
        most: malformed lines that are allowed: a share of all lines if below 1, else a number.
        lines: read, without empty ones and comments.
        reasons: malformed lines by what is wrong.
        samples: the first of each reason.
        others: lines that were left out since they move no data, by operation.
        unsuccessful: lines whose status says that the request failed.
        dropped: accesses whose duration is left out, since the log has no column for it.
        untimed: accesses without a duration, of a log that has durations.
        timed: accesses by the word of their lines that durations were read of, where it is not plain.
        durations: the first of these durations (s), by word.
    """

    most: float
    lines: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    samples: list[Rejected] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    unsuccessful: int = 0
    dropped: int = 0
    untimed: int = 0
    timed: Counter[str] = field(default_factory=Counter)
    durations: dict[str, np.ndarray] = field(default_factory=dict)

    def begin(self) -> None:
        """Forget an earlier pass."""
        self.lines = self.unsuccessful = self.dropped = self.untimed = 0
        self.reasons.clear()
        self.samples.clear()
        self.others.clear()
        self.timed.clear()
        self.durations.clear()

    @property
    def rejected(self) -> int:
        """Malformed lines."""
        return sum(self.reasons.values())

    def add_durations(self, word: str, seconds: np.ndarray) -> None:
        """Note durations (s; NaN: none) that were read of such a word of their lines."""
        self.timed[word] += len(seconds)
        known = self.durations.get(word, seconds[:0])
        more = seconds[np.isfinite(seconds)][: _TIMED - len(known)]
        self.durations[word] = np.concatenate([known, more]) if more.size else known

    def join(self, again: "Tally") -> None:
        """Add what was found among the lines of other kinds, when all lines were read again for another kind."""
        kind = again.lines - again.others.pop(OTHER_KINDS, 0)
        self.others[OTHER_KINDS] -= kind
        self.others += again.others  # leaves out what is 0
        room = {reason: SAMPLED - self.reasons[reason] for reason in again.reasons}
        for sample in again.samples:
            if room[sample.reason] > 0:
                room[sample.reason] -= 1
                self.samples.append(sample)
        self.reasons += again.reasons
        self.unsuccessful += again.unsuccessful

    def check(self, source: str, finished: bool) -> None:
        """Refuse a log with more malformed lines than allowed.

        Args:
            source: of the log, for the message.
            finished: whether all lines were read; before that only a number can be exceeded.

        Raises:
            UserError: there are too many.
        """
        if self.most < 1 and not finished:
            return
        allowed = self.most * self.lines if self.most < 1 else self.most
        if self.rejected > allowed:
            first = self.samples[0]
            raise UserError(
                f"{source}: found {count_text(self.rejected, 'malformed line')} of {self.lines:,}, the first in "
                f"{first.file}, line {first.line}: {first.reason}; allowed: max_rejects={self.most:g}"
            )

    def notices(self) -> list[str]:
        """What was left out, a sentence each."""
        sentences = []
        if self.rejected:
            listed = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
            sentences.append(
                f"Malformed and left out: {self.rejected:,} of {count_text(self.lines, 'line')} ({listed}): dataset "
                "rejects."
            )
        if self.others:
            listed = ", ".join(f"{count:,} {word}" for word, count in self.others.most_common(_WORDS))
            more = f" and {len(self.others) - _WORDS} more kinds" if len(self.others) > _WORDS else ""
            lines = count_text(sum(self.others.values()), "line")
            sentences.append(f"Left out as they read or write no object: {lines}, {listed}{more}.")
        if self.unsuccessful:
            sentences.append(
                f"{count_text(self.unsuccessful, 'request')} without success (status not 2xx) "
                f"{'is' if self.unsuccessful == 1 else 'are'} left out."
            )
        if self.dropped:
            sentences.append(
                f"The durations of {count_text(self.dropped, 'access', 'accesses')} are left out, as the beginning of "
                "the log has none: what comes from there on is read with them as a log of its own."
            )
        if self.untimed:
            sentences.append(
                f"{count_text(self.untimed, 'access has', 'accesses have')} no duration: sojourn times, and how many "
                "are in the system, are of the others."
            )
        for word, count in self.timed.most_common():
            median = f": median {np.median(self.durations[word]):.3g} s" if self.durations[word].size else ""
            sentences.append(f"{count_text(count, 'duration is', 'durations are')} {word}{median}.")
        return sentences
