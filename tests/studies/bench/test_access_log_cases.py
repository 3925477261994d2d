"""Generated logs of the benchmarks: known by their first lines, and read alike by what they are compared with."""

import pytest

from ecjax.studies.bench.setups import access_log_lines, access_logs
from ecjax.tables.importers import open_trace
from ecjax.tables.statistics.files import READ_BYTES
from ecjax.tables.statistics.scan import scan

ROWS, OBJECTS = 300, 40


@pytest.mark.parametrize("form", access_log_lines.FORMS)
def test_generated_logs_are_read_whole(form, tmp_path):
    path = tmp_path / "log.gz"
    assert access_logs.write_log(str(path), form, ROWS, OBJECTS, 1) > 100 * ROWS
    trace = open_trace(path, max_rejects=0)
    statistics = scan(trace)
    assert trace.format == form and statistics.rows == ROWS and len(statistics.file_ids) <= OBJECTS
    assert not trace.tally.others and not trace.tally.unsuccessful


@pytest.mark.parametrize("name", access_logs.RIVALS)
@pytest.mark.parametrize("form", access_log_lines.FORMS)
def test_others_add_up_the_same_bytes(form, name, tmp_path):
    pytest.importorskip(name)
    path = tmp_path / "log.gz"
    access_logs.write_log(str(path), form, ROWS, OBJECTS, 1)
    ours = scan(open_trace(path))
    table = getattr(access_logs, f"by_{name}")(str(path), form).value
    rows = table if isinstance(table, list) else table.rows()
    assert sum(row[1] for row in rows) == ROWS
    read = ours.files[:, READ_BYTES].sum()
    total = sum(row[2] or 0 for row in rows)
    # two of the formats have one column for the bytes of reads and writes
    assert total > read if form in ("hdfs", "warp") else total == read
