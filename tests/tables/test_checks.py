"""Validation of input tables: what is accepted comes out canonical, what is not is named by its place."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.errors import UserError
from ecjax.tables.checks import check
from ecjax.tables.ids import id_types
from ecjax.tables.schemas import INPUTS

NODES = {
    "node_id": ["a", "b", "c"],
    "service_mean_s": [1.0, 2.0, 3.0],
    "service_second_s2": [2.0, 8.0, 18.0],
    "service_third_s3": [6.0, 48.0, 162.0],
    "reference_bytes": [1e6, 1e6, 1e6],
    "cost_per_chunk_dollars": [1.0, 2.0, 0.0],
}
AFFINE = {
    "node_id": [1, 2],
    "delta_s": [0.1, 0.0],
    "delta_s_per_byte": [0.0, 1e-9],
    "psi_s": [0.0, 0.0],
    "psi_s_per_byte": [0.0, 0.0],
}
FILES = {
    "file_id": [10, 11, 12],
    "bytes": [100.0, 200.0, 300.0],
    "k": [2, 2, 3],
    "rate_per_s": [0.0, 0.5, 1.0],
}
REQUESTS = {
    "request_id": [1, 1, 2],
    "arrival_s": [0.0, 0.0, 1.5],
    "file_id": ["x", "x", "y"],
    "op": ["read", "READ", "w"],
    "bytes": [10, 10, 20],
    "node_id": ["a", "b", "a"],
    "start_s": [0.0, 0.5, 1.5],
    "finish_s": [0.2, 0.75, 1.5],
}
RATES = {"start_s": [0, 60], "factor": [1.0, 2.0]}
TRANSFERS = {"coflow_id": [1], "arrival_s": [0.0], "src": ["p"], "dst": ["q"], "bytes": [8]}
NETWORK = {
    "client_site": ["x", "y", None],
    "node_id": ["a", None, None],
    "node_site": [None, "p", None],
    "dollars_per_byte": [0.0, 1e-9, 2e-9],
}
GOOD = {
    "nodes": NODES,
    "files": FILES,
    "catalog": {"file_id": ["a", "b"], "bytes": [0.0, 5e6], "k": [None, 4]},
    "network": NETWORK,
    "requests": REQUESTS,
    "rates": RATES,
    "transfers": TRANSFERS,
}


def refused(columns: dict, name: str, **options) -> str:
    with pytest.raises(UserError) as caught:
        check(pa.table(columns), name, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{name} table")
    return message


@pytest.mark.parametrize("name", GOOD)
def test_good_table_passes_and_is_canonical(name):
    checked = check(pa.table(GOOD[name]), name)
    assert checked.num_rows == len(next(iter(GOOD[name].values())))
    kinds = {c.name: c.kind for c in INPUTS[name]}
    for field in checked.schema:
        if kinds[field.name] in ("float64", "time"):
            assert field.type == pa.float64()
        elif kinds[field.name] == "int64":
            assert field.type == pa.int64()
        else:
            assert field.type in (pa.int64(), pa.string())


@pytest.mark.parametrize("name", GOOD)
def test_checking_twice_changes_nothing(name):
    once = check(pa.table(GOOD[name]), name)
    assert check(once, name).equals(once)


@pytest.mark.parametrize("name", GOOD)
def test_every_required_column_is_missed_by_name(name):
    required = [c.name for c in INPUTS[name] if c.required]
    for column in required:
        message = refused({k: v for k, v in GOOD[name].items() if k != column}, name)
        assert f"missing columns: {column};" in message
    message = refused({"other": [1]}, name)
    assert f"missing columns: {', '.join(required)}; found: other" in message


@pytest.mark.parametrize("name", GOOD)
def test_empty_table(name):
    assert "found no rows" in refused({k: v[:0] for k, v in GOOD[name].items()}, name)


def test_source_is_named():
    assert refused({"a": [1]}, "nodes", source="n.csv").startswith("nodes table (n.csv): missing columns")


def test_extra_columns_stay_and_columns_keep_their_order():
    table = pa.table({"note": ["p", None, "q"], **NODES})
    assert check(table, "nodes").column_names == table.column_names


def test_optional_column_without_values_counts_as_absent():
    nothing = pa.nulls(3, pa.float64())
    checked = check(pa.table({**NODES, "delta_s": nothing, "site": pa.nulls(3)}), "nodes")
    assert checked.column_names == list(NODES)


def test_duplicate_column_name():
    table = pa.table([pa.array([1]), pa.array([2])], names=["node_id", "node_id"])
    with pytest.raises(UserError, match="occur more than once: node_id"):
        check(table, "nodes")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.int8()),
        pa.array([1, 2, 3], pa.uint64()),
        pa.array([1, 2, 3], pa.float32()),
        pa.array([1, 2, 3], pa.float16()),
        pa.array([decimal.Decimal(i) for i in (1, 2, 3)]),
        pa.chunked_array([pa.array([1.0]), pa.array([2.0, 3.0])]),
        pa.array([1.0, 2.0, 3.0]).dictionary_encode(),
    ],
)
def test_numbers_of_every_type(values):
    checked = check(pa.table({**NODES, "service_mean_s": values}), "nodes")
    assert checked.column("service_mean_s").to_pylist() == [1.0, 2.0, 3.0]
    assert checked.schema.field("service_mean_s").type == pa.float64()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([7, 8, 9], pa.uint8()), pa.int64()),
        (pa.array([7, 8, 9], pa.uint64()), pa.int64()),
        (pa.array(["p", "q", "r"], pa.large_string()), pa.string()),
        (pa.array(["p", "q", "r"], pa.string_view()), pa.string()),
        (pa.array(["p", "q", "r"]).dictionary_encode(), pa.string()),
        (pa.array([7, 8, 9]).dictionary_encode(), pa.int64()),
        (pa.array(["007", "7", ""]), pa.string()),
    ],
)
def test_ids_come_back_as_they_came(values, kind):
    checked = check(pa.table({**NODES, "node_id": values}), "nodes")
    assert checked.schema.field("node_id").type == kind
    assert checked.column("node_id").to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1.0, 2.0, 3.0], "found type double"),
        ([True, False, True], "found type bool"),
        ([b"a", b"b", b"c"], "found type binary"),
        ([datetime.date(2020, 1, 1)] * 3, "found type date32"),
        (pa.array([1, 2, 2**63], pa.uint64()), f"found {2**63}"),
    ],
)
def test_other_id_types_are_refused(values, found):
    message = refused({**NODES, "node_id": values}, "nodes")
    assert message.startswith("nodes table, column node_id: ")
    assert found in message
    assert "ids are integers (to 2^63 - 1) or strings" in message


def test_whole_floats_count_as_integers():
    checked = check(pa.table({**FILES, "k": [2.0, 2.0, 3.0], "n": [4.0, None, 5.0]}), "files")
    assert checked.column("k").to_pylist() == [2, 2, 3]
    assert checked.column("n").to_pylist() == [4, None, 5]


@pytest.mark.parametrize(
    ("name", "column", "value", "found", "allowed"),
    [
        ("nodes", "service_mean_s", None, "an empty cell (null)", "finite numbers > 0"),
        ("nodes", "service_mean_s", float("nan"), "nan", "finite numbers > 0"),
        ("nodes", "service_mean_s", float("inf"), "inf", "finite numbers > 0"),
        ("nodes", "service_mean_s", 0.0, "0.0", "finite numbers > 0"),
        ("nodes", "cost_per_chunk_dollars", -1.0, "-1.0", "finite numbers >= 0"),
        ("nodes", "cost_per_chunk_dollars", None, "an empty cell (null)", "finite numbers >= 0"),
        ("nodes", "reference_bytes", float("-inf"), "-inf", "finite numbers > 0"),
        ("files", "bytes", 0.0, "0.0", "finite numbers > 0"),
        ("files", "rate_per_s", -0.5, "-0.5", "finite numbers >= 0"),
        ("files", "rate_per_s", float("nan"), "nan", "finite numbers >= 0"),
        ("files", "k", 0, "0", "integers >= 1"),
        ("files", "k", None, "an empty cell (null)", "integers >= 1"),
        ("files", "k", 2.5, "2.5", "integers >= 1"),
        ("files", "k", float("nan"), "nan", "integers >= 1"),
        ("files", "k", 1e19, "1e+19", "integers >= 1"),
        ("requests", "bytes", -1, "-1.0", "finite numbers >= 0"),
        ("requests", "op", None, "an empty cell (null)", "a value in every row"),
        ("requests", "op", "delete", "'delete'", "read or write"),
        ("requests", "file_id", None, "an empty cell (null)", "a value in every row"),
        ("requests", "arrival_s", None, "an empty cell (null)", "finite numbers"),
        ("requests", "finish_s", float("inf"), "inf", "finite numbers"),
        ("transfers", "arrival_s", -1.0, "-1.0", "finite numbers >= 0"),
        ("rates", "factor", -1.0, "-1.0", "finite numbers >= 0"),
        ("network", "dollars_per_byte", -1.0, "-1.0", "finite numbers >= 0"),
        ("network", "dollars_per_byte", None, "an empty cell (null)", "finite numbers >= 0"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_bad_value_is_named_by_its_place(name, column, value, found, allowed, chunked):
    row = len(GOOD[name][column]) - 1
    table = pa.table({**GOOD[name], column: [*GOOD[name][column][:row], value]})
    if chunked:
        table = pa.concat_tables([table.slice(i, 1) for i in range(len(table))])
    with pytest.raises(UserError) as caught:
        check(table, name)
    message = str(caught.value)
    assert message.startswith(f"{name} table, column {column}, row {row}")
    assert f"found {found}; allowed: {allowed}" in message
    ids = {
        "nodes": "node_id 'c'",
        "files": "file_id 12",
        "requests": "request_id 2",
        "transfers": "coflow_id 1",
    }
    assert name in ("rates", "network") or f"({ids[name]})" in message


def test_words_among_numbers():
    message = refused({**NODES, "service_mean_s": ["1.5", "2", "fast"]}, "nodes")
    assert "column service_mean_s, row 2 (node_id 'c'): found 'fast'; allowed: finite numbers > 0" in message
    message = refused({**NODES, "service_mean_s": ["1.5", "2", "3"]}, "nodes")
    assert "column service_mean_s: found type string; allowed: finite numbers > 0" in message
    assert "found type bool" in refused({**NODES, "service_mean_s": [True] * 3}, "nodes")
    assert "found type list<item: int64>" in refused({**NODES, "service_mean_s": [[1]] * 3}, "nodes")
    assert "column op: found type int64; allowed: strings" in refused(
        {**REQUESTS, "op": [1, 2, 3]}, "requests"
    )


def test_duplicate_ids():
    message = refused({**NODES, "node_id": ["a", "b", "a"]}, "nodes")
    assert message.endswith("column node_id, row 2: found 'a' again, first in row 0; allowed: every id once")
    message = refused({**FILES, "file_id": [1, 1, 2]}, "files")
    assert "column file_id, row 1: found 1 again, first in row 0" in message


# Nodes


def test_affine_nodes():
    assert check(pa.table(AFFINE), "nodes").num_rows == 2
    assert check(pa.table({**AFFINE, "reference_bytes": [1e6, 1e6]}), "nodes").num_rows == 2


def test_service_law_incomplete():
    message = refused({k: v for k, v in NODES.items() if k != "service_third_s3"}, "nodes")
    assert (
        "missing columns: service_third_s3 (or else delta_s, delta_s_per_byte, psi_s, psi_s_per_byte)"
        in message
    )
    message = refused({k: v for k, v in AFFINE.items() if k not in ("psi_s", "delta_s")}, "nodes")
    assert "missing columns: delta_s, psi_s (or else service_mean_s" in message
    assert "missing columns: service_mean_s" in refused({"node_id": [1]}, "nodes")


def test_two_service_laws():
    both = {**{k: v[:2] for k, v in NODES.items()}, **AFFINE}
    assert "found two service laws" in refused(both, "nodes")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {**NODES, "stall_probability": [0.1] * 3, "stall_s": [1.0] * 3},
            "found stall_probability; allowed: with",
        ),
        ({**AFFINE, "stall_s": [1.0, 1.0]}, "missing columns: stall_probability (beside stall_s)"),
        ({**AFFINE, "stall_probability": [0.1, 1.5], "stall_s": [1.0, 1.0]}, "found 1.5; allowed: 0 to 1"),
        (
            {**AFFINE, "stall_probability": [0.1, -0.5], "stall_s": [1.0, 1.0]},
            "found -0.5; allowed: finite numbers >= 0",
        ),
    ],
)
def test_stalls_are_beside_an_affine_law(columns, message):
    assert message in refused(columns, "nodes")


def test_services_may_be_nothing_but_stalls():
    nothing = dict.fromkeys(("delta_s", "delta_s_per_byte", "psi_s", "psi_s_per_byte"), [0.0, 0.0])
    table = check(
        pa.table({**AFFINE, **nothing, "stall_probability": [0.1, 1.0], "stall_s": [1.0, 0.5]}), "nodes"
    )
    assert table["stall_s"].to_pylist() == [1.0, 0.5]
    message = refused({**AFFINE, **nothing, "stall_probability": [0.1, 0.0], "stall_s": [1.0, 0.5]}, "nodes")
    assert "all 0; allowed: a service time above 0" in message and "row 1" in message


def test_law_missing_in_one_row():
    message = refused({**NODES, "service_second_s2": [2.0, None, 18.0]}, "nodes")
    assert "column service_second_s2, row 1 (node_id 'b'): found an empty cell" in message


INTERVALS = {
    f"{name}_{end}_{unit}": [factor * value for value in NODES[f"{name}_{unit}"]]
    for name, unit, low, high in (
        ("service_mean", "s", 1.0, 1.0),
        ("service_second", "s2", 0.9, 1.2),
        ("service_third", "s3", 0.9, 1.5),
    )
    for end, factor in (("low", low), ("high", high))
}


def test_intervals_of_moments():
    assert check(pa.table({**NODES, **INTERVALS}), "nodes").num_rows == 3
    missing = {name: values for name, values in INTERVALS.items() if name != "service_third_high_s3"}
    assert "missing columns: service_third_high_s3 (beside service_mean_low_s)" in refused(
        {**NODES, **missing}, "nodes"
    )
    outside = [*INTERVALS["service_second_high_s2"][:2], 17.9]
    message = refused({**NODES, **INTERVALS, "service_second_high_s2": outside}, "nodes")
    assert (
        "column service_second_s2, row 2 (node_id 'c'): found 18; allowed: from service_second_low_s2"
        in message
    )
    affine = {**AFFINE, **{name: values[:2] for name, values in INTERVALS.items()}}
    assert "found service_mean_low_s; allowed: with service_mean_s, service_second_s2" in refused(
        affine, "nodes"
    )
    low = {**INTERVALS, "service_second_low_s2": [1e-3, *INTERVALS["service_second_low_s2"][1:]]}
    assert "(no service time has such moments)" in refused({**NODES, **low}, "nodes")


def test_impossible_moments():
    message = refused({**NODES, "service_second_s2": [2.0, 3.9, 18.0]}, "nodes")
    assert (
        "column service_second_s2, row 1 (node_id 'b'): found 3.9; allowed: at least service_mean_s^2 = 4"
        in message
    )
    message = refused({**NODES, "service_third_s3": [6.0, 31.0, 162.0]}, "nodes")
    assert "column service_third_s3, row 1 (node_id 'b'): found 31; allowed: at least" in message
    assert "= 32 (no service time has such moments)" in message


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(0.0, 1.0)), min_size=1, max_size=6).filter(
        lambda points: sum(weight for _, weight in points) > 1e-3
    )
)
def test_moments_of_any_sample_pass(points):
    """Rounded moments of a real distribution, a constant among them, are never called impossible."""
    value, weight = np.array(points).T
    weight = weight / weight.sum()
    first, second, third = (float(weight @ value**p) for p in (1, 2, 3))
    columns = dict(zip(list(NODES)[1:4], ([first], [second], [third]), strict=True))
    check(pa.table({"node_id": [1], "reference_bytes": [1], **columns}), "nodes")


def test_zero_affine_law():
    message = refused({**AFFINE, "delta_s": [0.1, 0.0], "delta_s_per_byte": [0.0, 0.0]}, "nodes")
    assert "row 1 (node_id 2)" in message
    assert "a service time above 0" in message


def test_channels_are_counted():
    assert check(pa.table({**NODES, "channels": [1, 4, 1]}), "nodes").num_rows == 3
    message = refused({**NODES, "channels": [1, 0, 1]}, "nodes")
    assert "column channels, row 1 (node_id 'b'): found 0" in message


def test_one_cost_period():
    message = refused({**NODES, "cost_period_s": [86400, 86400, 3600]}, "nodes")
    assert (
        "column cost_period_s, row 2 (node_id 'c'): found 3600; allowed: one period for all nodes, 86400"
        in message
    )


@pytest.mark.parametrize(
    ("background", "said"),
    [
        # twice 1 s a second is load 2 with moments 1; 10 s once in 100 s beside it
        ([2.0 + 0.1, 2.0 + 1.0, 2.0 + 10.0], None),
        ([0.5, 2.0, 8.0], None),  # 4 s, always
        (
            [0.5, 2.0, 7.9],
            "column background_third, row 1 (node_id 'b'): found 7.9; allowed: at least background_second^2",
        ),
        (
            [0.0, 2.0, 8.0],
            "column background_second, row 1 (node_id 'b'): found 2 beside background_load = 0; allowed: 0",
        ),
        ([0.0, 0.0, 0.0], None),
    ],
)
def test_background_moments_are_those_of_some_service_times(background, said):
    columns = {
        name: [0.0, value, 0.0]
        for name, value in zip(
            ("background_load", "background_second", "background_third"), background, strict=True
        )
    }
    if said is None:
        check(pa.table({**NODES, **columns}), "nodes")
    else:
        assert said in refused({**NODES, **columns}, "nodes")


def test_background_moments_go_together():
    message = refused({**NODES, "background_load": [0.1, 0.1, 0.1]}, "nodes")
    assert "missing columns: background_second, background_third" in message


# Files


def test_code_length():
    assert check(pa.table({**FILES, "n": [2, 4, None]}), "files").column("n").to_pylist() == [2, 4, None]
    message = refused({**FILES, "n": [4, 1, 4]}, "files")
    assert "column n, row 1 (file_id 11): found 1; allowed: at least k = 2" in message


def test_chunks_read_are_at_least_those_that_rebuild_a_file():
    checked = check(pa.table({**FILES, "d": [3, None, 3], "n": [3, 2, 4]}), "files")
    assert checked.column("d").to_pylist() == [3, None, 3]
    message = refused({**FILES, "d": [2, None, 2]}, "files")
    assert "column d, row 2 (file_id 12): found 2; allowed: at least k = 3" in message
    message = refused({**FILES, "d": [0, 2, 3]}, "files")
    assert "column d, row 0 (file_id 10): found 0; allowed: integers >= 1" in message
    message = refused({**FILES, "d": [4, None, 3], "n": [None, 2, 2]}, "files")
    assert "column n, row 2 (file_id 12): found 2; allowed: at least d = 3" in message
    message = refused({**FILES, "d": [4, None, 3], "group": ["g", "g", None]}, "files")
    assert (
        "column d, row 1 (file_id 11): found 2 in group 'g'; allowed: one d per group, 4 as in row 0"
        in message
    )


def test_groups_share_k():
    assert check(pa.table({**FILES, "group": ["g", "g", "h"]}), "files").num_rows == 3
    assert check(pa.table({**FILES, "group": ["g", None, None]}), "files").num_rows == 3
    message = refused({**FILES, "group": ["h", "g", "g"]}, "files")
    assert (
        "column k, row 2 (file_id 12): found 3 in group 'g'; allowed: one k per group, 2 as in row 1"
        in message
    )
    message = refused({**FILES, "group": [5, None, 5]}, "files")
    assert "found 3 in group 5; allowed: one k per group, 2 as in row 0" in message


def test_no_reads_at_all():
    message = refused({**FILES, "rate_per_s": [0, 0, 0]}, "files")
    assert "column rate_per_s: found rates that sum to 0" in message
    assert "found 1e+308; allowed: finite numbers >= 0, up to 1e+30" in refused(
        {**FILES, "rate_per_s": [1e308, 1e308, 0]}, "files"
    )


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.int64(), 2)])
def test_placement_lists(kind):
    lists = pa.array([[1, 2], [3, 4], None], kind)
    checked = check(pa.table({**FILES, "nodes": lists}), "files")
    assert checked.schema.field("nodes").type == pa.list_(pa.int64())
    assert checked.column("nodes").to_pylist() == [[1, 2], [3, 4], None]


def test_bad_placement_lists():
    message = refused({**FILES, "nodes": [["a"], ["a", None], None]}, "files")
    assert "column nodes, row 1 (file_id 11): found a list with an empty item" in message
    assert "found lists of double" in refused({**FILES, "nodes": [[1.5], [], None]}, "files")
    assert "found type string; allowed: lists of ids" in refused({**FILES, "nodes": ["a", "b", "c"]}, "files")


def test_forbidden_nodes_are_lists_and_lists_without_items_count_as_absent():
    lists = pa.array([["a"], [], None])
    assert check(pa.table({**FILES, "forbidden_nodes": lists}), "files").column(
        "forbidden_nodes"
    ).to_pylist() == [
        ["a"],
        [],
        None,
    ]
    for kind in (pa.list_(pa.null()), pa.list_(pa.string()), pa.large_list(pa.int64())):
        empty = pa.array([[], None, []], kind)
        checked = check(pa.table({**FILES, "forbidden_nodes": empty, "nodes": empty}), "files")
        assert checked.column_names == list(FILES)
    message = refused({**FILES, "forbidden_nodes": [["a", None], [], None]}, "files")
    assert "column forbidden_nodes, row 0 (file_id 10): found a list with an empty item" in message


# Network


def test_a_network_row_names_a_node_or_a_site():
    message = refused({**NETWORK, "node_site": ["q", "p", None]}, "network")
    assert (
        message
        == "network table, column node_site, row 0: found 'q' beside a node_id; allowed: one of the two"
    )


def test_network_rows_say_different_things():
    message = refused(
        {**NETWORK, "client_site": ["y"] * 3, "node_id": [None] * 3, "node_site": ["p"] * 3}, "network"
    )
    assert (
        message
        == "network table, row 1: found client_site 'y', node_site 'p' again, first in row 0; allowed: once"
    )
    message = refused({"dollars_per_byte": [1, 2]}, "network")
    assert message == "network table, row 1: found every node again, first in row 0; allowed: once"


# Requests


def test_operations_are_normalised():
    words = ["r", "R", "GET", "Put", "W", "write", " read"]
    columns = {
        "request_id": range(7),
        "arrival_s": range(7),
        "file_id": range(7),
        "op": words,
        "bytes": [1] * 7,
    }
    checked = check(pa.table(columns), "requests")
    expected = ["read", "read", "read", "write", "write", "write", "read"]
    assert checked.column("op").to_pylist() == expected


def test_unsorted_arrivals():
    message = refused(
        {**REQUESTS, "arrival_s": [0.0, 1.0, 0.5], "start_s": [2.0] * 3, "finish_s": [3.0] * 3}, "requests"
    )
    assert "column arrival_s, row 2 (request_id 2): found 0.5 after 1.0; allowed: non-decreasing" in message
    assert "sort=true" in message


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_sorting_is_stable(arrivals):
    rows = range(len(arrivals))
    columns = {
        "request_id": rows,
        "arrival_s": arrivals,
        "file_id": rows,
        "op": ["r"] * len(rows),
        "bytes": rows,
    }
    checked = check(pa.table(columns), "requests", sort=True)
    assert checked.column("request_id").to_pylist() == sorted(rows, key=lambda row: arrivals[row])


def test_order_of_one_access():
    message = refused({**REQUESTS, "start_s": [0.0, -0.5, 1.5]}, "requests")
    assert "column start_s, row 1 (request_id 1): found -0.5; allowed: at least arrival_s = 0.0" in message
    message = refused({**REQUESTS, "finish_s": [0.2, 0.25, 2.0]}, "requests")
    assert "column finish_s, row 1 (request_id 1): found 0.25; allowed: at least start_s = 0.5" in message
    without_start = {k: v for k, v in REQUESTS.items() if k != "start_s"}
    message = refused({**without_start, "finish_s": [0.2, 0.25, 1.0]}, "requests")
    assert "column finish_s, row 2 (request_id 2): found 1.0; allowed: at least arrival_s = 1.5" in message


def test_unfinished_accesses_may_lack_times():
    checked = check(
        pa.table({**REQUESTS, "start_s": [None, 0.5, None], "finish_s": [None, 0.75, 2.0]}), "requests"
    )
    assert checked.column("finish_s").to_pylist() == [None, 0.75, 2.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_timestamps_become_seconds_since_the_first_arrival(unit, zone):
    per_second = 1000 ** ["s", "ms", "us", "ns"].index(unit)
    epoch = 1_700_000_000 * per_second
    ticks = {"arrival_s": [0, 3, 7], "start_s": [1, 3, None], "finish_s": [2, 5, 9]}
    kind = pa.timestamp(unit, zone)
    stamped = {
        name: pa.array([None if t is None else epoch + t for t in values], kind)
        for name, values in ticks.items()
    }
    checked = check(pa.table({**REQUESTS, **stamped}), "requests")
    for name, values in ticks.items():
        assert checked.column(name).to_pylist() == [None if t is None else t / per_second for t in values]


def test_timestamps_of_several_units_share_an_origin():
    columns = {
        **REQUESTS,
        "arrival_s": pa.array([1_700_000_000] * 3, pa.timestamp("s")),
        "start_s": pa.array([1_700_000_000_000_000_001] * 3, pa.timestamp("ns")),
        "finish_s": pa.array([1_700_000_000_001] * 3, pa.timestamp("ms")),
    }
    checked = check(pa.table(columns), "requests")
    assert checked.column("start_s").to_pylist() == [1e-9] * 3
    assert checked.column("finish_s").to_pylist() == [1e-3] * 3


def test_dates_and_pandas_timestamps():
    days = [datetime.date(2024, 2, 28), datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]
    columns = {k: v for k, v in REQUESTS.items() if k not in ("start_s", "finish_s")}
    checked = check(pa.table({**columns, "arrival_s": days}), "requests")
    assert checked.column("arrival_s").to_pylist() == [0.0, 86400.0, 172800.0]
    stamps = pa.array(pd.to_datetime(days))
    assert check(pa.table({**columns, "arrival_s": stamps}), "requests").equals(checked)


def test_sorted_timestamps_count_from_the_earliest():
    columns = {k: v for k, v in REQUESTS.items() if k not in ("start_s", "finish_s")}
    columns["arrival_s"] = pa.array([30, 10, 20], pa.timestamp("s"))
    assert check(pa.table(columns), "requests", sort=True).column("arrival_s").to_pylist() == [
        0.0,
        10.0,
        20.0,
    ]
    assert "row 1 (request_id 1): found 0.0 after 20.0" in refused(columns, "requests")


def test_times_of_two_kinds_are_refused():
    stamps = pa.array([1, 2, 3], pa.timestamp("s"))
    message = refused({**REQUESTS, "arrival_s": stamps}, "requests")
    assert "arrival_s is timestamp[s] and start_s is double" in message
    zoned = {name: pa.array([1, 2, 3], pa.timestamp("s", "UTC")) for name in ("start_s", "finish_s")}
    assert "with and without a time zone" in refused({**REQUESTS, "arrival_s": stamps, **zoned}, "requests")
    far = {**REQUESTS, "arrival_s": pa.array([-(2**40)] * 3, pa.timestamp("s"))}
    far |= {name: pa.array([1, 2, 3], pa.timestamp("ns")) for name in ("start_s", "finish_s")}
    assert "outside what ns can count" in refused(far, "requests")
    assert "finite numbers or timestamps" in refused({**REQUESTS, "arrival_s": ["noon"] * 3}, "requests")


def test_times_as_numbers_stay_absolute():
    checked = check(
        pa.table({**REQUESTS, "arrival_s": [5, 6, 7], "start_s": [8] * 3, "finish_s": [9] * 3}), "requests"
    )
    assert checked.column("arrival_s").to_pylist() == [5.0, 6.0, 7.0]


# Id types of several tables


def test_id_types_of_tables():
    nodes = check(pa.table({**NODES, "site": [1, 1, 2]}), "nodes")
    files = check(pa.table({**FILES, "nodes": [["a"], ["b"], None], "group": ["g", None, None]}), "files")
    expected = {"node_id": pa.string(), "file_id": pa.int64(), "site": pa.int64(), "group": pa.string()}
    assert id_types(nodes, files) == expected
    forbidden = check(pa.table({**FILES, "forbidden_nodes": [["a"], [], None]}), "files")
    assert id_types(nodes, forbidden)["node_id"] == pa.string()


def test_id_types_that_contradict():
    nodes = check(pa.table(NODES), "nodes")
    for name in ("nodes", "forbidden_nodes"):
        files = check(pa.table({**FILES, name: [[1], [2], None]}), "files")
        with pytest.raises(UserError, match="node_id: found string in one table and int64 in another"):
            id_types(nodes, files)
