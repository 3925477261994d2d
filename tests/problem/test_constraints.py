"""From tables and options to the constraint arrays of a problem, against loops over files; each mistake by its line."""

from dataclasses import replace

import numpy as np
import problems
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.planning import prepare
from ecjax.problem.arrays import files_arrays, nodes_arrays, placement_rows
from ecjax.problem.constraints import PERIOD_S, constrained
from ecjax.tables.checks import check

IDS = [f"n{j}" for j in range(problems.NODES)]
SITES = ["east", "east", "west", "west", "north", "north"]
NODES = pa.Table.from_pandas(problems.moment_nodes().assign(site=SITES), preserve_index=False)
FILES = pa.table(
    {
        "file_id": ["a", "b", "c", "d"],
        "bytes": [6e6, 4e6, 9e6, 4e6],
        "k": [3, 2, 3, 2],
        "rate_per_s": [0.1, 0.2, 0.0, 0.4],
        "stored_bytes": [6e6, 8e6, 9e6, 4e6],
    }
)
PLACED = FILES.append_column("nodes", pa.array([["n0", "n3", "n4"], None, [], ["n5", "n1"]]))


def build(files=FILES, nodes=NODES, **options):
    files, nodes = check(files, "files"), check(nodes, "nodes")
    if options.get("network") is not None:
        options["network"] = check(pa.table(options["network"]), "network")
    rows = placement_rows(files)
    problem = prepare(nodes_arrays(nodes), files_arrays(files), rows.of_file, rows.count)
    return constrained(problem, nodes, files, rows, **options)


