"""Latencies of codes: exact values of the order statistics and queues that they reduce to, and plans' chunks."""

import json
import math
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ecjax
from ecjax.cli import main
from ecjax.durability.assessment import Assessment
from ecjax.durability.codes import code_of
from ecjax.durability.repair_times import RepairCluster, repair_time
from ecjax.errors import UserError
from ecjax.model import Files, Nodes
from ecjax.planning.problem import prepare
from ecjax.studies.codes import comparison
from ecjax.studies.codes import rows as code_rows
from ecjax.studies.codes.combinations import chosen_combination
from ecjax.studies.codes.comparison import burden_of, worth_a_plan
from ecjax.studies.codes.latencies import latency_columns
from ecjax.studies.codes.layouts import classes_of
from ecjax.studies.codes.plans import code_plan, data_plan
from ecjax.studies.codes.rows import repairs_status
from ecjax.studies.codes.traffic import SmallRates, Traffic

pytestmark = pytest.mark.usefixtures("optimized")
MEAN = 0.01  # s, of exponential services whatever the size
# Of 12 nodes, where small reads take one chunk, or several of FEW files: estimates of both are one compiled program
MANY, FEW = 60, 24
LITTLE_REPAIR = {"repair_bytes_per_s": 1e6, "user_bytes": 1e9}


def nodes(count, sites=None):
    table = {
        "node_id": [f"n{i}" for i in range(count)],
        "delta_s": [0.0] * count,
        "delta_s_per_byte": [0.0] * count,
        "psi_s": [MEAN] * count,
        "psi_s_per_byte": [0.0] * count,
    }
    return table if sites is None else table | {"site": [f"s{i % sites}" for i in range(count)]}


def files(count, rate, sizes=(1e6,)):
    return {
        "file_id": list(range(count)),
        "bytes": [sizes[i % len(sizes)] for i in range(count)],
        "k": [1] * count,
        "rate_per_s": [rate / count] * count,
    }


def table(columns, tmp_path, name):
    path = tmp_path / f"{name}.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return str(path)


def codes(tmp_path, names, node_table, file_table, **options):
    places = {
        "nodes": table(node_table, tmp_path, "nodes"),
        "files": table(file_table, tmp_path, "files"),
    }
    with ecjax.codes(names, **places, **LITTLE_REPAIR | options) as results:
        return results.codes.set_index("code"), results


def harmonic(k):
    return sum(1 / i for i in range(1, k + 1))


def p99_of_slowest(k):
    """Of k exponentials of mean 1."""
    return -math.log(1 - 0.99 ** (1 / k))


def test_without_load_reads_take_the_slowest_of_k_chunks(tmp_path):
    rows, _ = codes(tmp_path, ["4+2", "3x", "lrc(4,2,1)"], nodes(12), files(MANY, 1e-4), groups=64, slow=3)
    for name, k, width in (("4+2", 4, 4), ("3x", 1, 1), ("lrc(4,2,1)", 4, 2)):
        row = rows.loc[name]
        assert row["status"] == "ok"
        for state in ("healthy", "down"):
            assert row[f"{state}_mean_s"] == pytest.approx(MEAN * harmonic(k), rel=0.01)
            assert row[f"{state}_p99_s"] == pytest.approx(MEAN * p99_of_slowest(k), rel=0.01)
        assert row["small_healthy_mean_s"] == pytest.approx(MEAN, rel=0.01)
        # one read in twelve finds its chunk on the node that is down and takes others
        degraded = (11 + harmonic(width)) / 12
        assert row["small_down_mean_s"] == pytest.approx(MEAN * degraded, rel=0.02)
        assert row["small_slow_mean_s"] == pytest.approx(MEAN * (11 + 3) / 12, rel=0.02)


# width, and chunks that are read where one of these is away: chunks of 4+2 are of a quarter of a file, of 2+1 of half
WIDTHS = {
    # both sizes of files have chunks of more than half of a read
    None: ((1e6, 1.2e6), {"4+2": (2, 4), "lrc(4,2,1)": (2, 3)}),
    1.25e5: ((1e6,), {"4+2": (4, 4), "2+1": (2, 2), "lrc(4,2,1)": (4, 4)}),
}


