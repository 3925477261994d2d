"""Service laws of the nodes of a table, and nodes with the moments of these laws."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ecjax.errors import UserError
from ecjax.model import Files, Nodes
from ecjax.problem import arrays
from ecjax.problem.arrays import column
from ecjax.simulation import law_fit
from ecjax.simulation.laws import (
    COLUMNS,
    EXPONENTIAL,
    KIND,
    KINDS,
    LINES,
    OFFSET,
    OFFSET_PER_BYTE,
    SCALE,
    STALLED,
    A,
    B,
    Laws,
)
from ecjax.tables.rules import STALL_COLUMNS

_AFFINE = ("auto", "shifted_exponential")  # families that affine laws are of as they are


def served_nodes(
    nodes: pa.Table, chunk_bytes: float, family: str = "auto", size_scaling: str = "proportional"
) -> Nodes:
    """Nodes whose service moments are those of their laws in the chosen family, so that bounds hold for these laws.

    Args:
        nodes: checked table.
        chunk_bytes: mean size of the chunks read, B, that affine laws are replaced at.
        family: one of ``law_fit.FAMILIES``.
        size_scaling: "proportional" or "none".

    Raises:
        UserError: the family has no law with a node's moments.
    """
    served = arrays.nodes_arrays(nodes, size_scaling)
    if family == "auto":
        return served  # has all three moments
    laws = _laws(nodes, chunk_bytes, family, size_scaling, law_fit.PARETO_RATIO)
    return replace(served, service=jnp.asarray(law_fit.polynomials(laws, len(nodes))))


def depends_on_size(nodes: pa.Table, family: str) -> bool:
    """Whether laws are made for one chunk size, so that other sizes have other laws."""
    return _is_affine(nodes) and family not in _AFFINE


def _is_affine(nodes: pa.Table) -> bool:
    """Whether services are described by affine laws instead of moments."""
    return "service_mean_s" not in nodes.column_names


def mean_chunk_bytes(files: Files) -> float:
    """Mean size of the chunks that are read, B; of all data chunks where files have no such reads, only small ones."""
    k = np.asarray(files.k, float)
    chunks = np.asarray(files.rate) * k
    if not chunks.any():
        chunks = k
    return float(chunks @ np.asarray(files.chunk_bytes) / chunks.sum())


def service_laws(
    nodes: pa.Table,
    files: Files,
    family: str,
    size_scaling: str,
    size_scale: float = 1.0,
    pareto_ratio: float = law_fit.PARETO_RATIO,
) -> Laws:
    """Laws of the nodes' service times in the chosen family, from their moments or their affine law.

    Affine laws stay as they are for ``auto`` and ``shifted_exponential``; the other families keep mean and variance at
    the mean chunk size read, and grow with the mean at others.

    Args:
        nodes: checked table.
        files: as in the nodes' problem, for the mean chunk size; not scaled.
        family: one of ``law_fit.FAMILIES``.
        size_scaling: "proportional" or "none".
        size_scale: multiplies chunk sizes.
        pareto_ratio: largest / smallest service time of ``pareto``.

    Raises:
        UserError: the family has no law with a node's moments.
    """
    return _laws(nodes, mean_chunk_bytes(files) * size_scale, family, size_scaling, pareto_ratio)


def _laws(nodes: pa.Table, size: float, family: str, size_scaling: str, pareto_ratio: float) -> Laws:
    table = np.zeros((len(nodes), COLUMNS))
    affine = _is_affine(nodes)
    parts = [column(nodes, name) for name in ("delta_s", "delta_s_per_byte", "psi_s", "psi_s_per_byte")]
    if affine and family in _AFFINE:
        table[:, LINES] = np.stack(parts, axis=1)
        table[:, KIND] = EXPONENTIAL
        probability, stall = (column(nodes, name) for name in STALL_COLUMNS)
        stalls = (probability > 0) & (stall > 0)
        table[stalls, KIND], table[stalls, A], table[stalls, B] = STALLED, probability[stalls], stall[stalls]
        return Laws(table, np.zeros(1))
    if affine:
        polynomial = np.asarray(arrays.nodes_arrays(nodes).service)
        moments = np.einsum("npm,p->nm", polynomial, size ** np.arange(4))
        growth = polynomial[0, 1] / moments[0]  # mean(B) / mean(size) = constant + growth B
        constant = polynomial[0, 0] / moments[0]
    else:
        moments = np.stack(
            [column(nodes, name) for name in ("service_mean_s", "service_second_s2", "service_third_s3")]
        )
        reference = column(nodes, "reference_bytes")
        grows = size_scaling == "proportional"
        growth = 1 / reference if grows else np.zeros(len(nodes))
        constant = np.zeros(len(nodes)) if grows else np.ones(len(nodes))
    for node in range(len(nodes)):
        try:
            row = law_fit.fit(family, moments[0, node], moments[1, node], moments[2, node], pareto_ratio)
        except ValueError as error:
            name = nodes["node_id"][node].as_py()
            raise UserError(f"service={family}: nodes row {node} (node_id={name}): found {error}") from None
        table[node] = row
        by_size = constant[node], growth[node]
        table[node, LINES] = (
            *(row[OFFSET] * part for part in by_size),
            *(row[SCALE] * part for part in by_size),
        )
    return Laws(table, np.zeros(1))


def law_name(laws: Laws) -> str:
    """Kinds of the laws in words, as in "shifted weibull"."""
    names = []
    for kind in np.unique(laws.table[:, KIND]).astype(int):
        alike = laws.table[laws.table[:, KIND] == kind]
        shifted = kind and np.any(alike[:, [OFFSET, OFFSET_PER_BYTE]] > 0) and KINDS[kind] != "two_point"
        names.append(("shifted " if shifted else "") + KINDS[kind].replace("_", " "))
    return ", ".join(names)
