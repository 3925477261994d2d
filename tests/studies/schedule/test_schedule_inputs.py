"""What is scheduled: traces, logs with placements and generated reads become the workloads that they say they are."""

import logging
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.coflow.generate import ReadSettings, generate
from ecjax.coflow.workload import CHOSEN_LATER, check, given_sources
from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.studies.optimize.tables import TABLES as PLANS
from ecjax.studies.schedule.inputs import read_cases
from ecjax.studies.schedule.options import GenerateOptions, ScheduleOptions
from ecjax.studies.spine.log_options import ACCESS_LOGS
from ecjax.tables.ids import id_types
from ecjax.tables.read import read_input
from ecjax.tables.store import ResultStore

RUN = "0123456789abcdef"
LOG = {
    "request_id": [0, 1, 2, 3, 4],
    "arrival_s": [10.0, 10.5, 11.0, 11.5, 12.0],
    "file_id": ["g", "f", "g", "f", "f"],
    "op": ["read", "write", "read", "read", "read"],
    "bytes": [6.0, 8.0, 12.0, 0.0, 9.0],
    "edge": ["oslo", "rome", "rome", "oslo", "oslo"],
}
FILES = {
    "file_id": ["f", "g"],
    "bytes": [100.0, 200.0],
    "k": [2, 3],
    "rate_per_s": [1.0, 1.0],
    "nodes": [["n3", "n1", "n2"], ["n2", "n4", "n1", "n3"]],
}
TRANSFERS = {
    "coflow_id": ["x", "y"],
    "arrival_s": [0.0, 1.0],
    "src": [5, 7],
    "dst": [7, 9],
    "bytes": [3.0, 4.0],
}


def options(**given):
    """Options as the study checks them: values of a sweep are lists."""
    return checked(ScheduleOptions(**given))


def table(folder, name, rows):
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(rows), path)
    return str(path)


def logged(folder, log=LOG, files=FILES, **given):
    """The one case of a log and a files table."""
    (case,) = read_cases(
        options(trace=table(folder, "log", log), files=table(folder, "files", files), **given)
    )
    check(case.workload(0), case.fabric)
    return case


def refused(**given):
    with pytest.raises(UserError) as error:
        read_cases(options(**given))
    assert "\n" not in str(error.value)
    return str(error.value)