@pytest.mark.parametrize("stripe_unit", WIDTHS)
def test_small_reads_larger_than_a_chunk_take_several(tmp_path, stripe_unit):
    """Reads of 400 kB: as many whole chunks as hold so much, or as there are units of theirs in them."""
    sizes, widths = WIDTHS[stripe_unit]
    options = {"small_bytes": 4e5, "stripe_unit_bytes": stripe_unit, "groups": 64}
    rows, _ = codes(tmp_path, list(widths), nodes(12), files(FEW, 1e-4, sizes), **options)
    for name, (width, degraded) in widths.items():
        row = rows.loc[name]
        assert row["small_healthy_mean_s"] == pytest.approx(MEAN * harmonic(width), rel=0.01)
        # of width of twelve nodes one is down
        mean = ((12 - width) * harmonic(width) + width * harmonic(degraded)) / 12
        assert row["small_down_mean_s"] == pytest.approx(MEAN * mean, rel=0.02), name


def test_of_copies_every_node_is_a_queue_of_its_own(tmp_path):
    rate, nodes_count, small = 300.0, 12, 0.5
    rows, _ = codes(
        tmp_path, ["2x"], nodes(nodes_count), files(MANY, rate), groups=64, small_reads=small, afr=1e-6
    )
    row = rows.loc["2x"]
    load = rate * (1 + small) / nodes_count * MEAN
    assert row["max_load"] == pytest.approx(load, rel=1e-6)
    # M/M/1: exponential sojourn of rate (1 - load) / MEAN
    assert row["healthy_mean_s"] == pytest.approx(MEAN / (1 - load), rel=0.01)
    assert row["healthy_p99_s"] == pytest.approx(MEAN / (1 - load) * math.log(100), rel=0.01)
    assert row["small_healthy_mean_s"] == pytest.approx(MEAN / (1 - load), rel=0.01)
    busier = load * nodes_count / (nodes_count - 1)
    # all copies of the lost node are read elsewhere: at random, so not quite evenly
    assert row["down_mean_s"] == pytest.approx(MEAN / (1 - busier), rel=0.15)
    assert row["gap"] < 0.01
    assert row["slow_mean_s"] is None or math.isnan(row["slow_mean_s"])


def mean_of_erlang(rate, channels, mean):
    """Of M/M/c, wait and service: Erlang's C by its sums."""
    offered = rate * mean
    terms = [offered**i / math.factorial(i) for i in range(channels + 1)]
    last = terms[-1] / (1 - offered / channels)
    return mean + last / (sum(terms[:-1]) + last) * mean / (channels - offered)


def test_nodes_of_several_channels_are_queues_of_as_many_servers(tmp_path):
    """Copies: M/M/4 at every node, of full and of small reads, and of pieces of repairs while one runs."""
    rate, nodes_count, small, channels, piece = 1920.0, 12, 0.5, 4, 1e5
    rows, _ = codes(
        tmp_path,
        ["2x"],
        nodes(nodes_count) | {"channels": [channels] * nodes_count},
        files(MANY, rate),
        groups=64,
        small_reads=small,
        afr=1e-6,
        repair_bytes_per_s=1e8,
        repair_io_bytes=piece,
    )
    row = rows.loc["2x"]
    each = rate * (1 + small) / nodes_count
    assert row["status"] == "ok" and row["gap"] < 0.01 and row["repair_pace"] == 1
    assert row["max_load"] == pytest.approx(each * MEAN / channels, rel=1e-6)
    expected = mean_of_erlang(each, channels, MEAN)
    assert row["healthy_mean_s"] == pytest.approx(expected, rel=0.01)
    assert row["small_healthy_mean_s"] == pytest.approx(expected, rel=0.01)
    disks = 10 * (nodes_count - 1)
    at_work = repair_time(RepairCluster(nodes_count, 10, 64, 1e9, 1e8, 6e9, 600.0), 2, 1, 1, 0, 1)
    pieces = at_work.bytes_per_s / disks / piece
    assert pieces > 0.1 * each
    under_repair = mean_of_erlang(each + pieces, channels, MEAN)
    assert row["repairing_mean_s"] == pytest.approx(under_repair, rel=0.01)


