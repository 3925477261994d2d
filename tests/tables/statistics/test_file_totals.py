import numpy as np
import pandas as pd
import pytest

from ecjax.errors import UserError
from ecjax.tables.statistics.files import FileTotals, interarrival_cv


def accesses(seed=0, rows=400, files=23):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "file": random.integers(0, files, rows),
            "arrival": np.cumsum(random.exponential(0.1, rows)),
            "write": random.random(rows) < 0.3,
            "bytes": random.integers(0, 100, rows).astype(float),
            "pieces": random.integers(1, 5, rows),
        }
    )


def test_totals_agree_with_pandas_whatever_the_batches():
    frame, totals = accesses(), FileTotals()
    for begin in range(0, len(frame), 33):
        part = frame.iloc[begin : begin + 33]
        totals.add(
            *(part[name].to_numpy() for name in ("file", "arrival", "write", "bytes", "pieces")),
            file_count=23,
        )
    grouped = frame.assign(
        reads=~frame["write"],
        read_bytes=frame["bytes"] * ~frame["write"],
        chunk=frame["bytes"] / frame["pieces"],
    ).groupby("file")
    expected = np.stack(
        [
            grouped["reads"].sum(),
            grouped["write"].sum(),
            grouped["read_bytes"].sum(),
            grouped["bytes"].sum() - grouped["read_bytes"].sum(),
            grouped["chunk"].max(),
            grouped["arrival"].first(),
            grouped["arrival"].last(),
            grouped["arrival"].apply(lambda t: ((t.diff() - t.diff().mean()) ** 2).sum()),
        ],
        axis=1,
    )
    np.testing.assert_allclose(totals.totals(23), expected, rtol=1e-12)
    gaps = grouped["arrival"].apply(lambda t: t.diff().std(ddof=1) / t.diff().mean())
    np.testing.assert_allclose(interarrival_cv(totals.totals(23)), gaps, rtol=1e-9)


def test_gaps_need_three_arrivals_apart():
    totals = FileTotals()
    files, arrivals = np.array([0, 1, 1, 2, 2, 2]), np.array([0.0, 0, 1, 1, 1, 1])
    totals.add(files, arrivals, np.zeros(6, bool), np.ones(6), np.ones(6, np.int64), file_count=3)
    assert np.isnan(interarrival_cv(totals.totals(3))).all()


def test_most_frequent_number_of_chunks_read():
    totals = FileTotals()
    files = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    chunks = np.array([4, 5, 4, 6, 3, 9, 9, 80])
    writes = np.array([False] * 5 + [True, True, False])
    for part in np.array_split(np.arange(8), 3):
        totals.add_chunk_counts(files[part], writes[part], chunks[part])
    # file 1: a tie goes to the smaller; file 2: writes do not count
    assert totals.chunks_read(4).tolist() == [4, 3, 80, 0]


def test_more_chunks_than_can_be_counted_are_refused():
    read, chunks = np.zeros(1, bool), np.array([2**24])
    with pytest.raises(
        UserError, match="column request_id: found a read of 16777216 chunks; allowed: at most 1677"
    ):
        FileTotals().add_chunk_counts(np.zeros(1, np.int64), read, chunks)
    FileTotals().add_chunk_counts(np.zeros(1, np.int64), ~read, chunks)  # of a write nobody needs to know it


def test_files_accessed_evenly_have_no_variation_however_they_are_cut():
    times = np.arange(1000) * 0.1 + 1e6
    files = np.arange(1000) % 3
    whole, merged = FileTotals(), FileTotals()
    for totals, cuts in ((whole, [0, 1000]), (merged, [0, 10, 11, 400, 1000])):
        for first, last in zip(cuts[:-1], cuts[1:], strict=True):
            part, own = FileTotals(), slice(first, last)
            part.add(
                files[own],
                times[own],
                np.zeros(last - first, bool),
                np.ones(last - first),
                np.ones(last - first),
                3,
            )
            totals.absorb(part, np.arange(3), 3)
    for totals in (whole, merged):
        assert interarrival_cv(totals.totals(3)).max() < 1e-8