def same(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def candidates(case, workload):
    names = case.send_ids.to_pylist()
    split = np.split(workload.candidate, workload.first_candidate[1:-1])
    return [[names[node] for node in own] for own in split]


# Generated reads


def test_a_sweep_has_a_case_for_every_point_and_scales_the_reads_of_the_first():
    cases = read_cases(
        options(n=[8, 10], k=[4, 5], share_at_zero=[0.0, 0.5], rate_scale=[1.0, 2.0], size_scale=[1.0, 3.0])
    )
    points = [(c.n, c.k, c.share_at_zero, c.rate_scale, c.size_scale) for c in cases]
    assert points == [
        (n, k, s, r, z)
        for n in (8, 10)
        for k in (4, 5)
        for s in (0.0, 0.5)
        for r in (1.0, 2.0)
        for z in (1.0, 3.0)
    ]
    assert len({case.input_id for case in cases}) == 1
    for case in cases[::5]:
        plain = generate(ReadSettings(n=case.n, k=case.k, share_at_zero=case.share_at_zero), 3)
        expected = plain._replace(
            arrival_s=plain.arrival_s / case.rate_scale, bytes=plain.bytes * case.size_scale
        )
        same(case.workload(3), expected)
        assert case.random and case.drawn and case.source_selection
        np.testing.assert_array_equal(case.fabric.send, np.full(60, 1e9))
        np.testing.assert_array_equal(case.fabric.receive, np.full(60, 1e9))
    assert cases[0].coflow_ids.to_pylist() == list(range(512))
    assert "512 generated reads; 60 sending and 60 receiving ports" == cases[0].description


def test_files_that_draw_their_own_code():
    given = GenerateOptions(requests=20, servers=30, racks=10, clients=3, k_range=[2, 9])
    (case,) = read_cases(options(generate=given))
    assert (case.n, case.k, case.share_at_zero) == (None, None, 0.0)
    same(case.workload(1), generate(ReadSettings(20, 30, 3, 10, k_range=(2, 9)), 1))
    message = refused(generate=given, n=[8, 9])
    assert message.startswith("generate.k_range=[2, 9]: found n=[8, 9] and k=[4]; allowed: one n and one k")


def test_what_names_an_input(tmp_path):
    def name(**given):
        return read_cases(options(**given))[0].input_id

    ports = table(tmp_path, "ports", {"port_id": [0], "send_bytes_per_s": [5.0]})
    different = [
        name(),
        name(generate=GenerateOptions(requests=9)),
        name(port_bytes_per_s=1e8),
        name(ports=ports),
        name(trace=table(tmp_path, "one", TRANSFERS)),
        name(trace=table(tmp_path, "two", {**TRANSFERS, "bytes": [3.0, 5.0]})),
    ]
    assert len(set(different)) == len(different)
    assert name() == name(port_bytes_per_s=1e9, n=[9], share_at_zero=[0.1]) == different[0]
    # the same rows in another file, with another column besides
    pd.DataFrame({**TRANSFERS, "note": ["", "z"]}).to_csv(tmp_path / "one.csv", index=False)
    assert name(trace=str(tmp_path / "one.csv")) == different[4]


# Transfers


@given(
    coflows=st.lists(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 4), st.floats(1, 1e12)),  # source, destination, bytes
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=5,
    ),
    gaps=st.lists(st.floats(0, 1e3), min_size=5, max_size=5),
    names=st.sampled_from([list(range(-2, 3)), ["p-1", "p-10", "p-2", "q", "\u00e9"]]),
    mixed=st.randoms(use_true_random=False),
)
def test_a_workload_written_as_a_table_is_read_back(tmp_path_factory, coflows, gaps, names, mixed):
    flows = [(c, *flow) for c, own in enumerate(coflows) for flow in own]
    coflow, source, destination, size = map(np.array, zip(*flows, strict=True))
    used = np.unique([source, destination])  # ports are those that occur, in ascending order as names are
    expected = given_sources(
        np.cumsum(gaps)[: len(coflows)],
        np.concatenate([[0], np.cumsum([len(own) for own in coflows])]),
        np.searchsorted(used, source),
        np.searchsorted(used, destination),
        size,
    )
    rows = {
        "coflow_id": [f"c{c}" for c in coflow],
        "arrival_s": expected.arrival_s[coflow],
        "src": [names[s] for s in source],
        "dst": [names[d] for d in destination],
        "bytes": size,
    }
    folder = tmp_path_factory.mktemp("drawn")
    (case,) = read_cases(options(trace=table(folder, "flows", rows)))
    same(case.workload(0), expected)
    assert case.coflow_ids.to_pylist() == [f"c{c}" for c in range(len(coflows))]
    assert case.send_ids.to_pylist() == case.receive_ids.to_pylist() == [names[i] for i in used]
    assert not case.random
    check(case.workload(0), case.fabric)
    # rows in any order: the same bytes between the same ports, whatever the order of flows
    order = mixed.sample(range(len(flows)), len(flows))
    (case,) = read_cases(options(trace=table(folder, "mixed", pa.table(rows).take(order)), sort=True))
    found = case.workload(0)
    assert np.sum(found.bytes) == pytest.approx(np.sum(size), rel=1e-12)
    ports = [case.send_ids.take(pa.array(end)).to_pylist() for end in (found.source, found.destination)]
    ids = case.coflow_ids.take(pa.array(found.coflow_of_flow)).to_pylist()
    rows_found = zip(ids, found.arrival_s[found.coflow_of_flow], *ports, found.bytes, strict=True)
    assert sorted(rows_found) == sorted(zip(*rows.values(), strict=True))