def test_small_reads_of_the_files_have_their_own_rates_and_sizes(tmp_path):
    """Copies: every node is an M/G/1 queue of exponential services of two means: some small reads, and all others.

    Estimates are then of two sizes, as in tests of classes, and of the same compiled program.
    """
    full, small = 120.0, (90.0, 20.0)
    by_byte = {"psi_s": [0.0] * 6, "psi_s_per_byte": [MEAN / 1e6] * 6}
    of_files = {
        "small_rate_per_s": np.repeat(small, 30) / 30,
        "small_bytes": np.repeat([2e5, 1e6], 30),
    }
    rows, _ = codes(tmp_path, ["2x"], nodes(6) | by_byte, files(MANY, full) | of_files, groups=64, afr=1e-6)
    row = rows.loc["2x"]
    rates, means = np.array([full, *small]) / 6, MEAN * np.array([1.0, 0.2, 1.0])
    load = rates @ means
    wait = rates @ means**2 / (1 - load)
    # plans spread small reads evenly: nearly as many files of each size are on every node
    assert load * (1 - 1e-9) <= row["max_load"] < 1.15 * load
    assert row["healthy_mean_s"] == pytest.approx(wait + MEAN, rel=0.03)
    assert row["small_healthy_mean_s"] == pytest.approx(
        wait + rates[1:] @ means[1:] / rates[1:].sum(), rel=0.03
    )


def problem(k, count, m, sizes=(1e6,)):
    ones = np.ones(m)
    service = np.zeros((3, 4, m))
    service[:, 0] = np.array([MEAN, 2 * MEAN**2, 6 * MEAN**3])[:, None]
    service[0, 1] = 1e-9
    laws = Nodes(*map(jnp.asarray, (service, 0 * ones, 0 * ones, np.zeros((3, m)), ones, 0 * ones)))
    size = np.resize(np.array(sizes) / k, count)
    rate = 1 / np.arange(1, count + 1)
    parts = (size, size, np.full(count, float(k)), np.zeros(count), 80 * rate / rate.sum(), 0 * rate)
    return prepare(laws, Files(*map(jnp.asarray, parts)))


@pytest.mark.parametrize("sizes", [(1e6,), (1e6, 3e5, 4e6)])
def test_a_plan_has_n_chunks_of_every_file(sizes):
    case = problem(3, MANY, 12, sizes)
    plan = code_plan(case, 5, 0.01, 0, data_plan(case, 0.01, 0, 1))
    assert np.all(plan.stored.sum(axis=1) == 5) and np.all(plan.data.sum(axis=1) == 3)
    assert np.all(plan.stored >= plan.data) and np.all(plan.probabilities[~plan.stored] == 0)
    assert plan.probabilities.sum(axis=1) == pytest.approx(np.full(MANY, 3.0))
    assert 0 <= plan.gap < 0.1
    assert code_plan(case, 12, 0.01, 0, data_plan(case, 0.01, 0, 1)).stored.all()


def test_reads_that_the_datas_plan_shares_out_find_chunks_of_the_code():
    """A gap that whole choices do not reach is closed by shared reads, of chunks that codes of n do not all have."""
    case = problem(3, MANY, 12)
    data = data_plan(case, 1e-7, 0, 1)
    assert data.split is not None
    plan = code_plan(case, 5, 1e-7, 0, data)
    assert np.all(plan.stored.sum(axis=1) == 5)
    assert np.all(plan.probabilities[~plan.stored] == 0)
    assert plan.probabilities.sum(axis=1) == pytest.approx(np.full(MANY, 3.0))


