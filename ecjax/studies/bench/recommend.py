"""What a benchmark says in a sentence: what is the fastest, by how much, where it was measured, and what it costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from ecjax.studies.bench.measured import Measured
from ecjax.studies.bench.rows import Row
from ecjax.studies.spine.sentences import compared, listed
from ecjax.tables.recommendation import Recommendation
from ecjax.units import time_text

_PREFIX = "ecjax"  # variants of ecjax begin with it
_MOST_OTHERS, _MOST_CASES = 3, 6  # that are named
_SHORT = 60  # characters of a note that a sentence can hold


@dataclass(frozen=True)
class _Race:
    """The variants of a case at its largest size.

    Attributes:
        run_id: of the case.
        measured: the case.
        best: the fastest variant.
        others: the other ones that solved the same, the fastest first.
    """

    run_id: str
    measured: Measured
    best: Row
    others: list[Row]

    @property
    def factor(self) -> float:
        """How many times as long the other side takes, ecjax in its forms or what is beside it; 0 without one."""
        other_side = [row for row in self.others if _is_ecjax(row) != _is_ecjax(self.best)]
        return other_side[0].median_s / self.best.median_s if other_side else 0.0

    def sentence(self, cores: int) -> str:
        """The fastest variant, how much longer the others take, on what, and what it costs."""
        best = self.best
        where = f"{best.size} on {self.measured.device} ({cores} {'core' if cores == 1 else 'cores'})"
        begin = f"{self.measured.name}: {where}: {best.variant}"
        takes = f"{time_text(best.median_s)}{self._costs()}"
        if not self.others:
            return f"{begin} takes {takes}.{_target(best)}"
        named, more = self.others[:_MOST_OTHERS], self.others[_MOST_OTHERS:]
        behind = [
            f"{named[0].variant} takes {_ratio(named[0], best)}",
            *(f"{row.variant} {_ratio(row, best)}" for row in named[1:]),
            *([f"{len(more)} more at least {_ratio(more[0], best)}"] if more else []),
        ]
        equal = [row.variant for row in self.others if row.min_s <= best.median_s]
        apart = f" Over these repeats {listed(equal)} cannot be told from it." if equal else ""
        return f"{begin} is the fastest, {takes}; {listed(behind)} times as long.{apart}{_target(best)}"

    def _costs(self) -> str:
        """What its speed costs, in brackets: exactness, memory, and what compiling takes before."""
        best = self.best
        parts = [
            *([] if best.dtype is None else [best.dtype]),
            *self._exactness(),
            *([] if best.peak_rss_bytes is None else [f"{best.peak_rss_bytes / 1e6:,.0f} MB"]),
            *([] if not best.compile_s else [f"compiled in {time_text(best.compile_s)}"]),
        ]
        return f" ({', '.join(parts)})" if parts else ""

    def _exactness(self) -> list[str]:
        """How good its solution is: beside a bound, beside those of the others, or as its note says."""
        best = self.best
        if best.gap is not None:
            return [f"gap {best.gap:.2g}"]
        objectives = [row.objective for row in self.others if row.objective is not None]
        if best.objective is not None and objectives:
            words = compared(best.objective, min(objectives), "less than", "more than")
            return [f"objective {words.replace('equal', 'equal to')} the best of theirs"]
        return [best.note] if best.note is not None and len(best.note) <= _SHORT else []


def recommend(cases: Sequence[tuple[str, Measured]], cores: int) -> Recommendation | None:
    """The fastest variant of a case; of several cases how many ecjax wins and by how much at most.

    Args:
        cases: run id and what came of each case.
        cores: that it could use.

    Returns:
        The sentence with the run of the case; None where nothing was measured.
    """
    races = [_race(run, measured) for run, measured in cases if _timed(measured.rows)]
    if not races:
        return None
    if len(cases) == 1:
        return Recommendation(races[0].sentence(cores), races[0].run_id, "the only case")
    beside = [race for race in races if race.factor]
    first = max(beside or races, key=lambda race: race.factor)
    text = f"{len(races)} of {len(cases)} cases were measured{_within(cases)}."
    if not beside:
        return Recommendation(text, first.run_id, "the first case")
    won = sum(_is_ecjax(race.best) for race in beside)
    text += f" ecjax is the fastest in {won} of the {len(beside)} that time something else beside it. "
    return Recommendation(
        f"{text}The widest gap: {first.sentence(cores)}", first.run_id, "the largest factor"
    )


def case_sentence(run_id: str, measured: Measured, cores: int) -> str | None:
    """The sentence on one case; None where nothing was measured."""
    return _race(run_id, measured).sentence(cores) if _timed(measured.rows) else None


def _is_ecjax(row: Row) -> bool:
    return row.variant.startswith(_PREFIX)


def _timed(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.median_s > 0]


def _race(run_id: str, measured: Measured) -> _Race:
    """The fastest and the others at the largest size at which there are others; else at the largest of all."""
    problems: dict[tuple[str, int | None], list[Row]] = {}
    for row in _timed(measured.rows):
        problems.setdefault((row.size, row.rows), []).append(row)
    largest = max(problems.values(), key=lambda rows: (len(rows) > 1, rows[0].rows or 0))
    best, *others = sorted(largest, key=lambda row: row.median_s)
    return _Race(run_id, measured, best, others)


def _ratio(row: Row, best: Row) -> str:
    return f"{row.median_s / best.median_s:,.3g}"


def _target(row: Row) -> str:
    return {True: " It is within its target.", False: " It misses its target.", None: ""}[row.met]


def _within(cases: Sequence[tuple[str, Measured]]) -> str:
    """How many cases are within all their targets, and which are not."""
    judged = {
        measured.name: [row.met for row in measured.rows if row.met is not None] for _, measured in cases
    }
    judged = {name: met for name, met in judged.items() if met}
    missed = [name for name, met in judged.items() if not all(met)]
    if not judged:
        return ""
    named = [*missed[:_MOST_CASES], *(["others"] if len(missed) > _MOST_CASES else [])]
    without = f" (not {listed(named)})" if missed else ""
    return f", {len(judged) - len(missed)} of {len(judged)} within their targets{without}"