def test_a_benchmark_text_and_the_table_of_its_flows_are_the_same_input(tmp_path):
    (tmp_path / "trace.txt").write_text("3 2\n7 0 2 0 1 2 2:3.0 0:1\n3 1500 1 2 1 1:2.5\n")
    flows = {
        "coflow_id": [7, 7, 7, 7, 3],
        "arrival_s": [0.0, 0.0, 0.0, 0.0, 1.5],
        "src": [0, 1, 0, 1, 2],
        "dst": [2, 2, 0, 0, 1],
        "bytes": [1.5e6, 1.5e6, 5e5, 5e5, 2.5e6],
    }
    (text,) = read_cases(options(trace=str(tmp_path / "trace.txt")))
    (rows,) = read_cases(options(trace=table(tmp_path, "flows", flows), format="transfers"))
    same(text.workload(0), rows.workload(0))
    assert text.input_id == rows.input_id
    assert (text.fabric.send == 125e6).all() and len(text.fabric.send) == len(text.fabric.receive) == 3
    assert text.description == "2 coflows, 5 flows of trace.txt; 3 sending and 3 receiving ports"


def test_unsorted_transfers_need_sort(tmp_path):
    trace = table(tmp_path, "late", {**TRANSFERS, "arrival_s": [1.0, 0.5]})
    assert "(or give sort=true)" in refused(trace=trace)
    (case,) = read_cases(options(trace=trace, sort=True))
    assert case.coflow_ids.to_pylist() == ["y", "x"]


# Capacities


def test_ports_that_differ(tmp_path, caplog):
    trace = table(tmp_path, "flows", TRANSFERS)
    rows = {
        "port_id": [9, 5, 77],
        "send_bytes_per_s": [None, 2.0, 3.0],
        "receive_bytes_per_s": [8.0, None, None],
    }
    with caplog.at_level(logging.INFO, "ecjax"):
        (case,) = read_cases(options(trace=trace, ports=table(tmp_path, "ports", rows), port_bytes_per_s=10))
    assert case.send_ids.to_pylist() == [5, 7, 9]
    np.testing.assert_array_equal(case.fabric.send, [2.0, 10.0, 10.0])
    np.testing.assert_array_equal(case.fabric.receive, [10.0, 10.0, 8.0])
    assert "1 ports that neither send nor receive here are left aside" in caplog.text


def test_ports_tables_that_are_refused(tmp_path):
    trace = table(tmp_path, "flows", TRANSFERS)

    def message(rows):
        return refused(trace=trace, ports=table(tmp_path, "ports", rows))

    assert "found no capacities; allowed: send_bytes_per_s or receive_bytes_per_s" in message(
        {"port_id": [5]}
    )
    assert (
        "column port_id: found '5' and no other port that sends or receives here; allowed: ports such as 5"
        in (message({"port_id": ["5"], "send_bytes_per_s": [1.0]}))
    )
    assert "column send_bytes_per_s, row 0 (port_id 5): found nan" in message(
        {"port_id": [5], "send_bytes_per_s": [np.nan]}
    )
    assert "no such file or folder" in refused(trace=trace, ports=str(tmp_path / "none.parquet"))


def test_options_that_nothing_reads_are_said(tmp_path, caplog):
    trace = table(tmp_path, "flows", TRANSFERS)
    read_cases(options(trace=trace, n=4, generate=GenerateOptions(racks=3), rate_scale=2))
    beside = "has no effect beside a trace of format transfers"
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"n=[4] {beside}",
        f"generate.racks=3 {beside}",
    ]
    caplog.clear()
    read_cases(options(trace=trace, client_bytes_per_s=1e9))  # the study refuses it
    assert said(caplog) == []


# Reads of a log