@pytest.mark.parametrize(("k", "n"), [(6, 10), (9, 11), (5, 8)])
def test_chunks_are_spread_over_sites_as_evenly_as_durability_assumes(k, n):
    """Eight sites of four nodes: data alone would fit on half as many sites as durability counts with."""
    sites, cap = 8, -(-n // 8)
    case = replace(problem(k, 30, 32), site=jnp.asarray(np.arange(32) % sites, jnp.int32), per_site=cap)
    data = data_plan(case, 0.05, 0, 1)
    plan = code_plan(case, n, 0.05, 0, data)
    counts = np.stack([plan.stored[:, s::sites].sum(axis=1) for s in range(sites)], axis=1)
    assert np.all(counts.sum(axis=1) == n) and np.all(plan.data.sum(axis=1) == k)
    assert np.all(counts >= n // sites) and np.all(counts <= cap)
    assert np.all(plan.stored >= plan.data) and 0 <= plan.gap < 0.1


def test_a_site_of_few_nodes_has_what_it_can_hold():
    site = np.repeat([0, 1, 2], [1, 5, 6])
    case = replace(problem(3, MANY, 12), site=jnp.asarray(site, jnp.int32), per_site=2)
    plan = code_plan(case, 5, 0.05, 0, data_plan(case, 0.05, 0, 1))
    counts = np.stack([plan.stored[:, site == s].sum(axis=1) for s in range(3)], axis=1)
    np.testing.assert_array_equal(counts, np.tile([1, 2, 2], (MANY, 1)))


def test_a_bound_without_repairs_is_one_with_them():
    """Other work only adds to waits, so that a plan made without it is judged by a bound made without it."""
    case = problem(3, MANY, 12)
    work = np.array([0.05, 5e-4, 5e-6])[:, None] * np.ones((3, 12))
    busy = replace(case, nodes=replace(case.nodes, background=jnp.asarray(work)))
    without, within = (data_plan(each, 0.01, 0, 1) for each in (case, busy))
    assert without.lower_bound <= within.lower_bound
    plan, other = (code_plan(busy, 5, 0.01, 0, data) for data in (without, within))
    assert plan.gap >= other.gap - 1e-9


@pytest.mark.slow
def test_codes_of_one_k_share_their_data_and_the_same_row_comes_out_alone(tmp_path):
    few = nodes(12), files(24, 60.0)
    for name in ("both", "one"):
        (tmp_path / name).mkdir()
    rows, _ = codes(tmp_path / "both", ["2+1", "2+2"], *few, groups=64)
    alone, _ = codes(tmp_path / "one", ["2+2"], *few, groups=64)
    for column in (
        "healthy_mean_s",
        "slow_p99_s",
        "down_p99_s",
        "repairing_p99_s",
        "small_down_mean_s",
        "gap",
    ):
        assert alone.loc["2+2", column] == pytest.approx(rows.loc["2+2", column], rel=1e-9, nan_ok=True)
    assert rows["healthy_p99_s"].nunique() == 1 and rows["down_p99_s"].nunique() == 2


@pytest.mark.slow
def test_no_domain_holds_more_than_it_may(tmp_path):
    places = nodes(12, sites=4), files(24, 10.0)
    rows, results = codes(tmp_path, ["2+1", "3+1"], *places, domain="site", groups=64, durability_nines=1)
    assert results.runs["domain_count"].iloc[0] == 4 and results.runs["disk_count"].iloc[0] == 12
    assert list(rows["status"]) == ["ok", "ok"]
    assert rows["down_mean_s"].notna().all()
    assert all(site[0] == "s" for site in rows["busiest_site"])
    recommended = results.runs["recommended_code"].iloc[0]
    sentence = " ".join(results.sentence.split())
    assert f"with site {rows.loc[recommended, 'busiest_site']} down" in sentence


def test_what_overloads_nodes_is_a_row_with_a_status(tmp_path):
    rows, results = codes(tmp_path, ["2+1", "6+2"], nodes(12), files(MANY, 375.0), groups=64)
    assert list(rows["status"]) == ["ok", "unstable"]
    assert math.isnan(rows.loc["6+2", "healthy_mean_s"]) and not rows.loc["6+2", "pareto"]
    assert "6+2: reads and repairs overload a node" in rows.loc["6+2", "error"]


@pytest.mark.slow
def test_a_promise_on_latency_chooses_the_code(tmp_path, monkeypatch):
    planned = {}

    def once(code, *others):
        if code.name not in planned:
            planned[code.name] = latency_columns(code, *others)
        return dict(planned[code.name])

    # latencies of both comparisons are the same
    monkeypatch.setattr(code_rows, "latency_columns", once)
    few = ["2+1", "6+2"], nodes(12), files(24, 1e-4)
    promise = MEAN * p99_of_slowest(3)
    rows, results = codes(tmp_path, *few, groups=64, durability_nines=1, max_p99_s=promise)
    assert list(rows["durable"]) == [True, False]
    assert results.runs["recommended_code"].iloc[0] == "2+1"
    rows, results = codes(tmp_path, *few, groups=64, durability_nines=1)
    assert results.runs["recommended_code"].iloc[0] == "6+2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["max_p99_s=1"],
            "max_p99_s: found 1 without latencies; allowed: with nodes=, files= or latency=true",
        ),
        (["latency=true", "domain=rack"], "domain: found 'rack'; allowed: node, site"),
        (["latency=true", "nodes=/nowhere.csv"], "nowhere.csv"),
        (["latency=true", "slow=0.5"], "slow: found 0.5; allowed: a number, at least 1"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, capsys, words, message):
    assert main(["codes", *words, f"out={tmp_path / 'out'}"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out" / "runs").exists()


# code: mean and 99 % quantile in ms of full reads healthy, down, slow, repairing, and of small ones healthy and down,
# by the formulas' document from a simulation of 5e5 reads
WORKED = {
    "4+2": ((22.8, 49), (23.0, 50), (48, 233), (68, 189), (9.0, 33.2), (9.8, 35.2)),
    "8+3": ((23.9, 51), (24.4, 52), (69, 300), (88, 219), (9.2, 33.7), (10.4, 37.7)),
}


@pytest.mark.slow
def test_the_worked_examples_latencies_come_out(tmp_path):
    """12 hosts of 10 disks of 2 ms + Exp(6 ms) + bytes / 150 MB/s; 100 reads/s of 4 MiB, 300/s of 64 KiB."""
    hosts = nodes(120, 12) | {
        "delta_s": [0.002] * 120,
        "delta_s_per_byte": [1 / 150e6] * 120,
        "psi_s": [0.006] * 120,
    }
    places = {
        "nodes": table(hosts, tmp_path, "nodes"),
        "files": table(files(600, 100.0, (4.0 * 2**20,)), tmp_path, "files"),
    }
    with ecjax.codes(list(WORKED), **places, domain="site", small_reads=3.0, slow=5.0) as results:
        rows = results.codes.set_index("code")
    names = ("healthy", "down", "slow", "repairing", "small_healthy", "small_down")
    for code, values in WORKED.items():
        for name, (mean, p99) in zip(names, values, strict=True):
            row = rows.loc[code]
            assert 1e3 * row[f"{name}_mean_s"] == pytest.approx(mean, rel=0.05), (code, name)
            assert 1e3 * row[f"{name}_p99_s"] == pytest.approx(p99, rel=0.08), (code, name)


@pytest.mark.parametrize(("per_disk", "printed"), [(100e6, None), (150e6, 55)])
def test_copies_under_repair_wait_as_one_queue_does(tmp_path, per_disk, printed):
    """3x of the worked example takes one chunk: Pollaczek and Khinchine have its mean while a disk is repaired.

    The document's 55 ms is at 6 GB/s, which 42 disks reach at 150 MB/s each; at its own 100 MB/s it is 47 ms.
    """
    few, pieces = 12, 4.0 * 2**20
    hosts = nodes(few, 12) | {
        "delta_s": [0.002] * few,
        "delta_s_per_byte": [1 / 150e6] * few,
        "psi_s": [0.006] * few,
    }
    places = {
        "nodes": table(hosts, tmp_path, "nodes"),
        "files": table(files(MANY, 100.0 * few / 120, (pieces,)), tmp_path, "files"),
    }
    # a tenth of the nodes with a tenth of the reads: each has the reads and its share of the repair that it had
    example = {"domain": "site", "disks": 10, "small_reads": 3.0, "repair_bytes_per_s": per_disk}
    with ecjax.codes(["3x"], **places, **example) as results:
        row = results.codes.iloc[0]
    at_work = repair_time(RepairCluster(12, 10, 1024, 5e14, per_disk, 6e9, 600.0), 3, 1, 1, 0, 1)
    reads = np.array([100 / 120, 300 / 120, at_work.bytes_per_s / 110 / pieces])
    fixed = 0.002 + np.array([pieces, 65536.0, pieces]) / 150e6
    load = float(reads @ (fixed + 0.006))
    square = float(reads @ ((fixed + 0.006) ** 2 + 0.006**2))
    mean = fixed[0] + 0.006 + square / 2 / (1 - load)
    assert row["repairing_mean_s"] == pytest.approx(mean, rel=0.02)
    if printed is not None:
        assert 1e3 * mean == pytest.approx(printed, abs=0.5)
    else:
        assert 1e3 * mean == pytest.approx(47.0, abs=0.5)


@pytest.mark.slow  # a minute and a half of planning
def test_each_class_has_a_code_of_its_own(tmp_path):
    """Without load reads of copies take one exponential, of 4+2 the slowest of four: copies are for what is read."""
    rate = [7e-4] * 8 + [2.5e-5] * 16
    table_of = files(24, 1e-3) | {"bytes": [1e6] * 8 + [4e6] * 16, "rate_per_s": rate}
    places = {"nodes": table(nodes(12), tmp_path, "nodes"), "files": table(table_of, tmp_path, "files")}
    options = {"groups": 64, "durability_nines": 1, "classes": "hot_cold", "hot_share": 0.9}
    with ecjax.codes(["3x", "4+2"], **places, **LITTLE_REPAIR, **options) as results:
        rows, classes = results.codes.set_index("code"), results.class_codes
        together, sentence = results.combinations, results.sentence
        chosen = results.runs["recommended_combination"].iloc[0]
        names = [text.get_text() for text in results.figure("combinations").axes[0].texts]
        assert "codes of hot / cold, planned together" in results.summary
    alone = {"3x": MEAN, "4+2": MEAN * harmonic(4)}
    shares = {"hot": (8 / 72, 56 / 60), "cold": (64 / 72, 4 / 60)}
    for row in classes.to_dict("records"):
        assert (row["bytes_share"], row["read_share"]) == pytest.approx(shares[row["service_class"]])
        assert row["healthy_mean_s"] == pytest.approx(alone[row["code"]], rel=0.01)
        chunks = {"3x": 1, "4+2": 4}[row["code"]]
        assert row["load"] == pytest.approx(row["read_share"] * 6e-3 * chunks * MEAN / 12)
    codes_of = [json.loads(text) for text in together["codes"]]
    # copies of what is seldom read only are dearer and slower than those of what is read
    assert [tuple(each.values()) for each in codes_of] == [("4+2", "4+2"), ("3x", "4+2"), ("3x", "3x")]
    for row, each in zip(together.to_dict("records"), codes_of, strict=True):
        mean = sum(shares[name][1] * alone[code] for name, code in each.items())
        dollars = sum(shares[name][0] * rows.loc[code, "dollars_per_period"] for name, code in each.items())
        assert row["healthy_mean_s"] == pytest.approx(mean, rel=0.01)
        assert row["dollars_per_period"] == pytest.approx(dollars)
        assert json.loads(row["class_healthy_mean_s"]) == pytest.approx(
            {name: alone[code] for name, code in each.items()}, rel=0.01
        )
        assert row["nines"] == pytest.approx(min(rows.loc[code, "nines"] for code in each.values()), abs=1e-6)
    assert list(together["recommended"]) == [False, True, False] and together["pareto"].all()
    assert json.loads(chosen) == {"hot": "3x", "cold": "4+2"} and "3x for hot, 4+2 for cold" in sentence
    assert {"4+2 / 4+2", "3x / 4+2", "3x / 3x"} <= set(names)


def test_what_would_overload_the_nodes_alone_is_taken_for_the_class_that_bears_it(monkeypatch, caplog):
    """Small files, read often: eight chunks each are more than twelve disks seek for; large ones bear it."""
    described = pa.table(
        {key: pa.array(value) for key, value in (nodes(12) | {"psi_s": [0.008] * 12}).items()}
    )
    files_of = {"bytes": [6e4, 6e7], "rate_per_s": [300.0, 1.0], "file_id": [0, 1]}
    no_small_reads = SmallRates(np.ones(2), np.zeros(2), None)
    traffic = Traffic(described, pa.table(files_of), None, 1, no_small_reads, 5.0, 1.0, "auto", 0.01)
    classes = classes_of(traffic.files, ["size"], 0.8, [1e6])
    assert classes.names == ("below 1 MB", "from 1 MB")
    candidates = [code_of(name) for name in ("3x", "4+2", "8+3")]
    assert burden_of(traffic, classes, 0, candidates[2]).load == pytest.approx(300 * 8 * 0.008 / 12)
    planned = [tuple(code.name for code in codes) for codes in worth_a_plan(traffic, classes, candidates)]
    assert ("3x", "8+3") in planned and not any(small in ("8+3",) for small, _ in planned)
    # two channels bear twice as much, also of other work (one would be full); services are as long
    two = described.append_column("channels", pa.array([2] * 12)).append_column(
        "background_load", pa.array([0.2] * 12)
    )
    wide = traffic._replace(nodes=two)
    alone, of_two = (burden_of(each, classes, 0, candidates[2]) for each in (traffic, wide))
    assert of_two.load == pytest.approx(alone.load / 2) and of_two.second == pytest.approx(alone.second / 4)
    assert (of_two.mean, of_two.variance) == pytest.approx((0.008, 0.008**2))
    assert any(small.name == "8+3" for small, _ in worth_a_plan(wide, classes, candidates))
    # of too many combinations every second code is left aside, and told
    monkeypatch.setattr(comparison, "_MOST_COMPARED", 4)
    with caplog.at_level("WARNING"):
        planned = [tuple(code.name for code in codes) for codes in worth_a_plan(traffic, classes, candidates)]
    assert {name for names in planned for name in names} <= {"8+3", "3x"}
    assert "of 3 codes, too many for 2 classes, 2 are compared" in caplog.text


@pytest.mark.parametrize(("share", "hot"), [(0.8, 8), (0.3, 3), (0.75, 8), (0.01, 1)])
def test_hot_are_the_fewest_files_with_a_share_of_the_reads(share, hot):
    """Of ten files of one rate: sums of tenths are rounded."""
    classes = classes_of(pa.table(files(10, 1.0)), ["hot_cold"], share, [1e6])
    assert np.sum(classes.of_file == classes.names.index("hot")) == hot


def test_codes_whose_repairs_queue_are_unstable_in_combinations_too():
    code = code_of("4+2")
    quick = Assessment(1.5, 1, 1e-9, 0.0, 1e-9, 0.0, 3600.0, 1e9, 0.1, 0.1)
    assert repairs_status(code, quick, 0.5) == {}
    queueing = repairs_status(code, quick._replace(repair_load=0.4), 0.5)
    assert queueing["status"] == "unstable" and "4+2: repairs queue, load 0.5" in queueing["error"]
    never = repairs_status(code, None, 0.1)
    assert (
        never["status"] == "unstable"
        and never["repair_pace"] == 0
        and "0.1 of their bandwidth" in never["error"]
    )


def test_a_promise_chooses_the_cheapest_combination_that_keeps_it():
    rows = [
        {"durable": durable, "pareto": True, "dollars_per_period": dollars, "healthy_mean_s": mean}
        for durable, dollars, mean in ((False, 1.0, 4.0), (True, 2.0, 3.0), (True, 3.0, 1.0))
    ]
    assert chosen_combination(rows, 0.1) is rows[1]
    assert chosen_combination(rows, None) is rows[2]
    assert chosen_combination(rows[:1], None) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "hot_cold"}, "classes: found hot_cold without files; allowed: with nodes=, files="),
        ({"classes": "size", "latency": True}, "classes: found 1 of files"),
        ({"classes": "hot_cold", "latency": True, "chunks_per_domain": 2}, "found chunks_per_domain=2"),
        ({"classes": "colour", "latency": True}, "allowed: hot_cold, size, service_class"),
        ({"classes": "size", "latency": True, "size_bounds": [2.0, 1.0]}, "size_bounds: found [2.0, 1.0]"),
    ],
)
def test_wrong_classes_are_one_line(options, message):
    with pytest.raises(UserError) as error, ecjax.codes(["2+1"], cluster={"bytes": 1e7}, **options):
        pass
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rate", "options", "words"),
    [
        (1e-3, {"small_reads": 1.0}, "small_reads: found 1 with files that have"),
        (0.0, {}, "rates that sum to 0"),
    ],
)
def test_small_reads_are_said_once_and_beside_full_ones(tmp_path, rate, options, words):
    small = {"small_rate_per_s": [1.0] * 24, "small_bytes": [1e4] * 24}
    with pytest.raises(UserError, match=words):
        codes(tmp_path, ["2+1"], nodes(12), files(24, rate) | small, **options)


