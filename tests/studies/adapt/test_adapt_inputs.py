import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.adapt.inputs import read_cases
from ecjax.studies.adapt.options import AdaptOptions

TRACES = Path(__file__).parents[3] / "traces"
STEPS = [[0, 10], [200, 70], [400, 10], [600, 0]]


def cases(**options):
    return read_cases(checked(AdaptOptions(**options)))


def test_loads_are_shares_of_the_capacity_of_one_task_per_request():
    low, high = cases(load=[0.2, 0.9], requests=100)
    assert low.proxy is high.proxy and low.proxy.basic_capacity_per_s == pytest.approx(
        16 / 0.205
    )  # 11.3 + 28.56 x 3 + 85.7 + 7.44 x 3 = 205 ms
    assert [low.point.load, high.point.load] == pytest.approx([0.2, 0.9])
    assert low.point.rate_per_s == pytest.approx(0.2 * 78.05, rel=1e-4)
    found = low.point.requests(3)
    assert len(found.arrival_s) == 100 and found.class_of.dtype == np.uint8
    # the same requests, nearer to each other
    other = high.point.requests(3)
    np.testing.assert_allclose(found.arrival_s * 0.2, other.arrival_s * 0.9, rtol=1e-12)


def test_the_end_of_a_table_of_rates_is_said(tmp_path, caplog):
    """A table of 1400 s stands for 2200 s at the mean rate."""
    path = str(tmp_path / "rates.parquet")
    table = {"start_s": [0.0, 1000.0], "factor": [2.0, 0.5], "duration_s": [1000.0, 400.0]}

    def said(table, **options):
        pq.write_table(pa.table(table), path)
        caplog.clear()
        cases(rates=path, rate=10.0, **options)
        return caplog.text

    with caplog.at_level("WARNING", "ecjax"):
        text = said(table, requests=30_000)
        assert (
            "its last interval ends at 23.3 min, when 22,000 of 30,000 requests are expected to have come"
            in text
        )
        assert "the others come at its factor; requests=22000 ends with it" in text
        assert said(table, requests=22_000) == ""
        assert "when 11,000 of 22,000 requests are expected to have come at 5 requests/s" in said(
            table, requests=22_000, rate_scale=[1.0, 0.5]
        )
        table.pop("duration_s")
        assert said(table, requests=30_000) == ""
        # where the last factors are 0 nothing comes after them, however long the intervals are
        for more in ({}, {"duration_s": [1000.0, 400.0]}):
            text = said({"start_s": [0.0, 1000.0], "factor": [2.0, 0.0], **more}, requests=30_000)
            assert "its factors are 0 from 16.7 min on: 20,000 of 30,000 requests are expected" in text
            assert "no others come" in text and "come at its factor" not in text
        assert said({"start_s": [0.0, 1000.0], "factor": [2.0, 0.0]}, requests=20_000) == ""


def test_the_capacity_of_several_classes_is_that_of_their_mean_delay():
    near, far = cases(
        delays=str(TRACES / "delays.parquet"), classes=str(TRACES / "classes.parquet"), threads=4, load=0.5
    )
    near, far = near.proxy, far.proxy
    read, write = (lambda b: 0.010 + 10e-9 * b), (lambda b: 0.024 + 15e-9 * b)
    mean = 0.6 * read(2e5) + 0.3 * read(6e6) + 0.1 * write(3e6)
    assert near.basic_capacity_per_s == pytest.approx(4 / mean)
    assert [model.shift_s for model in near.models] == [0.004, 0.004, 0.009]
    assert far.delays == "far" and near.input_id != far.input_id


def test_rates_come_before_loads():
    points = [case.point for case in cases(rate=[20.0, 5.0], rate_scale=[1.0, 2.0], load=[0.5])]
    assert [point.rate_per_s for point in points] == [20.0, 40.0, 5.0, 10.0]
    assert [point.load for point in points] == pytest.approx(np.array([20, 40, 5, 10]) * 0.205 / 16)


