"""An engine for tests of studies, and what its tables are compared with.

``PickledEngine`` does what a cluster does to a study, in this process: what a task shares, its function and its items
are pickled, items are done one by one, their results come back pickled, the last item first.
"""

import json
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from ecjax.engine import Done, Task, Worker
from ecjax.engine.tasks import attempt
from ecjax.tables.results import read_results

# columns that tell how and when a run was done, not what came of it
HOW = ("batch_id", "batch_runs", "batch_files", "solve_s", "compile_s", "requests_per_s")
HOW += ("decision_mean_s", "decision_p99_s", "decision_p9999_s")


class PickledEngine:
    """An engine whose worker shares nothing with the study."""

    workers = 2
    memory_bytes = 1e9

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole  # tasks are done as they are
        self.sent: list[int] = []  # bytes of what tasks share, of each once

    def map(self, function, tasks, advance, at_once=None) -> Iterator[Done]:
        """See ``Engine.map``."""
        function, shared = _copied(function), {}
        for task in tasks:
            if id(task.shared) not in shared:
                packed = pickle.dumps(task.shared)
                self.sent.append(len(packed))
                shared[id(task.shared)] = pickle.loads(packed)
        parts = [
            (task, part)
            for task in tasks
            for part in ([task.items] if self.whole else [{name: item} for name, item in task.items.items()])
        ]
        counted = [0.0]

        def count(items: float) -> None:
            counted[0] += items

        with ThreadPoolExecutor(2) as pool:
            for task, items in reversed(parts):
                counted[0] = 0.0
                sent = Task(shared[id(task.shared)], _copied(items))
                for done in attempt(function, sent, Worker(pool, 2, count, remote=True)):
                    own = {name: items[name] for name in done.task.items}
                    yield Done(Task(task.shared, own), _copied(done.value), done.error)
                assert counted[0] <= len(items) + 1e-9
                advance(len(items))


@contextmanager
def open_pickled(options, accelerated: bool = False) -> Iterator[PickledEngine]:
    """To stand in for ``open_engine`` of a study's module: ``monkeypatch.setattr(schedule, "open_engine", ...)``."""
    yield PickledEngine()


def same_tables(one: Path, other: Path, rtol: float = 0.0, but: tuple[str, ...] = HOW) -> None:
    """Two folders of results hold the same rows in every dataset; of a run, in the same order.

    Args:
        one: folder.
        other: folder.
        rtol: relative difference that floats may have.
        but: columns that are left aside.
    """
    names = _datasets(one)
    assert names == _datasets(other) and "runs" in names
    same_rows(one, other, names, rtol, but)
    kept = [
        {str(path.relative_to(folder)) for path in (folder / "inputs").rglob("*.parquet")}
        for folder in (one, other)
    ]
    assert kept[0] == kept[1]


def same_rows(
    one: Path | str, other: Path | str, names: list[str], rtol: float = 0.0, but: tuple[str, ...] = HOW
) -> None:
    """As ``same_tables``, of some datasets, which may lie in object stores."""
    for name in names:
        expected, found = (_rows(folder, name, but) for folder in (one, other))
        pd.testing.assert_frame_equal(
            found, expected, check_exact=rtol == 0, rtol=rtol or 1e-9, atol=0, obj=name
        )


def _datasets(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.is_dir() and path.name != "inputs" and any(path.glob("*.parquet"))
    )


def _rows(folder: Path | str, name: str, but: tuple[str, ...]) -> pd.DataFrame:
    table = read_results(folder, name)
    if "params" in table:  # where inputs are read from is not what is compared
        table["params"] = [{**json.loads(text), "inputs": None} for text in table["params"]]
    table = table.drop(columns=[column for column in (*but, "input_files") if column in table])
    order = np.argsort(table["run_id"].to_numpy(str), kind="stable")
    return table.iloc[order].reset_index(drop=True)


def _copied(value):
    return pickle.loads(pickle.dumps(value))
