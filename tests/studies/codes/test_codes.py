"""``ecjax codes``: the worked example of the formulas' document, what is printed, and what cannot be."""

import functools
import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import ecjax
from ecjax.cli import main
from ecjax.durability.assessment import Failures, assess
from ecjax.durability.codes import code_of, range_of
from ecjax.durability.domain_chain import Chain, chain_loss_rates, plain_rates, state_count
from ecjax.durability.lrc import decodable_shares, lrc_loss_rate
from ecjax.durability.lrc_domains import lrc_chain_loss_rates
from ecjax.durability.mds_chain import mean_years_to_loss
from ecjax.durability.repair_times import RepairCluster, repair_time
from ecjax.studies.codes.nearest import nearest_text, target_text
from ecjax.studies.codes.summary import show
from ecjax.studies.codes.tables import TABLES
from ecjax.tables.results import read_results
from ecjax.tables.store import ResultStore

# code: n/k, loss per object-year, nines, any loss per year, repair h, TB/day; as printed, with two digits
WORKED = {
    "3x": (3.0, 7.4e-13, 12.1, 1.3e-6, None, 0.14),
    "4+2": (1.5, 8.5e-12, 11.1, 6.8e-6, 1.6, 0.18),
    "6+3": (1.5, 7.1e-16, 15.1, 3.3e-10, 2.2, 0.25),
    "8+3": (1.375, 4.8e-15, 14.3, 1.0e-9, 2.6, 0.29),
    "8+4": (1.5, 2.9e-19, 18.5, 4.9e-14, 2.8, 0.32),
    "10+4": (1.4, 4.1e-12, 11.4, 5.0e-8, 3.1, 0.36),
    "17+3": (20 / 17, 3.2e-7, 6.5, 3.3e-5, 4.3, 0.50),
}


def test_nines_are_drawn_against_overhead():
    with ecjax.codes(["4+2", "8+3", "3x"]) as results:
        axes = results.figure("nines").axes[0]
        drawn = [tuple(point) for line in axes.lines[:2] for point in line.get_xydata()]
        rows = results.codes
        assert sorted(drawn) == sorted(zip(rows["overhead"], rows["nines"], strict=True))


@pytest.fixture(scope="module")
def worked(tmp_path_factory):
    out = str(tmp_path_factory.mktemp("codes") / "out")
    assert main(["codes", *WORKED, "lrc(12,2,2)", "chunks_per_domain=2", f"out={out}"]) == 0
    return read_results(out, "codes").set_index("code")


@pytest.mark.parametrize("code", WORKED)
def test_the_worked_example_comes_out(worked, code):
    overhead, lost, nines, any_loss, hours, terabytes = WORKED[code]
    row = worked.loc[code]
    assert row["overhead"] == pytest.approx(overhead)
    assert row["object_loss_probability"] == pytest.approx(lost, rel=0.02, abs=0)
    assert row["nines"] == pytest.approx(nines, abs=0.051)
    assert row["any_loss_probability"] == pytest.approx(any_loss, rel=0.04, abs=0)
    assert row["repair_bytes_per_day"] / 1e12 == pytest.approx(terabytes, abs=0.0051)
    if hours is not None:
        assert row["disk_repair_s"] / 3600 == pytest.approx(hours, abs=0.1)
    assert row["durable"] == (nines >= 11)