def test_reads_of_a_log_with_a_files_table(tmp_path, caplog):
    with caplog.at_level(logging.INFO, "ecjax"):
        case = logged(tmp_path)
    found = case.workload(0)
    assert case.coflow_ids.to_pylist() == [0, 2, 4]  # of the five requests
    np.testing.assert_array_equal(found.arrival_s, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(found.width, [3, 3, 2])
    np.testing.assert_array_equal(found.bytes, [2.0] * 3 + [4.0] * 3 + [4.5] * 2)
    np.testing.assert_array_equal(found.source, np.full(8, CHOSEN_LATER))
    assert case.receive_ids.to_pylist() == ["oslo", "rome"]
    np.testing.assert_array_equal(found.destination, [0] * 3 + [1] * 3 + [0] * 2)
    assert case.send_ids.to_pylist() == ["n1", "n2", "n3", "n4"]
    assert [set(own) for own in candidates(case, found)] == [
        {"n1", "n2", "n3", "n4"},
        {"n1", "n2", "n3", "n4"},
        {"n1", "n2", "n3"},
    ]
    assert case.random and case.source_selection and not case.drawn
    assert (case.fabric.send == 1e9).all() and len(case.fabric.receive) == 2
    assert "left out: 1 write\n" in caplog.text and "left out: 1 read of 0 bytes\n" in caplog.text


def test_without_edges_reads_go_to_the_clients_in_turn(tmp_path):
    case = logged(tmp_path, {name: LOG[name] for name in LOG if name != "edge"}, clients=2)
    assert case.receive_ids.to_pylist() == [0, 1]
    np.testing.assert_array_equal(case.workload(0).destination, [0] * 3 + [1] * 3 + [0] * 2)


def said(caplog):
    """Warnings since the last call."""
    messages = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    caplog.clear()
    return messages


def test_numbers_that_a_log_its_files_or_a_range_decide_are_said(tmp_path, caplog):
    logged(tmp_path, k=[5], clients=3)
    assert said(caplog) == [
        "k=[5] has no effect beside files with a column k",
        "clients=3 has no effect beside the column edge of the log",
    ]
    without = {name: FILES[name] for name in FILES if name != "k"}
    given = {"trace": table(tmp_path, "log", LOG), "files": table(tmp_path, "files", without)}
    read_cases(options(**given, k=[1, 2], clients=3))
    assert said(caplog) == ["clients=3 has no effect beside the column edge of the log"]
    logged(tmp_path, {name: LOG[name] for name in LOG if name != "edge"}, clients=3)
    assert said(caplog) == []
    read_cases(options(clients=3))
    assert said(caplog) == [
        "clients=3 has no effect beside generated reads, which go to generate.clients",
    ]
    read_cases(options(k=[5], generate=GenerateOptions(requests=9, k_range=[2, 9])))
    assert said(caplog) == ["k=[5] has no effect beside generate.k_range=[2, 9]"]


def test_a_log_of_chunks_is_read_request_by_request(tmp_path):
    log = {
        "request_id": [5, 5, 6, 7, 7],
        "arrival_s": [0.0, 0.0, 1.0, 2.0, 2.0],
        "file_id": ["f"] * 5,
        "op": ["read", "read", "write", "read", "read"],
        "bytes": [3.0, 3.0, 1.0, 5.0, 5.0],
        "node_id": ["n1", "n2", "n1", "n2", "n3"],
        "edge": [4, 4, 2, 9, 9],
    }
    case = logged(tmp_path, log)
    found = case.workload(0)
    assert case.coflow_ids.to_pylist() == [0, 2]
    np.testing.assert_array_equal(found.bytes, [3.0, 3.0, 5.0, 5.0])
    assert [case.receive_ids[int(port)].as_py() for port in found.destination[::2]] == [4, 9]
    # which nodes served it then is left aside
    assert candidates(case, found) == [["n3", "n1", "n2"]] * 2


@given(
    st.lists(
        st.tuples(
            st.floats(0, 100), st.integers(0, 3), st.booleans(), st.integers(0, 50), st.sampled_from("abc")
        ),
        min_size=1,
        max_size=15,
    )
)
def test_a_drawn_log_is_read_as_pandas_reads_it(tmp_path_factory, drawn):
    arrival, file, write, size, edge = zip(*drawn, strict=True)
    log = pd.DataFrame(
        {
            "request_id": range(len(drawn)),
            "arrival_s": arrival,
            "file_id": file,
            "op": np.where(write, "write", "read"),
            "bytes": np.array(size, float),
            "edge": edge,
        }
    )
    k, nodes = np.array([1, 2, 1, 3]), [[1], [4, 2], [2, 3], [4, 3, 2, 1]]
    files = {"file_id": range(4), "bytes": [1.0] * 4, "k": k, "rate_per_s": [1.0] * 4, "nodes": nodes}
    folder = tmp_path_factory.mktemp("drawn")
    given = {"trace": table(folder, "log", pa.Table.from_pandas(log)), "files": table(folder, "files", files)}
    ordered = log.sort_values(["arrival_s", "request_id"], ignore_index=True)
    expected = ordered[(ordered["op"] == "read") & (ordered["bytes"] > 0)]
    if expected.empty:
        assert "found no reads of a byte or more; allowed: at least one" in refused(**given, sort=True)
        return
    (case,) = read_cases(options(**given, sort=True))
    found = case.workload(0)
    assert case.coflow_ids.to_pylist() == expected.index.tolist()
    np.testing.assert_allclose(found.arrival_s, expected["arrival_s"] - ordered["arrival_s"][0], atol=1e-12)
    np.testing.assert_array_equal(found.width, k[expected["file_id"]])
    np.testing.assert_allclose(found.coflow_bytes, expected["bytes"], rtol=1e-14)
    clients = case.receive_ids.take(pa.array(found.destination[found.first_flow[:-1]])).to_pylist()
    assert clients == expected["edge"].tolist()
    assert candidates(case, found) == [nodes[i] for i in expected["file_id"]]


def test_files_without_k_take_the_values_of_the_sweep(tmp_path):
    files = {name: FILES[name] for name in FILES if name != "k"}
    given = {"trace": table(tmp_path, "log", LOG), "files": table(tmp_path, "files", files)}
    cases = read_cases(options(**given, k=[1, 3], n=[8]))
    assert [(case.n, case.k) for case in cases] == [(None, 1), (None, 3)]
    for case in cases:
        found = case.workload(0)
        np.testing.assert_array_equal(found.width, np.full(3, case.k))
        np.testing.assert_allclose(found.coflow_bytes, [6.0, 12.0, 9.0], rtol=1e-14)


def test_a_read_of_d_chunks(tmp_path):
    found = logged(tmp_path, files={**FILES, "d": [3, None]}).workload(0)
    np.testing.assert_array_equal(found.width, [3, 3, 3])
    np.testing.assert_array_equal(found.bytes, [2.0] * 3 + [4.0] * 3 + [3.0] * 3)


@pytest.mark.parametrize(
    "log, files, message",
    [
        (
            {"file_id": ["g", "f", "h", "f", "f"]},
            {},
            "column file_id, row 2: found 'h'; allowed: files of files table",
        ),
        ({"bytes": [1.0, 1.0, np.nan, 1.0, 1.0]}, {}, "column bytes, row 2: found nan"),
        ({"bytes": [1.0, 1.0, -1.0, 1.0, 1.0]}, {}, "column bytes, row 2: found -1.0"),
        ({"arrival_s": [1.0, 0.0, 2.0, 3.0, 4.0]}, {}, "(or give sort=true)"),
        ({"edge": ["a", None, "a", "a", "a"]}, {}, "column edge, row 1: found an empty cell"),
        ({"op": ["write"] * 5}, {}, "found no reads of a byte or more; allowed: at least one"),
        ({name: [] for name in LOG}, {}, "found no rows; allowed: at least one"),
        (
            {},
            {"nodes": [["n1"], ["n2", "n4", "n1", "n3"]]},
            "file_id 'f': found 1 nodes with a chunk; allowed: at least the 2 that a read takes",
        ),
        ({}, {"nodes": [None, ["n2", "n4", "n1"]]}, "file_id 'f': found 0 nodes with a chunk"),
        (
            {},
            {"nodes": [["n1", "n2", "n1"], ["n2", "n4", "n1"]]},
            "column nodes, row 0 (file_id 'f'): found node 'n1' twice; allowed: every node once",
        ),
        ({}, {"nodes": [None, None]}, "found no placements in column nodes"),
        ({}, {"k": [2, 0]}, "column k, row 1 (file_id 'g'): found 0"),
        (
            {},
            {"file_id": [1, 2]},
            "column file_id: found ids of type string; allowed: int64, as in the files table",
        ),
    ],
)
def test_logs_and_files_that_are_refused(tmp_path, log, files, message):
    given = {"trace": table(tmp_path, "log", LOG | log), "files": table(tmp_path, "files", FILES | files)}
    assert message in refused(**given)


# Reads of a log of the files of a plan


def plan(folder, files, placements, made="{}"):
    """A result folder with one optimize run, of four nodes."""
    nodes = {"node_id": ["n4", "n1", "n2", "n3"], "delta_s": [0.1] * 4, "delta_s_per_byte": [0.0] * 4}
    nodes |= {"psi_s": [0.1] * 4, "psi_s_per_byte": [0.0] * 4}
    nodes, files = (read_input(pa.table(rows), name) for rows, name in ((nodes, "nodes"), (files, "files")))
    run = {
        "run_id": RUN,
        "job": "optimize",
        "status": "ok",
        "method": "by hand",
        "params": made,
        "input_id": "t",
    }
    placed = pa.Table.from_pylist(placements).append_column("run_id", pa.array([RUN] * len(placements)))
    with ResultStore(folder / "plan", PLANS, id_types(nodes, files)) as store:
        store.write_input("nodes", "t", nodes)
        store.write_input("files", "t", files)
        store.commit([run], {"placements": placed})
    return str(folder / "plan")


def placed(nodes, cold=(), **names):
    return [
        names | {"node_id": node, "probability": 0.0 if node in cold else 0.9, "chunks": 1} for node in nodes
    ]


def of_plan(folder, log=LOG, **given):
    (case,) = read_cases(options(trace=table(folder, "log", log), plan=given.pop("plan"), **given))
    check(case.workload(0), case.fabric)
    return case


def test_reads_come_from_where_a_plan_keeps_chunks_cold_ones_too(tmp_path, caplog):
    files = {name: FILES[name] for name in FILES if name != "nodes"}
    rows = placed(["n1", "n2", "n3"], ["n3"], file_id="f") + placed(["n4", "n1", "n2"], file_id="g")
    folder = plan(tmp_path, files, rows)
    case = of_plan(tmp_path, plan=folder, plan_where="method=by hand", k=[5])
    found = case.workload(0)
    assert case.send_ids.to_pylist() == ["n4", "n1", "n2", "n3"]  # as in the plan's nodes table
    assert candidates(case, found) == [["n4", "n1", "n2"], ["n4", "n1", "n2"], ["n1", "n2", "n3"]]
    np.testing.assert_array_equal(found.bytes, [2.0] * 3 + [4.0] * 3 + [4.5] * 2)
    assert f"chunks as in plan={folder}, run {RUN}" in case.description
    assert f"k=[5] has no effect beside plan={folder}" in caplog.text


def test_files_of_a_group_are_kept_together(tmp_path):
    files = {name: FILES[name] for name in FILES if name != "nodes"}
    files |= {"k": [2, 2], "group": ["pool", "pool"]}
    case = of_plan(
        tmp_path, plan=plan(tmp_path, files, placed(["n1", "n4", "n3"], group="pool", file_id=None))
    )
    assert candidates(case, case.workload(0)) == [["n4", "n1", "n3"]] * 3


def test_chunks_that_a_node_serves_together_are_one_transfer(tmp_path):
    files = {name: FILES[name] for name in FILES if name != "nodes"} | {"k": [4, 2]}
    rows = placed(["n1", "n2", "n3"], file_id="f") + placed(["n4", "n1"], file_id="g")
    case = of_plan(tmp_path, plan=plan(tmp_path, files, rows, '{"max_chunks_per_node": 2}'))
    found = case.workload(0)
    np.testing.assert_array_equal(found.width, [1, 1, 2])
    np.testing.assert_array_equal(found.bytes, [6.0, 12.0, 4.5, 4.5])


def test_plans_that_are_refused(tmp_path):
    files = {name: FILES[name] for name in FILES if name != "nodes"}
    folder = plan(tmp_path, files, placed(["n1", "n2", "n3"], file_id="f"))
    trace = table(tmp_path, "log", LOG)
    assert refused(trace=trace, plan=folder) == (
        f"plan={folder}, run {RUN}: file_id 'g': found 0 nodes with a chunk; allowed: at least the 3 that a read takes"
    )
    strange = table(tmp_path, "strange", LOG | {"file_id": ["f", "z", "f", "f", "f"]})
    assert f"row 1: found 'z'; allowed: files of plan={folder}, run {RUN}" in refused(
        trace=strange, plan=folder
    )
    assert refused(trace=trace, plan=str(tmp_path / "none")) == f"plan={tmp_path / 'none'}: no such folder"
    assert "no finished optimize run fits plan_run=x" in refused(trace=trace, plan=folder, plan_run="x")


# Options that do not fit together


def test_where_the_public_trace_is(tmp_path):
    found = refused(trace=str(tmp_path / "FB2010-1Hr-150-0.txt"))
    assert found.endswith(
        "no such file; Facebook's trace of that name is at github.com/coflow/coflow-benchmark"
    )


def test_options_that_do_not_fit(tmp_path):
    flows, log = table(tmp_path, "flows", TRANSFERS), table(tmp_path, "log", LOG)
    files = table(tmp_path, "files", FILES)
    assert refused(plan="p") == "plan=p: found no trace; allowed: with trace=LOG, an access log"
    for name, value in (("files", files), ("extent_bytes", 5), ("columns", {"bytes": "b"})):
        given = {"trace": flows, name: value, "format": "transfers"}
        assert f"{name}={value}: found a trace of format transfers; allowed: with trace=LOG" in refused(
            **given
        )
    assert f"trace={log}: found neither of plan= and files=; allowed: one of them" in refused(trace=log)
    assert f"trace={log}: found both of plan= and files=" in refused(trace=log, plan="p", files=files)
    logs = ", ".join(ACCESS_LOGS)
    formats = f"coflow_benchmark, transfers, table, columns, cloudphysics, msr, {logs}, oracle_general"
    assert refused(trace=flows, format="x") == f"format: found 'x'; allowed: auto, {formats}"
    message = refused(trace=files)
    assert "cannot tell its format; found columns file_id, bytes, k" in message
    assert f"give format= ({formats}) or columns=" in message
    assert refused(trace=str(tmp_path / "none.txt")) == f"{tmp_path / 'none.txt'}: no such file or folder"


@pytest.mark.parametrize(
    "given, message",
    [
        ({"n": [8, 3]}, "k=4: found n=3; allowed: from k=4 to servers=60"),
        ({"n": [61]}, "k=4: found n=61; allowed: from k=4 to servers=60"),
        ({"generate": GenerateOptions(racks=7)}, "generate.racks: found 7; allowed: a divisor of servers=60"),
        ({"generate": GenerateOptions(requests=0)}, "generate.requests: found 0; allowed: a whole number"),
        (
            {"generate": GenerateOptions(k_range=[5])},
            "generate.k_range: found [5]; allowed: two whole numbers",
        ),
        (
            {"generate": GenerateOptions(min_bytes=-1)},
            "generate.min_bytes: found -1; allowed: a number above 0",
        ),
        ({"share_at_zero": [2.0]}, "share_at_zero: found [2.0]; allowed: a number from 0 to 1"),
    ],
)
def test_settings_that_are_refused_before_anything_is_drawn(given, message):
    assert refused(**given).startswith(message)


def test_a_log_by_a_mapping_of_its_columns(tmp_path):
    log = pd.DataFrame(LOG).rename(columns={"arrival_s": "at", "file_id": "key", "bytes": "size"})
    log.to_csv(tmp_path / "log.csv", index=False)
    columns = {"arrival_s": "at", "file_id": "key", "bytes": "size", "op": "op"}
    given = options(
        trace=str(tmp_path / "log.csv"), columns=columns, files=table(tmp_path, "files", FILES), clients=3
    )
    (case,) = read_cases(given)
    expected = logged(tmp_path, {name: LOG[name] for name in LOG if name != "edge"}, clients=3)
    same(case.workload(0), expected.workload(0))
    (other,) = read_cases(replace(given, columns=columns | {"bytes_scale": 2.0}))
    assert other.input_id != case.input_id
