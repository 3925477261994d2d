import io
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ecjax.studies.analyze import burst_notices
from ecjax.studies.analyze.burst_words import burstiness_text, scale_text
from ecjax.studies.analyze.options import AnalyzeOptions
from ecjax.studies.analyze.study import analyze_study
from ecjax.tables.importers import open_trace
from ecjax.tables.read import read_input
from ecjax.tables.recommendation import read_recommendation
from ecjax.tables.results import read_results
from ecjax.tables.statistics.scan import scan
from ecjax.traffic.burstiness import BURSTIER, POISSON, REGULAR, UNKNOWN


def poisson_times(rate, length_s, seed=0):
    random = np.random.default_rng(seed)
    return np.sort(random.uniform(0, length_s, random.poisson(rate * length_s)))


def burst_times(seed=1):
    """A burst of 10 s with about 200 reads, every 100 s."""
    random = np.random.default_rng(seed)
    return np.sort(np.concatenate([100 * i + random.uniform(0, 10, 200) for i in range(40)]))


def analysed(folder, times, width=80, **columns):
    """What was printed of the analysis of a log of reads, on one line; its results are in ``folder``/out."""
    columns = {"file_id": np.arange(len(times)) % 50, "op": "read", "bytes": 1e6, **columns}
    log = pd.DataFrame({"request_id": np.arange(len(times)), "arrival_s": times} | columns)
    log.to_parquet(folder / "log.parquet", index=False)
    console = Console(file=io.StringIO(), width=width)
    options = AnalyzeOptions(trace=str(folder / "log.parquet"), out=str(folder / "out"), k=2, figures=False)
    assert analyze_study(options, console) == 0
    # a command to copy is one line
    lines = [line for line in console.file.getvalue().splitlines() if not line.startswith("Next: ")]
    assert all(len(line) <= width for line in lines)
    return " ".join(console.file.getvalue().split())


def notices(folder):
    return read_results(folder / "out", "traces").iloc[0]["notices"].splitlines()


def test_a_bursty_class_beside_a_calm_one(tmp_path):
    calm, bursty = poisson_times(5, 4000), burst_times()
    order = np.argsort(np.concatenate([calm, bursty]), kind="stable")
    classes = np.repeat(["calm", "in bursts"], [len(calm), len(bursty)])[order]
    times = np.concatenate([calm, bursty])[order]
    text = analysed(
        tmp_path, times, service_class=classes, op=np.where(np.arange(len(times)) % 9, "read", "write")
    )
    assert "reads burstier than Poisson at scales above" in text and "writes burstier than Poisson" in text
    assert "class calm: reads are as Poisson at scales up to" in text
    assert "class in bursts: reads are burstier than Poisson at scales above" in text
    table = read_results(tmp_path / "out", "burstiness")
    names = [
        (op, None if pd.isna(name) else name)
        for op, name in table.groupby(["op", "service_class"], dropna=False).groups
    ]
    assert set(names) == {("read", None), ("write", None), ("read", "calm"), ("read", "in bursts")}
    calm_rows = table[table["service_class"] == "calm"]
    assert set(calm_rows["verdict"]) == {POISSON, UNKNOWN}
    long = table[(table["service_class"] == "in bursts") & table["scale_s"].between(4, 100)]
    assert set(long["verdict"]) == {BURSTIER} and (long["dispersion"] > 10).all()
    (notice,) = [line for line in notices(tmp_path) if "burstier" in line]
    assert "assume Poisson arrivals" in notice and "arrivals=trace" in notice
    sentence = read_recommendation(tmp_path / "out").sentence
    assert "Reads come in bursts (the busiest minute has" in sentence
    assert f"Next: ecjax optimize objective=trace trace={tmp_path / 'out'} nodes=" in sentence
    rates = read_results(tmp_path / "out", "class_rates")
    assert rates.groupby("service_class")["factor"].max()["in bursts"] > 5
    assert rates["reads"].sum() == read_results(tmp_path / "out", "rates")["reads"].sum()
    busiest = read_results(tmp_path / "out", "busiest")
    minute = busiest[(busiest["window_s"] == 60) & (busiest["service_class"] == "in bursts")].iloc[0]
    mean = (classes[np.arange(len(times)) % 9 != 0] == "in bursts").sum() / 4000 * 60
    assert minute["mean_ratio"] == pytest.approx(minute["requests"] / mean, rel=0.01)
    assert 1.5 < minute["mean_ratio"] < 1.8