def test_copies_of_a_lost_disk_keep_too_few_disks_at_work_for_the_network(worked):
    """The document prints 1.3 h for 3x, what its lost bytes take at 6 GB/s; so many disks are not at work.

    Groups are placed at random: of 110 disks some 42 read or write for a lost one, each 100 MB/s.
    """
    random = np.random.default_rng(0)
    hosts, disks, groups, chunk = 12, 10, 1024, 500e12 / 1024
    hours, at_work = [], []
    for _ in range(200):
        where = np.argsort(random.random((groups, hosts)), axis=1)[:, :3]
        disk = where * disks + random.integers(0, disks, where.shape)
        lost = 0
        concerned = np.flatnonzero((disk == lost).any(axis=1))
        busy = set()
        for group in concerned:
            others = disk[group][disk[group] != lost]
            used = set(others // disks)
            free = [host for host in range(1, hosts) if host not in used]
            target = random.choice(free) * disks + random.integers(disks)
            busy |= {int(random.choice(others)), int(target)}
        at_work.append(len(busy))
        hours.append((600 + 2 * chunk * len(concerned) / min(6e9, 1e8 * len(busy))) / 3600)
    formula = repair_time(RepairCluster(hosts, disks, groups, 500e12, 1e8, 6e9, 600.0), 3, 1, 1, 0, 1)
    assert formula.disks_at_work == pytest.approx(np.mean(at_work), rel=0.05) and np.mean(at_work) < 50
    assert worked.loc["3x", "disk_repair_s"] / 3600 == pytest.approx(np.mean(hours), rel=0.05)
    assert np.mean(hours) > 1.7
    # what the document prints: the bytes of a disk, read and written at 6 GB/s
    assert (600 + 2 * 3 * 500e12 / 120 / 6e9) / 3600 == pytest.approx(1.3, abs=0.05)


def test_all_but_one_are_on_the_front(worked):
    assert list(worked.index[~worked["pareto"]]) == ["10+4"]
    assert worked.loc["8+3", "domain_loss_share"] == pytest.approx(0.98, abs=0.005)


def test_chunks_of_local_groups_apart_outlive_two_domains(worked):
    """The document's 4.7e-11 has two domains with other pairs of chunks; at random it would be 9.7e-9."""
    row = worked.loc["lrc(12,2,2)"]
    assert 2e-11 < row["object_loss_probability"] < 4.7e-11
    assert row["repair_bytes_per_day"] / 1e12 == pytest.approx(0.24, abs=0.0051)
    assert row["disk_repair_s"] / 3600 == pytest.approx(2.2, abs=0.1)


def test_lrc_with_its_local_groups_apart_by_plain_enumeration(worked):
    """All sequences of up to four failures with the repairs between them, chunk by chunk: no states are lumped."""
    apart = [(0, 1)] * 4 + [(0,)] * 3 + [(1,)] * 3 + [(2,)] * 2
    lost = enumerated_losses(apart)
    assert worked.loc["lrc(12,2,2)", "object_loss_probability"] == pytest.approx(lost, rel=0.005, abs=0)
    # the document's 4.7e-11 lies between this and pairs with global parities
    with_globals = [(0, 1)] * 2 + [(0, 2), (1, 2)] + [(0,)] * 4 + [(1,)] * 4
    assert lost < 4.7e-11 < enumerated_losses(with_globals)


def enumerated_losses(placed):
    """Losses per year of LRC(12,2,2) in the document's cluster; local groups 0, 1 and globals 2 of each host."""
    k, n, hosts, disks, groups = 12, 16, len(placed), 10, 1024
    disk_rate, host_rate = -math.log1p(-0.015), 0.002
    read_one, chunk = (14 * 6 + 2 * 12) / 16, 500e12 / (groups * k)

    def work(hosts_lost, disks_lost, read):
        concerned = 1 + (groups - 1) * (n / hosts / disks) ** disks_lost
        at_work = disks * (hosts - 1) * (1 - (1 - (read + 1) / (disks * (hosts - 1))) ** concerned)
        each = chunk * (read + 1) / min(6e9, 1e8 * at_work)
        return (concerned + 1) / 2 * each, concerned * each

    load = hosts * disks * disk_rate * work(0, 1, read_one)[1] / (8766 * 3600)

    def counts(lost):
        labels = [placed[host][place] for host, place in lost]
        return [labels.count(label) for label in range(3)]

    def dead(lost):
        a, b, c = counts(lost)
        return max(0, a - 1) + max(0, b - 1) + c > 2

    @functools.cache
    def losses(lost, whole, left):
        """Expected losses until the group is whole again, with at most so many failures more."""
        single = len(lost) == 1
        alone = sum(host not in whole for host, _ in lost)
        seconds = work(len(whole), alone, read_one if single else k)[0] / ((1 - load) if single else 1)
        repair = 8766 * 3600 / (600 + seconds)
        total, value = repair, 0.0
        for rate, more, gone in failures(lost, whole):
            total += rate
            if dead(more):
                value += rate
            elif left > 1:
                value += rate * losses(more, gone, left - 1)
        label = counts(lost)
        here = {host: [each for each, _ in lost].count(host) for host, _ in lost}

        def urgency(chunk):
            kind = placed[chunk[0]][chunk[1]]
            return kind == 2 or label[kind] > 1, here[chunk[0]], -len(placed[chunk[0]])

        rest = lost - {max(sorted(lost), key=urgency)}
        if rest:
            value += repair * losses(rest, whole & {host for host, _ in rest}, left)
        return value / total

    def failures(lost, whole):
        for host, labels in enumerate(placed):
            chunks = frozenset((host, place) for place in range(len(labels)))
            for chunk_lost in chunks - lost:
                yield disk_rate, lost | {chunk_lost}, whole
            if chunks - lost:
                yield host_rate, lost | chunks, whole | {host}

    nothing = frozenset()
    return sum(rate * losses(lost, whole, 3) for rate, lost, whole in failures(nothing, nothing))


def test_planned_outages_are_the_documents():
    """4+2 with four outages of an hour per host and year: 8.5e-12 lost, and the terms of unavailability.

    Two chunks are lost during an outage, or an outage of one of the four other domains begins while two are.
    """
    lost, cluster = -math.log1p(-0.015) + 0.002, RepairCluster(12, 10, 1024, 5e14, 1e8, 6e9, 600.0)
    one, two = (repair_time(cluster, 6, 4, 4.0, 0, each).mean_s / (8766 * 3600) for each in (1, 2))
    expected = 6 * 4 / 8766 * 5 * 4 * lost**2 * one + 4 * 4 * two * 6 * 5 * lost**2 * one
    with ecjax.codes(["4+2", "lrc(6,2,2)"], outages_per_year=4, outage_hours=1) as results:
        row, lrc = (results.codes.iloc[place] for place in (0, 1))
        assert row["unavailable_per_year"] == pytest.approx(expected, rel=0.01, abs=0)
        assert math.isnan(lrc["unavailable_per_year"])
        assert row["object_loss_probability"] == pytest.approx(8.5e-12, rel=0.02, abs=0)


def test_one_chunk_a_domain_is_as_if_local_groups_were_not_told_apart():
    repair = plain_rates([2000.0, 1500.0, 1200.0, 1000.0])
    chain = Chain(
        (1,) * 10, decodable_shares(6, 2, 2)[:5], *map(np.array, (0.02, 0.003)), repair, np.array(0.0)
    )
    lumped, exact = chain_loss_rates(chain), lrc_chain_loss_rates((6, 2, 2), chain)
    assert lumped.keys() == exact.keys()
    assert float(sum(exact.values())) == pytest.approx(float(sum(lumped.values())), rel=0.01, abs=0)
    without = chain._replace(domain_rate=np.array(0.0))
    alone = lrc_loss_rate((6, 2, 2), 0.02, [2000.0, 1500.0, 1200.0, 1000.0])
    without_domains = lrc_chain_loss_rates((6, 2, 2), without)
    assert without_domains.keys() == {0} and float(without_domains[0]) == pytest.approx(
        alone, rel=1e-9, abs=0
    )


def test_few_and_many_groups():
    failures = Failures(-math.log1p(-0.015), 0.002, 0.0, 1.0, 0.0)
    for groups, lost, any_lost in ((128, 9.1e-15, 7.7e-13), (8192, 4.7e-15, 1.2e-12)):
        cluster = RepairCluster(12, 10, groups, 500e12, 100e6, 6e9, 600.0)
        assessed = assess(code_of("8+3"), cluster, failures)
        assert assessed.losses == pytest.approx(lost, rel=0.02, abs=0)
        assert assessed.any_losses == pytest.approx(any_lost, rel=0.05, abs=0)


@pytest.mark.parametrize(
    ("code", "rate"), [("8+4", 0.5), ("8+4", 0.1), ("6+3", 0.1), ("10+2", 0.05), ("4+8", 0.002)]
)
def test_groups_lost_together_are_fewer_events_than_losses(code, rate):
    """P R bounds the events, and the most that one can take, all groups, bounds how many fewer they are."""
    cluster = RepairCluster(12, 10, 1024, 500e12, 100e6, 6e9, 600.0)
    assessed = assess(code_of(code), cluster, Failures(-math.log1p(-0.015), rate, 0.0, 1.0, 0.0))
    assert assessed.losses <= assessed.any_losses * (1 + 1e-12) <= 1024 * assessed.losses * (1 + 1e-9)


@pytest.mark.parametrize(
    ("code", "rate", "events"), [("8+4", 0.02, 2.8e-14), ("8+3", 0.1, 7.09e-9), ("4+2", 0.1, 1.341e-6)]
)
def test_events_by_kind_are_those_of_slow_losses_scaled(code, rate, events):
    """R_h by the chain in 120 digits at rates so small that each kind is a monomial, and scaled up from there."""
    cluster = RepairCluster(12, 10, 1024, 500e12, 100e6, 6e9, 600.0)
    assessed = assess(code_of(code), cluster, Failures(-math.log1p(-0.015), rate, 0.0, 1.0, 0.0))
    assert assessed.any_losses == pytest.approx(events, rel=0.02, abs=0)


def test_without_lost_domains_it_is_the_chain_of_disks():
    cluster = RepairCluster(40, 1, 64, 1e12, 1e8, 1e9, 60.0)
    rate = 0.02
    assessed = assess(code_of("4+2"), cluster, Failures(rate, 0.0, 0.0, 1.0, 0.0))
    times = [repair_time(cluster, 6, 4, 4.0, 0, lost) for lost in (1, 2)]
    seconds = [60 + times[0].work_s / (1 - assessed.repair_load), times[1].mean_s]
    years = mean_years_to_loss(6, rate, [8766 * 3600 / each for each in seconds])
    assert assessed.losses == pytest.approx(1 / years, rel=1e-12, abs=0)
    assert assessed.latent_losses == 0 and assessed.domain_share == 0


def test_what_is_printed_fits_and_recommends(tmp_path, capsys):
    words = ["codes", "codes=[4+2,8+3]", f"out={tmp_path / 'out'}"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "take 8+3: 1.375 times the data" in " ".join(printed.split())
    assert main([*words, "durability_nines=30", "--quiet"]) == 0
    assert "No code of 2 has 30 nines" in capsys.readouterr().out
    narrow = io.StringIO()
    out = str(tmp_path / "out")
    show(read_results(out, "runs").head(1), Console(file=narrow, width=80), out)
    assert "in 80 columns" in narrow.getvalue()
    assert all(len(line) <= 80 for line in narrow.getvalue().splitlines() if out not in line)
    assert main(["show", out]) == 0
    assert main(["report", out, f"pictures={tmp_path / 'pictures'}"]) == 0
    assert (tmp_path / "pictures" / "nines.png").exists()


def test_show_tells_codes_of_classes(tmp_path, capsys):
    """Those of each run, as the command does."""
    latencies = {"healthy_mean_s": 0.125, "healthy_p99_s": 0.5, "down_mean_s": 0.25, "down_p99_s": 0.75}
    with ResultStore(tmp_path, TABLES, {}) as store:
        for run, codes in (("a", {"hot": "3x", "cold": "4+2"}), ("b", {"small": "2x", "large": "8+3"})):
            row = latencies | {"run_id": run}
            shares = {"bytes_share": 0.5, "read_share": 0.5}
            classes = [row | shares | {"service_class": name, "code": code} for name, code in codes.items()]
            tables = {"class_codes": classes, "combinations": [row | {"codes": json.dumps(codes)}]}
            tables = {name: pa.Table.from_pylist(rows) for name, rows in tables.items()}
            store.commit([{"run_id": run, "status": "ok", "version": "1", "params": "{}"}], tables)
    assert main(["show", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for classes, codes in (("hot / cold", "3x / 4+2"), ("small / large", "2x / 8+3")):
        assert f"codes of {classes}, planned together" in out and codes in out
    assert out.count("full reads of each class") == 2 and out.count("125/500") == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["codes=5-2"], "codes: found 5-2; allowed: K+M as 8+3"),
        (["lrc(12,5,2)"], "codes: found lrc(12,5,2); allowed"),
        (["0x"], "codes: found 0x; allowed"),
        (["10+4"], "14 chunks on domains=12 with chunks_per_domain=1; allowed: at most 12 chunks"),
        (["4+1", "domains=3", "chunks_per_domain=2"], "survives 1 losses, on domains=3: one holds 2"),
        (["8+3", "repair_bytes_per_s=2000"], "8+3, whose repairs never catch up: load"),
        (["3x", "user_bytes=1e15"], "3x, which needs 3e+15 bytes of disk; allowed: at most 1.92e+15"),
        (
            ["8+3", "groups=1"],
            "8+3, whose chunks of 6.25e+13 bytes, user_bytes / groups / k, are larger than a disk",
        ),
        (
            ["xorbas(14,8,7)", "domains=22"],
            "codes: found xorbas(14,8,7), which has 600370 sets of up to 8 losses; allowed: at most 500000",
        ),
        (["domain=site"], "domain: found site without nodes; allowed: with nodes=, files= or latency=true"),
        (["codes=9:4+2"], "codes: found 9:4+2; allowed"),
        (["20:22+2", "domains=10"], "codes=20:22+2: none of its 3 codes fits; the first: codes: found 20+2"),
        (["afr=1"], "afr: found 1; allowed: a number between 0 and 1"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, capsys, words, message):
    assert main(["codes", *words, f"out={tmp_path / 'out'}"]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert message in error
    assert not (tmp_path / "out" / "runs").exists()


def test_no_nines_where_repairs_queue():
    with ecjax.codes("4+2", cluster_bytes_per_s=4e6) as results:
        row = results.codes.iloc[0]
        assert 0.3 < row["repair_load"] < 1 and math.isnan(row["nines"])
        assert (
            not row["durable"] and row["status"] == "unstable" and "4+2: repairs queue, load" in row["error"]
        )
        assert results.recommended_run is None and "No code of 1 has 11 nines" in results.sentence


def test_of_ranges_those_that_fit_are_compared(tmp_path):
    assert [code.name for code in range_of("4:5+2:3")] == ["4+2", "4+3", "5+2", "5+3"]
    assert len(range_of("all")) == 3 + 15 * 4
    assert range_of("4+2") is None and range_of("5:4+2") is None
    with ecjax.codes(["4+2", "4:9+2:4"], domains=10) as results:
        names = list(results.codes["code"])
        # 17 pairs less 7+4, 8+3, 8+4, 9+2, 9+3, 9+4 on ten domains, 4+2 once
        assert len(names) == len(set(names)) == 12 and names[0] == "4+2" and "8+2" in names
        assert results.runs["code_count"].iloc[0] == 12


def nodes_table(path, sites):
    """A node for each name of a site."""
    rows = [f"n{at},{site},0.01,0.0002,0.000006,1000000" for at, site in enumerate(sites)]
    header = "node_id,site,service_mean_s,service_second_s2,service_third_s3,reference_bytes"
    path.write_text("\n".join([header, *rows]))
    return str(path)


def test_nodes_tell_failure_domains_without_latencies(tmp_path):
    """Twenty nodes, or their five sites of four: not the twelve domains of the defaults."""
    nodes = nodes_table(tmp_path / "nodes.csv", [f"s{at % 5}" for at in range(20)])
    for domain, domains, disks in (("node", 20, 200), ("site", 5, 20)):
        with ecjax.codes(["3+1"], nodes=nodes, latency=False, domain=domain, user_bytes=1e13) as results:
            run, row = results.runs.iloc[0], results.codes.iloc[0]
        assert (run["domain_count"], run["disk_count"]) == (domains, disks)
        assert row.isna()["healthy_mean_s"]
        cluster = RepairCluster(domains, disks // domains, 1024, 1e13, 1e8, 6e9, 600.0)
        failures = Failures(-math.log1p(-0.015), 0.002, 0.05, 14 * 24 / 8766, 1e-15)
        losses = assess(code_of("3+1"), cluster, failures).losses
        assert row["nines"] == pytest.approx(-math.log10(losses), rel=1e-9)


def test_sites_of_few_nodes_leave_more_chunks_to_the_others(tmp_path, capsys):
    """Nine chunks on sites of 2, 4 and 4 nodes: one site has four of them, more than three parities outlive."""
    nodes = nodes_table(tmp_path / "nodes.csv", "aabbbbcccc")
    words = [f"nodes={nodes}", "latency=false", "domain=site", "chunks_per_domain=4", "user_bytes=1e13"]
    assert main(["codes", "6+3", *words, f"out={tmp_path / 'out'}"]) == 2
    line = " ".join(capsys.readouterr().err.split())
    assert (
        "6+3, which survives 3 losses, on domains=3: one holds 4 chunks; allowed: codes that outlive" in line
    )
    assert main(["codes", "9+2", *words, f"out={tmp_path / 'out'}"]) == 2
    assert "9+2, 11 chunks on domains=3 with chunks_per_domain=4; allowed: at most 10 chunks" in " ".join(
        capsys.readouterr().err.split()
    )
    options = {"domain": "site", "chunks_per_domain": 4, "user_bytes": 1e13, "latency": False}
    with ecjax.codes(["5+4"], nodes=nodes, **options) as results:
        assert results.codes["chunks_per_domain"].tolist() == [4]


def test_losses_below_what_floats_hold_are_many_nines_and_not_unknown(capsys, tmp_path):
    words = ["4+60", "domains=64", "afr=1e-4", "domain_losses_per_year=0", f"out={tmp_path / 'out'}"]
    assert main(["codes", *words]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "take 4+60" in printed and "323.0 nines" in printed
    assert "no nines where the load" not in printed and "repairs queue" not in printed
    assert read_results(str(tmp_path / "out"), "codes")["nines"].tolist() == [323.0]


def test_any_loss_is_a_floor_too():
    with ecjax.codes(["4+2", "6+3"], max_any_loss=1e-6) as results:
        assert results.runs["recommended_code"].iloc[0] == "6+3"
        assert "any loss below 1e-06 a year" in results.sentence


TABLE = """code,k,n,checks,repair_chunks,degraded_chunks
azure,12,16,0-5 12; 6-11 13,,
mine,8,12,,2.75,
"""


def test_codes_of_a_table_stand_beside_those_of_ecjax(tmp_path):
    table = tmp_path / "codes.csv"
    table.write_text(TABLE)
    with ecjax.codes(
        ["lrc(12,2,2)", "azure", "clay(8,4,11)", "mine"], code_table=str(table), domains=20
    ) as results:
        rows = results.codes.set_index("code")
    same = ["n", "overhead", "nines", "repair_bytes_per_day", "any_loss_probability"]
    for one, other in (("azure", "lrc(12,2,2)"), ("mine", "clay(8,4,11)")):
        for name in same:
            assert rows.loc[one, name] == pytest.approx(rows.loc[other, name], rel=1e-9), name


@pytest.mark.parametrize(
    "line, message",
    [
        ("a,8,12,0-3 12,,", "check '0-3 12'"),
        ("a,8,12,0-3;4-7;8;9-10;0-1,,", "check '8'"),
        ("a,8,8,,,", "n above k"),
        ("8+3,8,11,,,", "a name that ecjax does not have"),
        ("a,8,12,zero,,", "chunks as 0-4 14"),
        ("a,8,12,0-99999999999,,", "chunks as 0-4 14"),
        ("a,8,12,0-999999999,,", "check '0-999999999'; allowed: two or more different chunks of 0 to 11"),
        ("a,8,12,0 1 4-2,,", "check '0 1 4-2'"),
        ("a,8.5,12,,,", "k 8.5"),
        ("a,inf,12,,,", "k inf; allowed: a whole number from 1 to 64"),
        ("a,8,12,,-1,", "repair_chunks -1"),
        ("a,4,6,,2.4,", "repair_chunks 2.4; allowed: at least 2.5"),
        ("a,4,6,0-4,0.9,", "repair_chunks 0.9; allowed: at least 1, a chunk"),
        ("a,8,12,,,0", "degraded_chunks 0"),
        ("a,40,60,,,", "sets of up to n - k = 20 losses"),
        (
            "bad,4,6,0-3,,",
            "checks '0-3', which data of any values do not keep; allowed: checks that chunks 4 to 5",
        ),
        ("bad,4,6,0 1 4; 2 3 4,,", "checks '0 1 4; 2 3 4', which data of any values do not keep"),
        ("mine,8,12,,,", "a second mine"),
    ],
)
def test_a_row_that_is_no_code_is_named(tmp_path, capsys, line, message):
    table = tmp_path / "codes.csv"
    table.write_text(TABLE + line + "\n")
    assert main(["codes", "mine", f"code_table={table}", f"out={tmp_path / 'out'}"]) == 2
    err = capsys.readouterr().err
    assert "code_table: row 2" in err and message in err and not (tmp_path / "out").exists()


def test_files_of_codes_that_do_not_fit_together_are_named(tmp_path, capsys):
    for name, k in (("one", 8), ("two", "8")):
        row = {"code": [name], "k": [k], "n": [12], "checks": [""]}
        (tmp_path / "codes").mkdir(exist_ok=True)
        pq.write_table(pa.table(row), tmp_path / "codes" / f"{name}.parquet")
    words = ["codes", "one", f"code_table={tmp_path / 'codes'}", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"ecjax: code_table: {tmp_path / 'codes'}: its files do not fit together" in err


@pytest.mark.parametrize(
    "words, message",
    [
        (["azur"], "found azur; allowed in code_table: azure, mine"),
        (["azure", "domains=8", "chunks_per_domain=2"], "a domain for each chunk"),
    ],
)
def test_codes_that_the_table_lacks_or_the_cluster_cannot_hold(tmp_path, capsys, words, message):
    table = tmp_path / "codes.csv"
    table.write_text(TABLE)
    assert main(["codes", *words, f"code_table={table}", f"out={tmp_path / 'out'}"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_repairs_of_domains_are_part_of_the_load(capsys, tmp_path):
    """12 hosts lost once a year each: 40 TB of data and 20 of parity on each, read 4 times and written, at 6 GB/s."""
    cluster = {"domain_losses_per_year": 1.0, "afr": 1e-9, "detect_s": 0, "user_bytes": 480e12}
    with ecjax.codes(["4+2"], **cluster) as results:
        row = results.codes.iloc[0]
    seconds = 60e12 * 5 / 6e9
    assert row["domain_repair_load"] == pytest.approx(12 * seconds / (8766 * 3600), rel=0.01)
    assert row["repair_bytes_per_day"] == pytest.approx(12 * 60e12 * 5 / 365.25, rel=1e-6)
    words = ["codes", "8+4", "domain_losses_per_year=100", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    assert "whose repairs never catch up: load 3.57, 3.6 of it by lost domains" in " ".join(
        capsys.readouterr().err.split()
    )


def test_no_nines_where_worse_assumptions_make_repairs_queue():
    with ecjax.codes(["8+3"], cluster_bytes_per_s=1.3e7, durability_nines=1) as results:
        row, sentence = results.codes.iloc[0], results.sentence
    assert row["repair_load"] + row["domain_repair_load"] < 0.3 < 2 * row["repair_load"]
    assert math.isnan(row["nines_double_repair"]) and math.isnan(row["nines_double_afr"])
    assert "with twice the afr repairs queue, so that nines are unknown" in " ".join(sentence.split())


@pytest.mark.parametrize(
    ("codes", "options", "words"),
    [
        (
            ["8+3", "4+2"],
            {"max_any_loss": 1e-30},
            "8+3 comes nearest with 14.3 nines: any loss is 1.0e-09 a year. Next: more parity, faster repair.",
        ),
        (
            ["2x", "4+2"],
            {"durability_nines": 12},
            "4+2 comes nearest with 11.1 nines: 0.93 nines are missing. Next: more parity, faster repair.",
        ),
        (
            ["8+3"],
            {"cluster_bytes_per_s": 9e6},
            "8+3 comes nearest: its repairs queue. Next: faster repair (repair_bytes_per_s, cluster_bytes_per_s), less "
            "user_bytes, or fewer data chunks.",
        ),
    ],
)
def test_where_no_code_keeps_all_the_sentence_says_what_is_missed(codes, options, words):
    with ecjax.codes(codes, **options) as results:
        sentence = " ".join(results.sentence.split())
    assert sentence.startswith(f"No code of {len(codes)} has ")
    assert words in sentence


def test_what_is_advised_shortens_the_queue_of_repairs():
    """Load of repairs of 8+3 is in proportion to 11 / 8 x (8 + 1), user_bytes and 1 / cluster_bytes_per_s."""

    def loads(codes, **options):
        with ecjax.codes(codes, **{"cluster_bytes_per_s": 9e6} | options) as results:
            return results.codes.set_index("code")["repair_load"]

    by_code = loads(["8+3", "4+3", "8+4", "2+1", "2x", "4+2", "3+2"])
    assert by_code["4+3"] < by_code["8+3"] < by_code["8+4"]
    assert by_code["2x"] < by_code["2+1"] < by_code["3+2"] < by_code["4+2"]
    for options in ({"cluster_bytes_per_s": 1.8e7}, {"user_bytes": 250e12}):
        assert loads(["8+3"], **options)["8+3"] == pytest.approx(by_code["8+3"] / 2)


def test_what_nearest_codes_miss():
    run = {"durability_nines": 11.0, "max_any_loss": None, "max_p99_s": 0.05}
    row = {"nines": 12.0, "any_loss_probability": 1e-9, "status": "ok", "down_p99_s": 0.08}
    assert target_text(run).endswith(
        "11 nines per object and year and 99 % of full reads within 50 ms with a failure domain down"
    )
    fast = {**row, "code": "2+2", "nines": 10.5, "down_p99_s": 0.04}
    slow = {**row, "code": "8+4"}
    none = {**row, "code": "6+3", "down_p99_s": None}
    few = {**row, "code": "10+5", "status": "infeasible", "down_p99_s": None}
    busy = {**row, "code": "12+5", "status": "unstable", "down_p99_s": None}
    assert nearest_text([fast], run) == (
        "2+2 comes nearest with 10.5 nines: 0.5 nines are missing. Next: more parity, faster repair."
    )
    assert nearest_text([slow], run) == (
        "8+4 comes nearest with 12.0 nines: 99 % of full reads take up to 80 ms with a node down. Next: fewer data "
        "chunks, faster nodes, or lower rates."
    )
    assert "with a node down a node is overloaded" in nearest_text([none], run)
    assert "with a site down a node" in nearest_text([none | {"busiest_site": "s1"}], run)
    assert "the nodes are too few for its chunks. Next: more nodes, or shorter codes." in nearest_text(
        [few], run
    )
    assert "reads overload its nodes, or leave nothing for repairs. Next: lower rates" in nearest_text(
        [busy], run
    )
    queues = {**row, "code": "3x", "k": 1, "nines": None, "status": "unstable"}
    repair = (
        "3x comes nearest: its repairs queue and 99 % of full reads take up to 80 ms with a node down. Next: "
    )
    repair += "faster repair (repair_bytes_per_s, cluster_bytes_per_s), or less user_bytes; "
    assert nearest_text([queues], run) == f"{repair}fewer data chunks, faster nodes, or lower rates."
    # reads leave repairs half of their bandwidth
    assert nearest_text([queues | {"repair_pace": 0.5, "down_p99_s": 0.04}], run).endswith(
        "or less user_bytes; lower rates, or more nodes."
    )


def test_equal_codes_are_one_and_equal_prices_are_said():
    with ecjax.codes(["1+2", "3x", "2x", "1+1"], durability_nines=6) as results:
        assert list(results.codes["code"]) == ["3x", "2x"]
    slow = {"repair_bytes_per_s": 1e6, "cluster_bytes_per_s": 1.6e7, "durability_nines": 1}
    with ecjax.codes(["4+2", "6+3", "3x"], **slow) as results:
        sentence = " ".join(results.sentence.split())
    assert "take 4+2" in sentence
    assert "At the same price: 6+3 with 1.4 times the repair traffic (7.5 nines). Dearer: 3x" in sentence


@pytest.mark.parametrize(
    "words",
    [
        ["codes=lrc(6,2,2),4+2"],
        ["codes=[lrc(6,2,2),4+2]"],
        ["codes=LRC(6,2,2),4+2"],
        ['codes=["lrc(6,2,2)",4+2]'],
        ["lrc(6,2,2),4+2"],
        ["lrc(6,2,2)", "4+2"],
    ],
)
def test_codes_with_brackets_need_no_quotes_of_their_own(words, tmp_path):
    out = tmp_path / "out"
    assert main(["codes", *words, f"out={out}", "figures=[]"]) == 0
    assert list(read_results(str(out), "codes")["code"]) == ["lrc(6,2,2)", "4+2"]


def test_groups_of_too_many_states_are_refused(capsys, tmp_path):
    words = ["codes", "20+20", "domains=14", "chunks_per_domain=3", "disks=40", f"out={tmp_path / 'out'}"]
    assert main(words) == 2
    line = " ".join(capsys.readouterr().err.split())
    assert (
        "20+20, whose groups have 91246 states of loss with 3 chunks in a domain; allowed: at most 4000"
        in line
    )


@pytest.mark.parametrize(("chunks", "m"), [((1,) * 5, 2), ((2, 2, 2), 3), ((3, 3, 2, 1), 5)])
def test_states_are_counted_as_a_chain_reaches_them(chunks, m):
    start = tuple(sorted((each, 0) for each in chunks))
    reached, new = set(), {tuple((each, gone, False) for each, gone in start)}
    while new:
        group = new.pop()
        reached.add(group)
        for place, (size, missing, whole) in enumerate(group):
            after = [(size, size, True)] if missing < size else []
            after += [(size, missing + 1, whole)] if missing < size else []
            after += [(size, missing - 1, whole and missing > 1)] if missing else []
            for domain in after:
                state = tuple(sorted((*group[:place], domain, *group[place + 1 :])))
                if sum(gone for _, gone, _ in state) <= m and state not in reached:
                    new.add(state)
    # a few of those that are counted cannot be reached
    assert len(reached) <= state_count(chunks, m + 1) <= 1.1 * len(reached)