@pytest.mark.slow
def test_the_sentence_names_latencies_beside_the_next_best(tmp_path):
    few = ["2+1", "4+2"], nodes(12), files(24, 1e-4)
    rows, results = codes(tmp_path, *few, groups=64, durability_nines=1)
    sentence = " ".join(results.sentence.split())
    # without load: the slowest of two, or four, exponentials of 10 ms
    assert "Full reads, if they arrive as a Poisson process: expected mean 15" in sentence
    assert "with all nodes up" in sentence and "down; 4+2: mean 20.8 ms, p99 5" in sentence
    assert rows.loc["2+1", "down_mean_s"] == pytest.approx(MEAN * harmonic(2), rel=0.01)


@pytest.mark.slow
def test_repairs_give_way_to_reads(tmp_path):
    """A disk's repair reads and writes 25 pieces/s of 10 ms, a quarter of a node; reads take 0.85 of it, or 0.95."""
    fast = {"repair_bytes_per_s": 25e6, "repair_io_bytes": 1e6, "user_bytes": 1e9, "disks": 1, "detect_s": 0}
    fast |= {"groups": 4096, "durability_nines": 1, "domains": 12}
    with ecjax.codes(["2+1"], **fast) as results:
        alone = results.codes.iloc[0]
    rows = {}
    for load in (0.85, 0.95):
        places = {
            "nodes": table(nodes(12), tmp_path, "nodes"),
            "files": table(files(24, load * 12 / MEAN / 2), tmp_path, "files"),
        }
        with ecjax.codes(["2+1"], **places, **fast) as results:
            rows[load] = results.codes.iloc[0], " ".join(results.sentence.split())
    row, sentence = rows[0.85]
    assert row["status"] == "ok" and row["durable"]
    # plans for few files are not quite even
    pace = (0.9 - row["max_load"]) / 0.25
    assert 0 < pace < 1 and row["repair_pace"] == pytest.approx(pace, rel=1e-6)
    assert row["disk_repair_s"] == pytest.approx(alone["disk_repair_s"] / pace)
    assert row["nines"] < alone["nines"] and row["healthy_mean_s"] < row["repairing_mean_s"] < math.inf
    assert "of their bandwidth, so that reads find no node above a load of 0.9" in sentence
    row, sentence = rows[0.95]
    assert row["status"] == "unstable" and not row["durable"] and not row["pareto"]
    assert row["healthy_mean_s"] > 0 and math.isnan(row["repairing_mean_s"])
    assert "leaves nothing for repairs" in row["error"]
    assert sentence.startswith("No code of 1 has 1 nines per object and year. 2+1 comes nearest")
    assert "reads overload its nodes, or leave nothing for repairs" in sentence