def test_steps_last_until_their_end():
    one, three = cases(steps=STEPS, rate_scale=[1.0, 3.0])
    assert one.timeline_s == 5.0
    # steps that begin later are as finely divided
    (late,) = cases(steps=[[3600, 10], [3720, 0]])
    assert late.timeline_s == 1.0
    one, three = one.point, three.point
    assert one.kind == "steps" and one.end_s == 600.0 and not one.constant
    assert one.rate_per_s == 30.0 and three.rate_per_s == 90.0
    counts = np.histogram(three.requests(1).arrival_s, [0, 200, 400, 600])[0]
    expected = 3 * np.array([2000, 14000, 2000])
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


def test_a_trace_is_replayed_at_multiples_of_its_rate():
    case, other = cases(trace=str(TRACES / "requests_chunks.parquet"), rate_scale=[1.0, 4.0])
    one, four = case.point, other.point
    assert one.kind == "trace" and not one.constant and one.end_s is case.timeline_s is None
    times = one.requests(0).arrival_s
    assert one.rate_per_s == pytest.approx(2200 / times[-1])
    assert four.rate_per_s == pytest.approx(4 * one.rate_per_s)
    np.testing.assert_allclose(four.requests(9).arrival_s * 4, times)
    assert len(case.proxy.classes) == 8 and sum(given.share for given in case.proxy.classes) == pytest.approx(
        1
    )


def test_a_table_of_factors_multiplies_the_rates(tmp_path):
    table = {"start_s": [50.0, 0.0], "factor": [0.0, 3.0], "service_class": ["a", None]}
    pq.write_table(pa.table(table), tmp_path / "rates.parquet")
    classes = [{"bytes": 1e6, "name": "a"}, {"bytes": 1e6, "name": "b"}]
    (case,) = cases(rate=[10.0], rates=str(tmp_path / "rates.parquet"), classes=classes, requests=4000)
    found = case.point.requests(2)
    early = found.arrival_s < 50
    assert abs(early.sum() - 1500) < 5 * np.sqrt(1500)
    assert abs(np.mean(found.class_of[early]) - 0.5) < 0.1
    assert np.all(found.class_of[~early] == 1)
    # 15 requests/s of b are left
    later = found.arrival_s[~early]
    assert abs(len(later) / (later[-1] - 50) - 15) < 1.5


def test_inputs_are_named_by_what_they_are(tmp_path):
    every = cases()
    name = every[0].proxy.input_id
    assert cases()[0].proxy.input_id == name
    assert cases(seed=4, load=[0.3])[0].proxy.input_id == name
    ids = {
        cases(**options)[0].proxy.input_id
        for options in ({}, {"bytes": 1e6}, {"k_max": 3}, {"delays": ["correlated"]})
    }
    assert len(ids) == 4
    names = [json.dumps(case.point.names) for case in every]
    assert len(set(names)) == len(names)


def test_chunks_beyond_the_measured_sizes_are_told(caplog):
    log = str(TRACES / "requests_chunks.parquet")
    with caplog.at_level("INFO"):
        cases(delays=[log])
    assert "those of the classes have 5e+05 to 3e+06: beyond what was measured" in caplog.text


def log_of_reads(path, small_s):
    """A hundred reads of 1 MB, and as many of 2 MB that take 40 ms."""
    start = np.arange(200.0)
    table = {
        "request_id": np.arange(200),
        "arrival_s": start,
        "file_id": np.arange(200),
        "op": ["read"] * 200,
        "bytes": np.tile([1e6, 2e6], 100),
        "start_s": start,
        "finish_s": start + np.tile([small_s, 0.04], 100),
    }
    pq.write_table(pa.table(table), path)
    return str(path)


@pytest.mark.parametrize("op", ["read", "write"])
def test_small_chunks_of_a_steep_law_take_time(tmp_path, caplog, op):
    with caplog.at_level("INFO"):
        case, *_ = cases(
            delays=[log_of_reads(tmp_path / "log.parquet", 0.01)], classes=[{"bytes": 3e6, "op": op}]
        )
    # 3 MB / k by the line through both sizes down to 1 MB, then in proportion to the size
    expected = np.array([0.07, 0.025, 0.01, 0.0075, 0.006, 0.005])
    np.testing.assert_allclose(case.proxy.tasks.quantiles[0, 1:], np.tile(expected[:, None], 2001), rtol=1e-6)
    assert case.proxy.basic_capacity_per_s == pytest.approx(16 / 0.07, rel=1e-6)
    text = " ".join(caplog.text.split())
    assert f"the law of {op}s is of chunks of 1e+06 to 2e+06 bytes; those of the classes have 5e+05" in text
    assert "but below it delays are at least in proportion to the size" in text