def test_rates_are_a_table_that_other_jobs_take(tmp_path):
    times = burst_times()
    analysed(tmp_path, times)
    rates = read_input(tmp_path / "out" / "rates", "rates").to_pandas()
    length = rates["duration_s"].sum()
    assert length == pytest.approx(times[-1] - times[0], rel=0.001)
    assert (rates["factor"] * rates["duration_s"]).sum() / length == pytest.approx(1)
    assert rates["reads"].sum() == len(times) and rates["factor"].max() > 5
    np.testing.assert_allclose(rates["start_s"].diff().dropna(), rates["duration_s"][:-1])


def test_the_last_interval_of_rates_is_no_short_rest(tmp_path):
    """Four reads in each of 101 s: 12 intervals of 9 s would leave 2 s, whose rate goes on in replays."""
    analysed(tmp_path, np.repeat(np.arange(101.0), 4))
    rates = read_results(tmp_path / "out", "rates")
    assert rates["duration_s"].tolist() == [9.0] * 10 + [11.0]
    assert rates["reads"].tolist() == [36] * 10 + [44]
    np.testing.assert_allclose(rates["factor"], 1)
    np.testing.assert_allclose(rates["start_s"], 9.0 * np.arange(11))


def test_poisson_reads_are_as_poisson_and_nobody_speaks_of_one_p_value(tmp_path):
    text = analysed(tmp_path, poisson_times(20, 1000))
    assert "reads as Poisson at scales up to" in text and "burstier" not in text
    assert "agrees with Poisson arrivals" in text
    assert " p = " not in text and " p < " not in text and "bursts" not in text


def test_a_log_with_a_hole_says_what_holds_without_it(tmp_path):
    times = poisson_times(20, 3000)
    analysed(tmp_path, times[(times < 1000) | (times > 1800)])
    (notice,) = [line for line in notices(tmp_path) if "No request comes" in line]
    assert notice.startswith("No request comes for 13.3 min from 16.7 min on: 26.7 % of the log.")
    assert (
        re.search(r"reads come at (19\.\d*|20|20\.\d*) per s", notice)
        and "in between, as Poisson at scales up to" in notice
    )
    assert "burstier" not in notice


def test_what_is_between_holes_begins_and_ends_with_the_ticks_of_reads(tmp_path):
    """Milliseconds since 1970, which a float rounds to 0.24 us, and five holes of 100 s."""
    places = np.sort(np.random.default_rng(7).integers(0, 3_000_000, 6000))
    places = places[places % 500_000 < 400_000]
    analysed(tmp_path, 1.7e9 + places / 1000)
    times = scan(open_trace(tmp_path / "log.parquet")).times
    assert times.reads.tick_s == 0.001
    parts = np.split(places - places[0], np.flatnonzero(np.diff(places) > 90_000) + 1)
    segments = burst_notices._segments(times.reads, times.silences)
    assert segments == [(part[0], part[-1] + 1) for part in parts] and len(parts) == 6


def test_few_requests_of_one_file(tmp_path):
    analysed(tmp_path, poisson_times(1, 400), file_id="a")
    few, one = (line for line in notices(tmp_path) if "few" in line or "one file" in line)
    assert "requests are few: the rate is known to ± 5 %" in few
    assert "common or of single files, cannot be told" in one
    table = read_results(tmp_path / "out", "burstiness")
    assert {POISSON, UNKNOWN} >= set(table["verdict"])


def test_nothing_is_said_below_the_step_of_the_clock(tmp_path):
    times = np.floor(poisson_times(1, 100_000) / 60) * 60
    text = analysed(tmp_path, times)
    table = read_results(tmp_path / "out", "burstiness")
    assert table["scale_s"].min() == 60 and set(table["verdict"]) == {POISSON, UNKNOWN}
    assert "as Poisson at scales of 60 s to" in text
    (notice,) = [line for line in notices(tmp_path) if "clock ticks every 60 s" in line]
    assert "nothing is known of shorter bursts" in notice
    assert read_results(tmp_path / "out", "busiest")["window_s"].min() == 60


