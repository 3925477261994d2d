"""Option class_rate_scale: rates of classes in the files table itself, so that everything after it needs nothing."""

import json

import numpy as np
import pyarrow as pa
import pytest

from ecjax.errors import UserError
from ecjax.options import checked
from ecjax.problem.class_rates import with_class_rates
from ecjax.problem.cluster_options import ClusterOptions
from ecjax.problem.identity import identity
from ecjax.studies.optimize.inputs import read_tables
from ecjax.studies.optimize.options import OptimizeOptions
from ecjax.studies.optimize.study import planned
from ecjax.tables.read import read_input
from ecjax.tables.results import read_results


def planned_alone(options: OptimizeOptions):
    options = checked(options)
    return planned(options, list(read_tables(options)))


CLUSTER = ClusterOptions(hardware="tahoe", files=8, k=[2, 2], rates=[1.0, 2.0], load=0.3, nodes_per_site=2)


def files(**columns) -> pa.Table:
    table = {
        "file_id": ["a", "b", "c", "d"],
        "bytes": [1e6] * 4,
        "k": [1] * 4,
        "rate_per_s": [1.0, 2.0, 3.0, 4.0],
    }
    return read_input(pa.table(table | columns), "files")


def scaled(table: pa.Table, *scale: float) -> tuple[pa.Table, str]:
    nodes = {"node_id": ["n"], "service_mean_s": [1.0], "service_second_s2": [2.0], "service_third_s3": [6.0]}
    nodes |= {"reference_bytes": [1e6], "cost_per_chunk_dollars": [1.0]}
    names = identity(read_input(pa.table(nodes), "nodes"), table)
    return with_class_rates(table, names, scale)


def test_read_and_write_rates_grow_class_by_class():
    table = files(service_class=["silver", "tin", "gold", "silver"], write_rate_per_s=[1.0, 1.0, 0.0, 2.0])
    found, told = scaled(table, 10.0, 100.0, 1000.0)
    assert found["rate_per_s"].to_pylist() == [100.0, 2000.0, 30.0, 400.0]
    assert found["write_rate_per_s"].to_pylist() == [100.0, 1000.0, 0.0, 200.0]
    assert json.loads(told) == {"gold": 10.0, "silver": 100.0, "tin": 1000.0}
    rates = ("rate_per_s", "write_rate_per_s")
    assert found.drop_columns(rates).equals(table.drop_columns(rates)) and found.schema.equals(table.schema)


@pytest.mark.parametrize(
    "given, expected",
    [
        (None, None),
        (2, [(2.0,)]),
        ([1, 2], [(1.0, 2.0)]),
        ([[1, 2], [3, 4], [1, 2]], [(1.0, 2.0), (3.0, 4.0)]),
    ],
)
def test_one_list_or_several(given, expected):
    assert checked(OptimizeOptions(class_rate_scale=given)).class_rate_scale == expected


@pytest.mark.parametrize(
    "given", [[], [[]], [1, -1], [[1, 2], 3], [0, 1], "high", [["a", 1]], [1, float("nan")]]
)
def test_what_is_no_list_of_positive_numbers(given):
    with pytest.raises(UserError) as error:
        checked(OptimizeOptions(class_rate_scale=given))
    assert str(error.value) == (
        f"class_rate_scale: found {given}; allowed: one positive number per service class, or a list of such lists"
    )


def test_numbers_that_do_not_fit_the_files():
    with pytest.raises(UserError) as error:
        scaled(files(service_class=[1, 2, 2, 1]), 1.0)
    assert str(error.value) == "class_rate_scale: found [1.0]; allowed: one number per service class: 1, 2"
    with pytest.raises(UserError) as error:
        scaled(files(), 1.0)
    assert str(error.value) == (
        "class_rate_scale: files have no column service_class; allowed without it: rate_scale, for all files"
    )


def test_plans_are_of_the_tables_they_name(tmp_path):
    """One plan per value; loads by hand from what was written; the value 1 is the study without the option."""
    options = {
        "cluster": CLUSTER,
        "method": "random_cp",
        "theta": 1.0,
        "figures": [],
        "write": ["placements"],
    }
    plain = planned_alone(OptimizeOptions(out=str(tmp_path / "plain"), **options)).iloc[0]
    scales = [[1, 1], [2, 0.5]]
    runs = planned_alone(OptimizeOptions(out=str(tmp_path / "out"), class_rate_scale=scales, **options))
    assert [json.loads(told) for told in runs["class_rate_scale"]] == [{"1": 1, "2": 1}, {"1": 2, "2": 0.5}]
    assert plain["class_rate_scale"] is None or plain.isna()["class_rate_scale"]
    assert runs["input_id"].iloc[0] == plain["input_id"] and runs["input_id"].nunique() == 2

    tables, nodes = (
        read_results(tmp_path / "out", "inputs/files"),
        read_results(tmp_path / "out", "inputs/nodes"),
    )
    placements = read_results(tmp_path / "out", "placements")
    rates = tables.set_index(["input_id", "service_class"])["rate_per_s"]
    one, other = (rates.loc[name].groupby("service_class").sum() for name in runs["input_id"])
    np.testing.assert_allclose(other / one, [2.0, 0.5], rtol=1e-12)
    for run in runs.to_dict("records"):
        own = placements[placements["run_id"] == run["run_id"]]
        own = own.merge(tables[tables["input_id"] == run["input_id"]], on="file_id")
        own = own.merge(nodes[nodes["input_id"] == run["input_id"]], on="node_id")
        size = own["bytes"] / own["k"] / own["reference_bytes"]
        load = own["rate_per_s"] * own["probability"] * own["service_mean_s"] * size
        assert load.groupby(own["node_id"]).sum().max() == pytest.approx(run["max_load"], rel=1e-9)