def test_chunks_that_take_no_time_are_refused(tmp_path):
    log = log_of_reads(tmp_path / "log.parquet", 0.0)
    message = r"found a mean delay of 0 s for a chunk of 1e\+06 bytes, k=3 \(class read_3MB\); allowed: finite numbers"
    with pytest.raises(UserError, match=message):
        cases(delays=[log])
    # 1.5 MB lie between the sizes
    assert cases(delays=[log], k_max=2)[0].proxy.basic_capacity_per_s == pytest.approx(16 / 0.08, rel=1e-6)


def test_a_timeline_of_too_many_intervals_is_refused(tmp_path):
    pq.write_table(pa.table({"start_s": [0.0, 10.0], "factor": [1.0, 0.1]}), tmp_path / "rates.parquet")
    rates = str(tmp_path / "rates.parquet")
    for given, words in (
        ({"rate": [0.001], "timeline_s": 0.001}, "found about 2e+11 intervals, as requests come for 2e+08 s"),
        ({"steps": STEPS, "timeline_s": 0.0005}, "found about 1.2e+06 intervals, as requests come for 600 s"),
        # 100 requests until 10 s, and 900 of one per second
        (
            {"rate": [10.0], "rates": rates, "requests": 1000, "timeline_s": 0.0009},
            "as requests come for 910 s",
        ),
    ):
        with pytest.raises(UserError) as error:
            cases(**given)
        assert str(error.value).startswith(f"timeline_s={given['timeline_s']:g}: found about")
        assert words in str(error.value) and "allowed: at most 1,000,000" in str(error.value)
    assert cases(steps=STEPS, timeline_s=0.001)[0].timeline_s == 0.001
    assert cases(rate=[10.0], rates=rates, requests=1000, timeline_s=0.001)[0].timeline_s == 0.001


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": STEPS, "rate": [3.0]}, "rate: found beside steps; allowed: one of trace, steps and rate"),
        ({"steps": STEPS, "trace": "x"}, "steps: found beside trace"),
        ({"steps": STEPS, "rates": "x"}, "rates=x: found beside steps; allowed: with rate or load"),
        ({"steps": 3}, "steps: found 3; allowed: [[start_s, rate], ...]"),
        ({"steps": [[0, 3]]}, "steps: found [[0, 3]]; allowed"),
        ({"steps": [[0, 3], [0, 4], [5, 0]]}, "steps: found [0, 4] in row 1; allowed"),
        ({"steps": [[0, 3], 4, [5, 0]]}, "steps: found 4 in row 1; allowed"),
        ({"steps": [[-1, 3], [5, 0]]}, "steps: found [-1, 3] in row 0; allowed"),
        ({"steps": [[0, float("nan")], [5, 0]]}, "steps: found [0, nan] in row 0; allowed"),
        ({"steps": [[0, 3], [5, 2]]}, "steps: found [5, 2] in row 1, no end"),
        ({"steps": [[0, 0], [5, 0]]}, "no rates above 0"),
        ({"steps": [[0, 1e9], [5, 0]]}, "steps: found 5e+09 requests; allowed: at most 1e+08"),
        ({"trace": "missing.parquet"}, "missing.parquet: no such file or folder"),
        (
            {"rates": str(TRACES / "rates.parquet")},
            "column service_class, row 0: found 'gold'; allowed: read_3MB",
        ),
    ],
)
def test_mistakes_are_named(options, message):
    with pytest.raises(UserError) as error:
        cases(**options)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"start_s": [0.0], "factor": [1.0], "file_id": [3]},
            "column file_id: found files; allowed: empty cells",
        ),
        ({"start_s": [0.0], "factor": [0.0]}, "column factor: found factors of 0 for all time"),
        ({"start_s": [0.0], "factor": [-1.0]}, "column factor, row 0: found -1.0"),
    ],
)
def test_mistakes_in_factors_are_named(tmp_path, table, message):
    pq.write_table(pa.table(table), tmp_path / "rates.parquet")
    with pytest.raises(UserError) as error:
        cases(rates=str(tmp_path / "rates.parquet"))
    assert message in str(error.value)