def test_reads_at_one_time_have_no_scales(tmp_path):
    text = analysed(tmp_path, np.full(2000, 5.0))
    assert "2,000 requests arrive, all at one time" in text
    assert not (tmp_path / "out" / "burstiness").exists()


def test_classes_of_a_log_with_other_names(tmp_path):
    times = poisson_times(20, 300)
    log = pd.DataFrame({"ts": times, "key": np.arange(len(times)) % 5, "size": 10})
    log["tenant"] = np.where(np.arange(len(times)) % 2, "a", "b")
    log.to_csv(tmp_path / "log.csv", index=False)
    options = AnalyzeOptions(
        trace=str(tmp_path / "log.csv"),
        columns={"arrival_s": "ts", "file_id": "key", "bytes": "size", "service_class": "tenant"},
        out=str(tmp_path / "out"),
        figures=False,
    )
    assert analyze_study(options, Console(file=io.StringIO())) == 0
    table = read_results(tmp_path / "out", "burstiness")
    assert set(table["service_class"].dropna()) == {"a", "b"}


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (
            [POISSON, POISSON, BURSTIER, UNKNOWN, BURSTIER, UNKNOWN],
            "burstier than Poisson at scales above 4 s; as Poisson at scales of 1 s to 2 s",
        ),
        ([REGULAR, REGULAR, UNKNOWN], "more regular than Poisson at scales above 1 s"),
        (
            [POISSON, BURSTIER, POISSON, UNKNOWN],
            "burstier than Poisson at scales of 2 s; as Poisson at scales of 1 s and of 4 s",
        ),
        ([UNKNOWN, POISSON, POISSON], "as Poisson at scales of 2 s to 4 s"),
        (
            [REGULAR, BURSTIER, BURSTIER],
            "burstier than Poisson at scales above 2 s; more regular than Poisson at scales of 1 s",
        ),
        ([UNKNOWN, UNKNOWN], "too few to tell whether they are Poisson, at any scale"),
    ],
)
def test_verdicts_in_words(verdicts, words):
    assert burstiness_text([2.0**i for i in range(len(verdicts))], verdicts) == words


def test_scales_are_in_seconds_where_these_are_easy_to_read():
    assert [scale_text(s) for s in (2.0**-20, 0.0625, 2.0, 512.0, 4096.0)] == [
        "0.954 µs",
        "62.5 ms",
        "2 s",
        "512 s",
        "68.3 min",
    ]


def test_rates_of_the_busiest_window(tmp_path):
    times = burst_times()
    log = pd.DataFrame({"request_id": np.arange(len(times)), "arrival_s": times, "bytes": 1e6, "op": "read"})
    log["file_id"] = np.where(times // 100 % 2, "odd", "even")
    log.to_parquet(tmp_path / "log.parquet")
    options = {"trace": str(tmp_path / "log.parquet"), "out": str(tmp_path / "out"), "k": 2, "figures": False}
    console = Console(file=io.StringIO(), width=200)
    assert analyze_study(AnalyzeOptions(**options, rate="peak", window_s=10.0), console) == 0
    assert "Rates are those of the busiest 10 s" in console.file.getvalue()
    row = read_results(tmp_path / "out", "traces").iloc[0]
    start = times[0] + row["window_start_s"]
    inside = log[(times > start - 1e-5) & (times < start + row["window_s"] - 1e-5)]
    assert (row["rate"], row["window_s"], len(inside)) == ("peak", 10, 200)
    files = read_input(tmp_path / "out" / "files", "files").to_pandas().set_index("file_id")["rate_per_s"]
    assert files.sum() == 20 and files[inside["file_id"].iloc[0]] == 20
    # the mean is another run in the same folder
    assert analyze_study(AnalyzeOptions(**options), console) == 0
    runs = read_results(tmp_path / "out", "traces").set_index("rate")
    assert set(runs.index) == {"mean", "peak"}
    assert runs.loc["mean", "window_s"] == runs.loc["mean", "span_s"]
