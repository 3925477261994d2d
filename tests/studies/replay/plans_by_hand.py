"""A plan of two nodes and four files, written out."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ecjax.studies.optimize.tables import TABLES
from ecjax.tables.ids import id_types
from ecjax.tables.read import read_input
from ecjax.tables.store import ResultStore

RUN = "0123456789abcdef"
FIXED, VARIABLE = np.array([0.2, 0.3]), np.array([0.3, 0.2])  # s, by node; and 0.1 s per byte
SIZES, NEED, RATES = np.array([1.0, 2.0, 1.0, 4.0]), np.array([1, 1, 1, 2]), np.array([0.3, 0.2, 0.2, 0.05])
PLACED = np.array([[0.6, 0.4], [0.5, 0.5], [0.3, 0.7], [1.0, 1.0]])
PRICES = np.array([1.0, 3.0])  # of a chunk, by node
OF_FILE = np.array([0, 0, 1, 1])  # classes a and b
SHARES = np.array([[0.6, 0.45], [0.4, 0.55]])  # by class and node
WEIGHTS = [("b", "y", 0.55), ("a", "x", 0.6), ("a", "y", 0.45), ("b", "x", 0.4)]


def plan_by_hand(folder, queue, weights=None, write_rate=None, per_node=1, background=None, **run):
    """A result folder with one optimize run; ``run`` are further columns of its row, ``background`` of its nodes.

    With ``per_node`` chunks of a file at a node a read takes so many times as many.
    """
    folder.mkdir(exist_ok=True)
    nodes = {"node_id": ["x", "y"], "delta_s": FIXED, "delta_s_per_byte": [0.1] * 2}
    nodes |= {"psi_s": VARIABLE, "psi_s_per_byte": [0.0] * 2, "cost_per_chunk_dollars": PRICES}
    nodes |= background or {}
    files = {"file_id": range(10, 14), "bytes": SIZES, "k": per_node * NEED, "rate_per_s": RATES}
    files |= {"service_class": [("a", "b")[number] for number in OF_FILE]}
    files |= {} if write_rate is None else {"write_rate_per_s": [write_rate] * 4}
    for name, columns in (("nodes", nodes), ("files", files)):
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    nodes, files = (read_input(str(folder / f"{name}.parquet"), name) for name in ("nodes", "files"))
    params = json.dumps({"max_chunks_per_node": per_node} if per_node > 1 else {})
    row = {"run_id": RUN, "job": "optimize", "status": "ok", "queue": queue, "method": "by hand"}
    row |= {"params": params, "input_id": "tables", "rate_scale": 1.0, "size_scale": 1.0} | run
    placed = {"run_id": [RUN] * 8, "file_id": np.repeat(range(10, 14), 2), "node_id": ["x", "y"] * 4}
    tables = {"placements": pa.table(placed | {"probability": PLACED.ravel(), "chunks": [per_node] * 8})}
    if weights is not None:
        names, places, shares = zip(*weights, strict=True)
        columns = {"service_class": names, "node_id": places, "weight": shares}
        tables["class_weights"] = pa.table({"run_id": [RUN] * len(weights)} | columns)
    with ResultStore(folder / "plan", TABLES, id_types(nodes, files)) as store:
        store.write_input("nodes", "tables", nodes)
        store.write_input("files", "tables", files)
        store.commit([row], tables)
    return str(folder / "plan")
