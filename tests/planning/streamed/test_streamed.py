"""Plans of files that come in pieces: the relaxation of whole tables, and choices that keep every rule."""

import tracemalloc
from functools import cache

import jax.numpy as jnp
import numpy as np
import problems
import pytest
from planning.certified.untuned import dear_and_cheap, passes_of, untuned

from ecjax.planning.certified.certify import Settings
from ecjax.planning.certified.data import flatten
from ecjax.planning.certified.one_size_plan import prove
from ecjax.planning.certified.smooth import Bins
from ecjax.planning.problem import EVALUATE
from ecjax.planning.streamed import busiest, placing
from ecjax.planning.streamed.placing import Placing
from ecjax.planning.streamed.relaxation import Lane, Sites, problem_of, relaxed
from ecjax.planning.streamed.tally import Code, Piece, Tally, codes_of, steps_of

FILES, THETA = 60_000, 0.5
PIECE = 7_001
PLAIN = Lane(THETA, 1.0, 1.0)


def pieces_of(problem):
    files = problem.files
    k = np.asarray(files.k).astype(np.int64)
    length = k + np.asarray(files.min_extra_chunks).astype(np.int64)
    rate = np.asarray(files.rate)
    for first in range(0, len(k), PIECE):
        part = slice(first, first + PIECE)
        yield Piece(k[part], k[part], length[part], rate[part])


def relaxation(problem, sites, lane, threads):
    tally = Tally()
    for piece in pieces_of(problem):
        tally.add(piece)
    counts = tally.counts()
    by_step = problem_of(counts, problem.nodes, float(problem.files.chunk_bytes[0]), sites)
    return counts, relaxed(counts, by_step, lane, Settings(), threads)


@cache
def known(files, load, per_site=None, threads=3):
    """A problem, its sites, and its relaxation, which takes longer than placing the files: once for all tests."""
    problem = untuned(9, files, load).problem()
    sites = None if per_site is None else Sites(np.arange(12) % 5, per_site)
    return problem, sites, relaxation(problem, sites, PLAIN, threads)


def streamed(problem, sites=None, lane=PLAIN, again=False, threads=3, relaxed_as=None):
    counts, answer = relaxed_as or relaxation(problem, sites, lane, threads)
    choices = Placing(counts, answer, lane, sites, threads)
    masks = list(choices.place(pieces_of(problem)))
    if again:
        choices.place_again(answer.lower_bound)
    m = problem.nodes.count
    read, stored = (
        np.unpackbits(np.concatenate(parts), axis=1, bitorder="little")[:, :m].astype(bool)
        for parts in list(zip(*masks, strict=True))[:2]
    )
    return counts, answer, choices.figures(), read, stored


@pytest.mark.parametrize("per_site", [None, 2])
@pytest.mark.parametrize(
    ("files", "load", "again"),
    [(FILES, 0.7, False), (1500, 0.95, True)],
    ids=["many files", "few files near saturation"],
)
def test_a_plan_keeps_every_rule_and_is_worth_what_it_says(per_site, files, load, again, monkeypatch):
    # not all of the files are placed once more
    monkeypatch.setattr(busiest, "_MOST", 12 * 1000)
    problem, sites, relaxed_as = known(files, load, per_site)
    _, answer, figures, read, stored = streamed(problem, sites, again=again, relaxed_as=relaxed_as)
    files = problem.files
    np.testing.assert_array_equal(read.sum(axis=1), np.asarray(files.k))
    np.testing.assert_array_equal(stored.sum(axis=1), np.asarray(files.k + files.min_extra_chunks))
    assert np.all(stored | ~read)
    if sites is not None:
        at_site = np.stack([stored[:, sites.site == site].sum(axis=1) for site in range(5)])
        assert at_site.max() <= per_site
    evaluation = EVALUATE(problem, jnp.asarray(read, float), jnp.asarray(stored), jnp.asarray(THETA))
    assert figures.objective == pytest.approx(float(evaluation.objective), rel=1e-9)
    assert figures.latency_shared_z == pytest.approx(float(evaluation.latency_shared_z), rel=1e-9)
    assert figures.latency == pytest.approx(float(evaluation.latency), rel=1e-7)
    assert figures.cost == pytest.approx(float(evaluation.cost), rel=1e-12)
    np.testing.assert_allclose(figures.load, evaluation.load, rtol=1e-9)
    assert answer.lower_bound <= figures.objective
    assert figures.objective <= answer.lower_bound * (1 + (2e-3 if again else 1e-3))


