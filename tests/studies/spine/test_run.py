"""A run is described once: what its id depends on is in its row."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecjax.studies.spine.run import Run
from ecjax.tables.run_ids import run_id

PARAMETERS = st.dictionaries(
    st.sampled_from(["theta", "policy", "n"]),
    st.one_of(
        st.none(), st.integers(0, 2), st.sampled_from(["a", "b"]), st.lists(st.integers(0, 1), max_size=2)
    ),
)
RUNS = st.builds(
    Run,
    job=st.just("replay"),
    parameters=PARAMETERS,
    input_id=st.sampled_from(["x", "y"]),
    seed=st.one_of(st.none(), st.integers(0, 1)),
    remarks=st.dictionaries(st.just("input"), st.sampled_from(["log", "files"])),
    dtype=st.sampled_from(["float64", "float32"]),
    algorithm_version=st.integers(1, 2),
)


@given(one=RUNS, other=RUNS)
def test_runs_with_different_ids_have_different_rows_and_remarks_change_no_id(one, other):
    rows = [{name: value for name, value in run.row().items() if name != "run_id"} for run in (one, other)]
    if one.run_id != other.run_id:
        assert rows[0] != rows[1]
    if (one.parameters, one.input_id, one.seed, one.dtype, one.algorithm_version) == (
        *(other.parameters, other.input_id, other.seed, other.dtype, other.algorithm_version),
    ):
        assert one.run_id == other.run_id


def test_the_id_is_that_of_the_store_and_params_hold_all_parameters():
    run = Run("schedule", {"n": 8, "sources": "random"}, "abc", 3, {"n": 8}, {"input": "20 reads"})
    assert run.run_id == run_id("schedule", {"sources": "random", "n": 8}, "abc", 3, "float64")
    row = run.row()
    assert (row["n"], row["seed"], row["input_id"], row["job"]) == (8, 3, "abc", "schedule")
    assert json.loads(row["params"]) == {"n": 8, "sources": "random", "input": "20 reads"}
    assert json.loads(run.params(kind="exact"))["kind"] == "exact"


def test_a_parameter_without_a_name_in_json_is_a_mistake_of_the_program():
    with pytest.raises(ValueError):
        Run("schedule", {"n": float("nan")}, "", None).row()


def test_addresses_are_kept_without_secrets_and_others_change_no_id():
    def run(address, log="s3://key:secret@bucket/log.csv?token=1"):
        return Run("adapt", {"delays": [address], "n": 1}, "x", 0, {"delays": address}, {"log": log})

    secret, plain = run("s3://key:secret@bucket/x.parquet?token=1"), run("s3://bucket/x.parquet")
    assert "secret" not in json.dumps(secret.row()) and "token" not in json.dumps(secret.row())
    assert json.loads(secret.row()["params"])["log"] == "s3://bucket/log.csv"
    assert secret.row() == plain.row()
    assert plain.run_id == run_id("adapt", plain.parameters, "x", 0, "float64")
