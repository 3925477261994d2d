from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
import result_guide
import sample_tables

from ecjax.jobs_index import JOBS
from ecjax.tables.read import read_input
from ecjax.tables.schemas import INPUTS

TRACES = Path(__file__).parents[2] / "traces"


def load(path):
    if path.suffix == ".csv":
        return pa.csv.read_csv(path)
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return pq.read_table(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    sample_tables.write(folder)
    return folder


def same(stored, generated):
    """Whether two tables are equal; powers and sums of floats differ by processor in their last bits."""
    assert stored.schema.equals(generated.schema, check_metadata=True)
    assert stored.num_rows == generated.num_rows
    for name in stored.column_names:
        one, other = stored[name].combine_chunks(), generated[name].combine_chunks()
        if pa.types.is_floating(one.type):
            assert one.is_null().equals(other.is_null()), name
            np.testing.assert_allclose(
                one.drop_null().to_numpy(), other.drop_null().to_numpy(), rtol=1e-12, atol=0, err_msg=name
            )
        else:
            assert one.equals(other), name


@pytest.mark.parametrize("name", sample_tables.TABLES)
def test_the_samples_are_what_the_generator_makes(written, name):
    same(load(TRACES / name), load(written / name))
    assert (TRACES / name).stat().st_size < 200_000


def test_the_generator_makes_every_sample(written):
    assert {path.name for path in written.iterdir()} == {
        path.name for path in TRACES.iterdir() if path.is_file()
    }


@pytest.mark.parametrize("name", ["README.md", "RESULTS.md", "SOURCES.md"])
def test_the_guide_and_the_sources_are_up_to_date(written, name):
    assert (TRACES / name).read_text() == (written / name).read_text()


def test_the_guide_names_every_column():
    text = (TRACES / "README.md").read_text()
    for table, columns in INPUTS.items():
        assert f"## {table}\n" in text
        assert all(f"| `{column.name}` |" in text for column in columns)


@pytest.mark.parametrize("job", JOBS)
def test_the_guide_to_results_names_every_dataset_and_column(job):
    text = (TRACES / "RESULTS.md").read_text()
    for dataset, columns in result_guide.tables_of(job).datasets.items():
        section = text.split(f"### {job}: {dataset}\n", 1)[1].split("\n#")[0]
        for column in columns[1:]:
            assert f"| `{column.name}` |" in (text if dataset == "runs" else section), (dataset, column.name)


@pytest.mark.parametrize("name", sample_tables.TABLES)
def test_every_sample_passes_the_checks(name):
    table = read_input(TRACES / name, name.split("_")[0].split(".")[0])
    assert table.num_rows > 0


def test_every_input_table_has_a_sample():
    assert {name.split("_")[0].split(".")[0] for name in sample_tables.TABLES} == set(INPUTS)


@pytest.mark.parametrize("name", ["requests_chunks.parquet", "requests_racks.parquet"])
def test_chunk_samples_are_first_come_first_served(name):
    rows = load(TRACES / name).to_pandas()
    for _, node in rows.groupby("node_id"):
        before = node["finish_s"].shift(fill_value=0.0)
        expected = node["arrival_s"].where(node["arrival_s"] > before, before)
        assert (node["start_s"] - expected).abs().max() < 2e-6
    reads = rows[rows["op"] == "read"].groupby("request_id").size()
    assert set(reads) == {sample_tables.K}


def test_racks_have_prices_and_hosts_that_run_hot():
    rows = load(TRACES / "requests_racks.parquet").to_pandas()
    nodes = read_input(TRACES / "nodes_racks.csv", "nodes").to_pandas()
    busy = (rows["finish_s"] - rows["start_s"]).groupby(rows["node_id"]).sum() / rows["arrival_s"].max()
    assert set(busy.index) == set(nodes["node_id"]) and 0.5 < busy.mean() < 0.7 and 0.8 < busy.max() < 0.95
    assert nodes.groupby("site")["cost_per_byte_dollars"].nunique().tolist() == [1, 1, 1]
    assert rows.groupby("file_id")["node_id"].nunique().max() == sample_tables.STORED > sample_tables.K