@pytest.mark.parametrize("per_site", [None, 2])
def test_choices_looked_up_are_those_made_file_by_file(per_site, monkeypatch):
    monkeypatch.setattr(busiest, "_MOST", 12 * 1000)
    problem, sites, relaxed_as = known(FILES, 0.7, per_site)
    tabulated = []
    made = Placing._tabulated

    def recorded(self):
        tabulated.append(made(self))
        return tabulated[-1]

    monkeypatch.setattr(Placing, "_tabulated", recorded)
    *_, figures, read, stored = streamed(problem, sites, relaxed_as=relaxed_as)
    monkeypatch.setattr(placing, "_MOST_TABLE_BYTES", 0)
    *_, expected, read_each, stored_each = streamed(problem, sites, relaxed_as=relaxed_as)
    assert tabulated[0] is not None and tabulated[1] is None
    np.testing.assert_array_equal(read, read_each)
    np.testing.assert_array_equal(stored, stored_each)
    for name in ("objective", "latency", "latency_shared_z", "cost", "load", "node_cost", "bytes_stored"):
        np.testing.assert_allclose(getattr(figures, name), getattr(expected, name), rtol=1e-11)


@pytest.mark.parametrize("table_bytes", [0, placing._MOST_TABLE_BYTES], ids=["each", "looked up"])
def test_plans_are_the_same_on_any_number_of_cores(table_bytes, monkeypatch):
    """To the last digit: which files are placed once more is decided by the sums."""
    monkeypatch.setattr(busiest, "_MOST", 12 * 1000)
    monkeypatch.setattr(placing, "_MOST_TABLE_BYTES", table_bytes)
    monkeypatch.setattr(placing, "_PART", 100)
    problem, _, by_one = known(FILES, 0.7, threads=1)
    by_three = known(FILES, 0.7)[-1]
    *_, figures, read, stored = streamed(problem, again=True, threads=1, relaxed_as=by_one)
    *_, others, read_by_three, stored_by_three = streamed(problem, again=True, threads=3, relaxed_as=by_three)
    np.testing.assert_array_equal(read, read_by_three)
    np.testing.assert_array_equal(stored, stored_by_three)
    np.testing.assert_array_equal(figures.load, others.load)


def test_the_bound_is_that_of_the_whole_table():
    problem, _, (_, answer) = known(FILES, 0.7)
    bins = Bins(passes_of(problem, THETA))
    whole = prove(bins, 1e-4, 200)[1]
    assert answer.lower_bound == pytest.approx(whole, rel=3e-6)


def test_scales_are_those_of_rates_and_sizes():
    problem = untuned(7, 5_000, 0.5).problem()
    _, plain, figures, *_ = streamed(problem)
    # twice the reads of chunks half as large load nodes as before
    _, _, other, *_ = streamed(problem, lane=Lane(THETA, 2.0, 0.5))
    np.testing.assert_allclose(other.load.sum(), figures.load.sum(), rtol=0.05)


def test_counts_are_those_of_the_files():
    problem = untuned(8, 3_000, 0.5).problem()
    tally = Tally()
    pieces = list(pieces_of(problem))
    for piece in reversed(pieces):
        tally.add(piece)
    counts = tally.counts()
    k, rate = np.asarray(problem.files.k), np.asarray(problem.files.rate)
    length = k + np.asarray(problem.files.min_extra_chunks)
    for number, code in enumerate(counts.codes):
        files = (k == code.k) & (length == code.length)
        of_code = counts.code == number
        assert counts.size[of_code].sum() == files.sum()
        assert counts.total[of_code].sum() == pytest.approx(rate[files].sum(), rel=1e-12)
        assert counts.low[of_code].min() == rate[files].min()
        assert counts.high[of_code].max() == rate[files].max()
    assert np.all(counts.high <= counts.low * (1 + 1 / 128))
    assert counts.files == 3_000