def refused(*arguments, **options) -> str:
    with pytest.raises(UserError) as caught:
        build(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def grouped(table: pa.Table, names: list) -> pa.Table:
    return table.set_column(table.column_names.index("k"), "k", pa.array([2] * 4)).append_column(
        "group", pa.array(names)
    )


def test_without_constraints_there_are_none():
    problem = build(nodes=NODES.drop_columns("site"))
    for name in ("surcharge", "reading", "allowed", "site", "capacity", "per_site"):
        assert getattr(problem, name) is None
    np.testing.assert_array_equal(problem.floor, [3, 2, 3, 2])


def test_sites_and_capacities_come_from_the_nodes():
    capacity = [3.0, 2.7, 5.0, 5.0, 5.0, 0.0]
    problem = build(nodes=NODES.append_column("capacity_chunks", pa.array(capacity)), max_chunks_per_site=2)
    np.testing.assert_array_equal(problem.site, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(problem.capacity, [3, 2, 5, 5, 5, 0])  # whole chunks
    assert problem.per_site == 2


@pytest.mark.parametrize("numbers", [False, True])
def test_forbidden_nodes_are_masked(numbers):
    lists = [["n1", "n2"], None, [], ["n5", "n5"]]
    nodes = NODES
    if numbers:
        lists = [None if names is None else [int(name[1]) for name in names] for names in lists]
        nodes = NODES.set_column(0, "node_id", pa.array(range(problems.NODES)))
    problem = build(FILES.append_column("forbidden_nodes", pa.array(lists)), nodes)
    expected = np.ones((4, problems.NODES), bool)
    expected[0, [1, 2]] = expected[3, 5] = False
    np.testing.assert_array_equal(problem.allowed, expected)


def test_a_group_avoids_what_any_of_its_files_forbids():
    files = grouped(FILES, ["g", None, "g", None])
    files = files.append_column("forbidden_nodes", pa.array([["n1"], ["n0"], ["n2"], None]))
    expected = np.ones((3, problems.NODES), bool)
    expected[0, [1, 2]] = expected[1, 0] = False
    np.testing.assert_array_equal(build(files).allowed, expected)


def test_chunks_outside_the_current_placement_pay_their_move():
    """Files without a current placement are new and pay nothing."""
    problem = build(PLACED, migration_dollars_per_byte=3e-6)
    expected = np.zeros((4, problems.NODES))
    for i, (names, size) in enumerate(zip(PLACED["nodes"].to_pylist(), [2e6, 4e6, 3e6, 2e6], strict=True)):
        for j, name in enumerate(IDS):
            if names and name not in names:
                expected[i, j] = 3e-6 * size
    np.testing.assert_allclose(problem.surcharge, expected, rtol=1e-15)
    assert problem.allowed is None


def test_fixed_groups_are_placed_exactly_there():
    problem = build(PLACED, fixed_groups=True)
    expected = np.ones((4, problems.NODES), bool)
    expected[0] = [True, False, False, True, True, False]
    expected[3] = [False, True, False, False, False, True]
    np.testing.assert_array_equal(problem.allowed, expected)
    more = pa.array([["n0", "n3", "n4", "n5"], None, [], ["n5", "n1"]])
    longer = build(PLACED.set_column(5, "nodes", more), fixed_groups=True)
    np.testing.assert_array_equal(longer.floor, [4, 2, 3, 2])
    assert longer.surcharge is None


def test_files_of_a_group_follow_those_with_fixed_nodes():
    lists = [["n0", "n4"], None, None, ["n4", "n0"]]
    files = grouped(FILES.append_column("nodes", pa.array(lists)), ["g", "h", "g", "g"])
    files = files.append_column("forbidden_nodes", pa.array([None, ["n2"], None, None]))
    problem = build(files, fixed_groups=True)
    np.testing.assert_array_equal(problem.allowed[0], [True, False, False, False, True, False])
    np.testing.assert_array_equal(problem.allowed[1], [True, True, False, True, True, True])


NETWORK = {
    "client_site": ["x", "x", "x", "y", None, None],
    "node_id": ["n0", None, None, None, "n2", None],
    "node_site": [None, "east", None, "west", None, "north"],
    "dollars_per_byte": [1.0, 2.0, 3.0, 5.0, 7.0, 11.0],
}


def test_reads_cost_what_the_most_specific_row_of_the_network_says():
    files = FILES.append_column("client_site", pa.array(["x", "y", "y", None]))
    files = files.append_column("d", pa.array([3, 4, 3, 2]))
    reading = np.asarray(build(files, network=NETWORK).reading)
    dollars = {
        "x": [1, 2, 3, 3, 3, 3],
        "y": [0, 0, 5, 5, 11, 11],  # a row that names the client counts before one that names the node
        None: [0, 0, 7, 0, 11, 11],
    }
    read = [2e6, 1e6, 3e6, 2e6]  # bytes / d
    for i, site in enumerate(["x", "y", "y", None]):
        expected = np.array(dollars[site]) * read[i] * FILES["rate_per_s"][i].as_py() * PERIOD_S
        np.testing.assert_allclose(reading[i], expected, rtol=1e-14)
    hour = NODES.append_column("cost_period_s", pa.array([3600.0] * problems.NODES))
    np.testing.assert_allclose(
        build(files, hour, network=NETWORK).reading, reading * 3600 / PERIOD_S, rtol=1e-14
    )


def test_a_network_without_client_sites_needs_none():
    network = {"node_site": ["west", None], "dollars_per_byte": [0.0, 2.0]}
    reading = np.asarray(build(network=network).reading)
    np.testing.assert_allclose(reading[0], np.array([2, 2, 0, 0, 2, 2]) * 2e6 * 0.1 * PERIOD_S, rtol=1e-14)


def test_integer_ids_of_sites():
    nodes = NODES.set_column(NODES.column_names.index("site"), "site", pa.array([7, 7, 8, 8, 9, 9]))
    network = {"client_site": [8], "node_site": [9], "dollars_per_byte": [1.0]}
    files = FILES.append_column("client_site", pa.array([8, 8, 8, 8]))
    reading = np.asarray(build(files, nodes, network=network).reading)
    assert np.all(reading[:, :4] == 0) and reading[0, 4] == 2e6 * 0.1 * PERIOD_S


WITH_CLIENTS = FILES.append_column("client_site", pa.array(["x", "y", "x", "z"]))


@pytest.mark.parametrize(
    ("files", "nodes", "options", "message"),
    [
        (
            FILES,
            NODES.drop_columns("site"),
            {"max_chunks_per_site": 2},
            "max_chunks_per_site=2: the nodes table has no column site, which it needs",
        ),
        (
            FILES,
            NODES,
            {"migration_dollars_per_byte": 1e-9},
            "migration_dollars_per_byte=1e-09: the files table has no column nodes (the current placement), which it "
            "needs",
        ),
        (
            FILES,
            NODES,
            {"fixed_groups": True},
            "fixed_groups=true: the files table has no column nodes (the current placement), which it needs",
        ),
        (
            FILES.append_column("forbidden_nodes", pa.array([None, [], ["n1", "n9"], ["n8"]])),
            NODES,
            {},
            "files: column forbidden_nodes, row 2 (file_id=c): found 'n9'; allowed: a node_id of the nodes table",
        ),
        (
            FILES.append_column("nodes", pa.array([["n0"], ["n7"], None, None])),
            NODES,
            {"migration_dollars_per_byte": 1e-9},
            "files: column nodes, row 1 (file_id=b): found 'n7'; allowed: a node_id of the nodes table",
        ),
        (
            FILES.append_column("forbidden_nodes", pa.array([None, None, [4], None])),
            NODES,
            {},
            "node_id: found string in one table and int64 in another; allowed: the same type in all tables",
        ),
        (
            FILES.append_column("nodes", pa.array([["n0", "n1", "n0", "n2"], None, None, None])),
            NODES,
            {"fixed_groups": True},
            "files: column nodes, row 0 (file_id=a): found a node more than once; allowed: once (fixed_groups=true)",
        ),
        (
            FILES.append_column("nodes", pa.array([None, None, ["n0", "n1"], None])),
            NODES,
            {"fixed_groups": True},
            "files: column nodes, row 2 (file_id=c): found 2 nodes; allowed: at least 3, max(k + min_extra_chunks, d) "
            "(fixed_groups=true)",
        ),
        (
            grouped(FILES, ["g", "g", None, None]).append_column(
                "nodes", pa.array([["n0", "n1"], ["n0", "n2"], None, None])
            ),
            NODES,
            {"fixed_groups": True},
            "files: column nodes, row 0 (file_id=a): found 2 of the 3 nodes of group 'g'; allowed: the same nodes in "
            "all files of a group (fixed_groups=true)",
        ),
        (
            FILES.append_column("nodes", pa.array([None, ["n3", "n1"], None, None])).append_column(
                "forbidden_nodes", pa.array([None, ["n1"], None, None])
            ),
            NODES,
            {"fixed_groups": True},
            "files: column nodes, row 1 (file_id=b): found 'n1', which forbidden_nodes excludes; allowed: others "
            "(fixed_groups=true)",
        ),
        (
            FILES,
            NODES,
            {"network": {"client_site": ["x"], "dollars_per_byte": [1.0]}},
            "network: column client_site needs a column client_site in the files table, which has none",
        ),
        (
            WITH_CLIENTS,
            NODES,
            {"network": {"client_site": ["x", "y"], "node_id": ["n0", "m1"], "dollars_per_byte": [1.0, 2.0]}},
            "network: column node_id, row 1: found 'm1'; allowed: a node_id of the nodes table",
        ),
        (
            WITH_CLIENTS,
            NODES,
            {
                "network": {
                    "client_site": [None, "y"],
                    "node_site": ["south", "west"],
                    "dollars_per_byte": [1.0, 2.0],
                }
            },
            "network: column node_site, row 0: found 'south'; allowed: a site of the nodes table",
        ),
        (
            WITH_CLIENTS,
            NODES,
            {"network": {"client_site": ["x", "y"], "dollars_per_byte": [1.0, 2.0]}},
            "files: column client_site, row 3 (file_id=d): found 'z'; allowed: a client_site of the network table, "
            "or a row there that leaves client_site empty",
        ),
        (
            WITH_CLIENTS,
            NODES.drop_columns("site"),
            {"network": {"client_site": [None], "node_site": ["west"], "dollars_per_byte": [1.0]}},
            "network: column node_site needs a column site in the nodes table, which has none",
        ),
        (
            WITH_CLIENTS,
            NODES,
            {"network": {"client_site": [None], "node_site": [3], "dollars_per_byte": [1.0]}},
            "node_site: found int64 in the network table and string in column site of the nodes table; allowed: the "
            "same type",
        ),
        (
            WITH_CLIENTS,
            NODES,
            {"network": {"client_site": [1], "dollars_per_byte": [1.0]}},
            "client_site: found string in one table and int64 in another; allowed: the same type in all tables",
        ),
    ],
)
def test_mistakes_are_named(files, nodes, options, message):
    assert refused(files, nodes, **options) == message


def test_other_fields_of_the_problem_stay():
    plain = build(nodes=NODES.drop_columns("site"))
    problem = build(PLACED, migration_dollars_per_byte=1e-6, max_chunks_per_site=1)
    again = replace(problem, surcharge=None, site=None, per_site=None)
    for name in ("k", "floor", "share", "reads", "price_chunks", "price_bytes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(plain, name))
