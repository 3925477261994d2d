"""What a log is too short, coarse or broken for, in words beside an estimate."""

import numpy as np
import pytest

from ecjax.predict.log_remarks import Seen, remarks, seen_of
from ecjax.predict.logged import Logged
from ecjax.predict.trace_estimates import TraceEstimate
from ecjax.studies.spine.trace_columns import trace_columns

FINE = Seen(10_000, 20, 1000.0, 0.001, 0.0, np.zeros((0, 2)))


def estimated(end_s=0.0, margin=0.1, bin_s=0.0015):
    """With services of 6 ms."""
    return TraceEstimate(
        mean=np.array([0.01]),
        quantiles=np.full((1, 4), 0.02),
        log_margins=np.full(5, margin),
        least=np.full(5, 0.006),
        wait_s=0.004,
        service_s=0.006,
        work_s=0.006,
        load=np.array([0.3, 0.4]),
        end_s=np.array([0.0, end_s]),
        branch="denoised",
        dispersion=1.0,
        bin_s=bin_s,
    )


def said(end_s=0.0, margin=0.1, bin_s=0.0015, **seen):
    return remarks(estimated(end_s, margin, bin_s), FINE._replace(**seen), ["a", "b"])


def test_a_log_without_flaws_needs_no_remark():
    assert said() == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"end_s": 20.0}, "Node b has work for 20 s left when the log ends"),
        ({"margin": np.log(8.0)}, "known within a factor of 8,"),
        ({"margin": np.log(101.0)}, "Few bursts make these latencies: the log hardly tells what another one"),
        ({"margin": 30.0}, "Few bursts make these latencies: the log hardly tells what another one"),
        ({"reads": 999}, "The log has 999 reads"),
        (
            {"tick_s": 1.0, "tied": 0.9},
            "Times are known to ticks of 1 s, longer than a service (6 ms): requests of a tick count as spread evenly",
        ),
        (
            {"bin_s": 0.012},
            "The log is seen in steps of 12 ms, longer than a service (6 ms), as finer ones are too many",
        ),
        ({"files": 1}, "All reads of the log are of one file: its latencies are known"),
        (
            {"silences": np.array([[100.0, 600.0]])},
            "No request comes for 8.33 min, 50 % of the log: if it was not recorded then, latencies under its own "
            "arrivals are those of the rest, but mean rates, loads and what assumes Poisson arrivals are 2 times too "
            "low.",
        ),
        (
            {"silences": np.array([[0.0, 300.0], [400.0, 850.0]])},
            "in 2 silent stretches, 12.5 min together, 75 %",
        ),
    ],
)
def test_every_flaw_has_a_line(given, words):
    (line,) = said(**given)
    assert words in line and "\n" not in line


def test_a_coarse_clock_matters_where_reads_share_its_ticks_and_are_shorter():
    assert said(tick_s=1.0, tied=0.005) == said(tick_s=0.005, tied=0.9) == []


def test_what_is_seen_of_a_log():
    """Reads of two files in ten seconds of a hundred each, on a clock of half seconds; as they are and spread."""
    rng = np.random.default_rng(0)
    ticks = np.concatenate([np.repeat(np.arange(20), 5), 200 + np.repeat(np.arange(20), 5)])
    write = np.arange(200) % 4 == 0
    file = np.where(write, 7, np.arange(200) % 2)
    for times in (ticks * 0.5, np.sort(ticks * 0.5 + 0.5 * rng.random(200))):
        seen = seen_of(Logged(times, file, write, 0.5))
        assert (seen.reads, seen.files, seen.tick_s) == (150, 2, 0.5)
        # four of five requests, but the first
        assert seen.tied == pytest.approx(160 / 199, abs=0.02)
        assert seen.length_s == pytest.approx(times[-1] - times[0])
        np.testing.assert_allclose(seen.silences + times[0], [[9.5, 100.0]], atol=0.5)
    every = seen_of(Logged(np.linspace(0, 10, 50), np.zeros(50, int)))
    assert (every.reads, every.files, every.tied, len(every.silences)) == (50, 1, 0.0, 0)


def test_what_is_silent_is_so_at_every_speed():
    """Nights of sixteen hours in a year from nine to five: at half of its speed each lasts 32 h."""
    rng = np.random.default_rng(0)
    days = 86400.0 * np.arange(365)
    times = np.sort(rng.uniform(9 * 3600, 17 * 3600, (365, 50)), axis=1) + days[:, None]
    logged = Logged(times.ravel(), np.zeros(times.size, int), tick_s=0.001)
    seen = seen_of(logged)
    assert len(seen.silences) == 364
    for factor in (0.5, 16.0):
        faster = seen.faster(factor)
        assert (faster.reads, faster.files, faster.tick_s) == (times.size, 1, 0.001 / factor)
        assert faster.length_s == pytest.approx((times[-1, -1] - times[0, 0]) / factor)
        np.testing.assert_allclose(faster.silences[:, 1], (times[1:, 0] - times[0, 0]) / factor)


@pytest.mark.parametrize(("factor", "told"), [(99.0, True), (101.0, False), (1e11, False), (np.inf, False)])
def test_an_interval_of_two_orders_of_magnitude_is_none(factor, told):
    row = trace_columns(estimated(margin=np.log(factor)), [])
    assert ("trace_estimated_p99_high_s" in row) == ("trace_estimated_mean_low_s" in row) == told
    assert row["trace_estimated_mean_s"] == 0.01
    if told:
        assert row["trace_estimated_p99_high_s"] == pytest.approx(0.02 * factor)


def test_what_is_seen_is_named():
    """Of a log that is held against its prediction only the first half is."""
    seen = FINE._replace(reads=600, files=1, silences=np.array([[0.0, 935.0]]))
    words = remarks(estimated(end_s=20.0, margin=30.0, bin_s=0.012), seen, ["a", "b"], "the first half")
    text = " ".join(words)
    assert len(words) == 6 and "the log" not in text.lower()
    for said_of_it in (
        "when the first half ends",
        "The first half has 600 reads",
        "93.5 % of the first half",
        "The first half is seen in steps of 12 ms",
        "All reads of the first half are of one file",
    ):
        assert said_of_it in text
