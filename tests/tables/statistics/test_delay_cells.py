import numpy as np
import pandas as pd

from ecjax.tables.statistics.affine import trimmed_cells
from ecjax.tables.statistics.bins import DELAY_BINS_PER_OCTAVE, bin_edges
from ecjax.tables.statistics.delays import SERVICE, SOJOURN, DelayCells


def rows(seed=0, count=6000):
    random = np.random.default_rng(seed)
    size = random.choice([1e5, 2e5, 1e6], count)
    return pd.DataFrame(
        {
            "node": random.integers(0, 5, count),
            "write": random.random(count) < 0.25,
            "size": size,
            "delay": np.where(
                random.random(count) < 0.05, np.nan, 0.01 + 1e-8 * size + random.exponential(0.02, count)
            ),
        }
    )


def gathered(frame, parts=7, quantity=SERVICE):
    cells = DelayCells()
    for part in np.array_split(np.arange(len(frame)), parts):
        cells.add(quantity, *(frame[name].to_numpy()[part] for name in ("node", "write", "size", "delay")))
    return cells.cells()


def test_cells_agree_with_pandas():
    frame = rows()
    cells = gathered(frame)
    grouped = frame.dropna().groupby(["node", "write", "size"])["delay"]
    keys = list(zip(cells.node.tolist(), cells.write.tolist(), cells.bytes.tolist(), strict=True))
    assert keys == list(grouped.groups)
    np.testing.assert_array_equal(cells.moments[:, 0], grouped.count())
    np.testing.assert_allclose(cells.moments[:, 1], grouped.mean(), rtol=1e-13)
    for p in range(2, 7):
        expected = grouped.apply(lambda x, p=p: ((x - x.mean()) ** p).sum())
        np.testing.assert_allclose(cells.moments[:, p], expected, rtol=1e-9, atol=1e-25)


def test_histograms_hold_every_delay_of_the_cell():
    frame = rows(1)
    cells = gathered(frame)
    number = len(cells.bytes)
    np.testing.assert_array_equal(
        np.bincount(cells.bin_cell, cells.bin_sums[:, 0], number), cells.moments[:, 0]
    )
    lower, upper = bin_edges(cells.bin, DELAY_BINS_PER_OCTAVE)
    means = cells.bin_sums[:, 1] / cells.bin_sums[:, 0]
    assert np.all((means >= lower * (1 - 1e-12)) & (means <= upper * (1 + 1e-12)))
    assert np.all(np.diff(cells.bin_cell) >= 0)


def test_trimming_agrees_with_sorting_and_dropping():
    frame = rows(2)
    cells = gathered(frame)
    kept, mean, std = trimmed_cells(cells)
    grouped = frame.dropna().groupby(["node", "write", "size"])["delay"]
    for place, (_, delays) in enumerate(grouped):
        ordered = np.sort(delays)[: len(delays) - len(delays) // 10]
        assert kept[place] == len(ordered)
        assert abs(mean[place] / ordered.mean() - 1) < 2e-3
        assert abs(std[place] / ordered.std() - 1) < 5e-3


def test_delays_that_do_not_vary_are_exact():
    frame = pd.DataFrame({"node": 0, "write": False, "size": 4096.0, "delay": np.full(57, 0.3)})
    kept, mean, std = trimmed_cells(gathered(frame))
    assert kept[0] == 52 and abs(mean[0] - 0.3) < 1e-14 and std[0] < 1e-8


def test_quantities_are_kept_apart_and_chosen():
    frame, cells = rows(3, 500), DelayCells()
    columns = [frame[name].to_numpy() for name in ("node", "write", "size", "delay")]
    cells.add(SOJOURN, *columns[:3], 2 * columns[3])
    cells.add(SERVICE, *columns)
    both = cells.cells()
    alone = both.choose(both.quantity == SERVICE)
    expected = gathered(frame, parts=1)
    for name in ("quantity", "node", "write", "bytes", "bin_cell", "bin"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(expected, name))
    np.testing.assert_allclose(alone.moments, expected.moments)
    np.testing.assert_allclose(alone.bin_sums, expected.bin_sums)


def test_sizes_of_one_class_have_their_mean():
    frame = pd.DataFrame({"node": 0, "write": False, "size": [1000.0, 1010.0, 0.0], "delay": [1.0, 2.0, 0.0]})
    cells = gathered(frame, parts=1)
    assert cells.bytes.tolist() == [0.0, 1005.0]
    assert cells.moments[:, 0].tolist() == [1, 2]