def test_rates_of_nothing_are_a_step_of_their_own():
    assert steps_of(np.array([-0.0, 0.0, 1.0, 1.0001])).tolist() == [
        0,
        0,
        *[int(steps_of(np.ones(1))[0])] * 2,
    ]


def test_counts_of_many_codes_take_little_memory():
    """32 B for each code and step that there is; all steps that a float64 may be in are 8 MB for each code."""
    codes, steps = 64, 100
    k = np.repeat(np.arange(1, codes + 1), steps)
    rate = np.tile(np.geomspace(1e-3, 1e3, steps), codes)
    Tally().add(Piece(k[:1], k[:1], k[:1], rate[:1]))  # compiled before memory is counted
    tracemalloc.start()
    tally = Tally()
    for part in (slice(None, None, -2), slice(0, None, 2)):
        tally.add(Piece(k[part], k[part], k[part], rate[part]))
    counts = tally.counts()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
    assert counts.files == codes * steps
    # by code, in each by step
    np.testing.assert_array_equal(counts.code, k - 1)
    np.testing.assert_array_equal(counts.total, rate)
    np.testing.assert_array_equal(counts.step, steps_of(rate))


def test_chunks_of_every_code_are_paid_at_their_own_prices():
    """Reads that take four chunks of k = 2 take half of each: such files keep chunks twice as large."""
    case = untuned(9, 10, 0.5)
    price = np.where(np.arange(12) < 6, 1e-6, 1e-4)
    nodes = case.nodes.assign(cost_per_chunk_dollars=0.0, cost_per_byte_dollars=price)
    problem = problems.Case(nodes, case.files).problem()
    k, read, rate = np.full(40, 2), np.repeat([2, 4], 20), np.full(40, 1e-3)
    tally = Tally()
    tally.add(Piece(k, read, read, rate))
    counts = tally.counts()
    service, rows = flatten(problem_of(counts, problem.nodes, 1e6, None))
    # a dollar is worth more than any wait
    rows = rows._replace(per_dollar=1.0)
    kinds = np.zeros((40, 12), np.int8)
    for i in range(40):
        kinds[i, 11 - read[i] : 11] = 2
    files = busiest.Files(np.repeat([0, 1], 20), rate, kinds)

    def dollars(kinds):
        return float((kinds > 0).sum(axis=0) @ (price * 1e6) + (kinds[20:] > 0).sum(axis=0) @ (price * 1e6))

    target = 0.99 * dollars(kinds)
    after = busiest.place_again(files, service, rows, counts.first, busiest.sums_of(files), target)
    np.testing.assert_array_equal((after > 0).sum(axis=1), read)
    assert dollars(after) <= target


@pytest.mark.parametrize("theta", [3e5, 3e6])
def test_no_dollars_are_worth_an_overload(theta):
    """Though its price is finite while plans are made, and less than what those of theta = 3e6 save."""
    _, answer, figures, read, _ = streamed(
        dear_and_cheap(20_000).problem(), lane=Lane(theta, 1.0, 1.0), again=True
    )
    assert figures.load.max() < 1
    assert answer.lower_bound <= figures.objective <= 1.003 * answer.lower_bound
    np.testing.assert_allclose(figures.load, 150 / 20_000 * 0.01 * read.sum(axis=0), rtol=1e-9)


def test_codes_of_millions_of_chunks_are_told_apart():
    k = np.array([3_000_000, 1, 3_000_000, 2])
    which, codes = codes_of(Piece(k, k, k + 1, np.ones(4)))
    assert [codes[number] for number in which] == [Code(each, each, each + 1) for each in k.tolist()]
