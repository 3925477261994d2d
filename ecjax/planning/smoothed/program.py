"""The smoothed dual as one program of JAX: on any device, several problems of one shape at once.

Rows come by node, as the host has them, and go by place; their number is rounded up so that few programs are compiled.
Several devices have a part of the rows each, and all prices. A pass adds up what the parts ask for, and how that falls
as prices rise: m numbers and an m x m matrix, whatever the number of rows.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from ecjax.machine_code import writable
from ecjax.planning.smoothed import newton
from ecjax.planning.smoothed.backend import jax_backend
from ecjax.planning.smoothed.demand import Grid, by_node, demand_of
from ecjax.planning.smoothed.host_demand import Marginals
from ecjax.planning.smoothed.newton import Cluster, Settings, Solution
from ecjax.planning.smoothed.response import Rows
from ecjax.programs import program

_LEAST_ROWS = 32
_FILES = "files"  # the axis of a mesh of devices


class Request(NamedTuple):
    """A problem to solve.

    Attributes:
        cluster: m nodes.
        rows: by node, (R, m).
        sites: nodes site by site (m,), and where each site starts (S + 1,).
        settings: when to stop.
        z: s, to start from.
        read: (m,) prices to start from, s per 1/s.
        place: (m,) prices of places to start from, s.
    """

    cluster: Cluster
    rows: Rows
    sites: tuple[np.ndarray, np.ndarray]
    settings: Settings
    z: float
    read: np.ndarray
    place: np.ndarray


class Shape(NamedTuple):
    """What a program is compiled for, lanes aside; requests of one shape can be solved together."""

    rows: int
    nodes: int
    sites: int
    width: int
    per_site: int
    reading: bool
    with_places: bool
    fixed_z: bool


def shape_of(request: Request) -> Shape:
    """The shape of a request."""
    rows, (order, start) = request.rows, request.sites
    width = int(np.diff(start).max())
    return Shape(
        rows=_rounded(len(rows.rate), _LEAST_ROWS),
        nodes=len(order),
        sites=len(start) - 1,
        width=width,
        per_site=min(rows.per_site, width),
        reading=bool(len(rows.reading)),
        with_places=bool(np.isfinite(request.cluster.capacity).any()),
        fixed_z=request.settings.fixed_z,
    )


def solved(requests: Sequence[Request], devices: Sequence[jax.Device] | None = None) -> list[Solution]:
    """Solutions of requests of one shape, as NumPy arrays; the details of their answers are ``Marginals`` by node.

    Args:
        requests: one or more.
        devices: that share the rows; all local ones of the default kind unless it says others.
    """
    shared_by = tuple(jax.local_devices() if devices is None else devices)
    shape = shape_of(requests[0])
    shape = shape._replace(rows=-(-shape.rows // len(shared_by)) * len(shared_by))
    lanes = _rounded(len(requests), 1)
    padded = [*requests, *[requests[-1]] * (lanes - len(requests))]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(_arrays(request, shape) for request in padded))
    # the array program is NumPy's too, which promotes ranks and types
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        solutions = jax.tree.map(writable, _solve(shape, shared_by, *stacked))
    return [
        _of_lane(jax.tree.map(lambda leaf, lane=lane: leaf[lane], solutions), request)
        for lane, request in enumerate(requests)
    ]


def _rounded(count: int, least: int) -> int:
    """The next number that is a power of two, or one and a half of it."""
    power = 1 << max(count - 1, least - 1).bit_length()
    return 3 * power // 4 if count <= 3 * power // 4 and power > least else power


def grid_of(sites: tuple[np.ndarray, np.ndarray]) -> Grid:
    """Places of nodes that come site by site."""
    order, start = sites
    m, count = len(order), np.diff(start)
    node = np.full((len(count), int(count.max())), m)
    inside = np.arange(node.shape[1]) < count[:, None]
    node[inside] = order
    place = np.empty(m, np.int64)
    place[order] = np.flatnonzero(inside)
    return Grid(node, place)


def _arrays(request: Request, shape: Shape) -> tuple[Any, ...]:
    """What the program takes: rows by place, filled up with rows that count nothing."""
    rows, grid = request.rows, grid_of(request.sites)
    more = shape.rows - len(rows.rate)

    def filled(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.repeat(values[-1:], more, axis=0)])

    def placed(values: np.ndarray, fill: float) -> np.ndarray:
        return np.take(np.hstack([filled(values), np.full((shape.rows, 1), fill)]), grid.node, axis=1)

    weight = np.concatenate([rows.weight, np.zeros(more)])
    reading = placed(rows.reading, 0.0) if shape.reading else np.zeros((1, 1, 1))
    by_place = (
        *(weight, *map(filled, (rows.rate, rows.hot, rows.extra, rows.chunks))),
        placed(rows.cold_cost, np.inf),
        reading,
    )
    settings = request.settings
    limits = (settings.first, settings.last, settings.tol, settings.turns)
    return (
        request.cluster,
        grid,
        tuple(np.asarray(each) for each in by_place),
        tuple(np.asarray(each) for each in limits),
        np.asarray(request.z),
        request.read,
        request.place,
    )


@partial(program, static_argnums=(0, 1))
def _solve(
    shape: Shape, devices: tuple[jax.Device, ...], *stacked: Any
) -> tuple[Solution, jax.Array, jax.Array]:
    backend = jax_backend()

    def of_all(sums: Any) -> Any:
        return jax.lax.psum(sums, _FILES) if len(devices) > 1 else sums

    def one(cluster: Cluster, grid: Grid, by_place: Any, limits: Any, z: Any, read: Any, place: Any) -> Any:
        first, last, tol, turns = limits
        weight, rate, hot, extra, chunks, cold_cost, reading = by_place
        rows = Rows(weight, rate, hot, extra, chunks, cold_cost, reading, shape.per_site)
        settings = Settings(first, last, tol, turns, shape.fixed_z)
        demand = demand_of(backend, rows, grid, shape.with_places, of_all)
        solution = newton.solve(backend, cluster, demand, settings, z, read, place)
        response = solution.answer.detail
        marginals = by_node(jnp, grid, response.hot), by_node(jnp, grid, response.cold)
        bare = solution._replace(answer=solution.answer._replace(detail=jnp.zeros(0)))
        return (bare, *marginals)

    alone = len(devices) == 1 and stacked[-1].shape[0] == 1
    # a lane by itself has branches, of which only one is computed
    lanes: Any = _without_lanes(one) if alone else jax.vmap(one)
    if len(devices) > 1:
        mesh = Mesh(np.array(devices), (_FILES,))
        parts, whole = P(None, _FILES), P()
        of_rows = (*[parts] * 6, parts if shape.reading else whole)
        lanes = jax.shard_map(
            lanes,
            mesh=mesh,
            in_specs=(whole, whole, of_rows, whole, whole, whole, whole),
            out_specs=(whole, parts, parts),
            # prices are the same everywhere, since all that they are made of is summed over the devices
            check_vma=False,
        )
    result: tuple[Solution, jax.Array, jax.Array] = lanes(*stacked)
    return result


def _without_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of arrays with a leading axis of length 1."""

    def of_one(*stacked: Any) -> Any:
        bare = jax.tree.map(lambda leaf: leaf[0], stacked)
        return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(*bare))

    return of_one


def _of_lane(lane: tuple[Solution, np.ndarray, np.ndarray], request: Request) -> Solution:
    solution, hot, cold = lane
    number = len(request.rows.rate)
    detail = Marginals(hot[:number], cold[:number], np.zeros((2, 0)))
    return solution._replace(answer=solution.answer._replace(detail=detail))
