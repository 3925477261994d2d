"""What a case reports."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One variant of a case at one size: a row of the ``bench`` dataset, whose schema says what a field means.

    ``target_s``, ``target_bytes`` and ``target_gap`` are what the variant should stay within; None without a target.
    """

    variant: str
    size: str
    median_s: float
    min_s: float
    repeats: int
    rows: int | None = None
    node_count: int | None = None
    lanes: int | None = None
    dtype: str | None = None
    compile_s: float | None = None
    peak_rss_bytes: int | None = None
    objective: float | None = None
    lower_bound: float | None = None
    gap: float | None = None
    iterations: int | None = None
    bytes_moved: float | None = None
    operations: float | None = None
    limit_share: float | None = None
    target_s: float | None = None
    target_bytes: int | None = None
    target_gap: float | None = None
    note: str | None = None

    @property
    def met(self) -> bool | None:
        """Whether every target is met, that of time by the fastest run; None without a target."""
        pairs = (
            (self.min_s, self.target_s),
            (self.peak_rss_bytes, self.target_bytes),
            (self.gap, self.target_gap),
        )
        judged = [value is not None and value <= limit for value, limit in pairs if limit is not None]
        return all(judged) if judged else None
