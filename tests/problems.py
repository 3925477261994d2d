"""Small planning problems as plain tables, and the model written out again in NumPy and SciPy.

Nothing here uses the package except ``Case.problem``: service moments are taken at each chunk size (the package has
polynomials in the size), and z comes from SciPy.
"""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.optimize import minimize_scalar

FILES, NODES = 12, 6  # one shape, so that tests share compiled programs


@dataclass(frozen=True)
class Case:
    """Tables of nodes and files (pandas), as a user has them."""

    nodes: pd.DataFrame
    files: pd.DataFrame
    size_scaling: str = "proportional"
    # columns as arrays: solvers ask for them thousands of times, and pandas takes a millisecond for each
    _arrays: dict = field(default_factory=dict, init=False, repr=False, compare=False)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        return (
            pa.Table.from_pandas(self.nodes, preserve_index=False),
            pa.Table.from_pandas(self.files, preserve_index=False),
        )

    def problem(self):
        from ecjax.planning import prepare
        from ecjax.problem.arrays import files_arrays, nodes_arrays, placement_rows

        nodes, files = self.tables()
        rows = placement_rows(files)
        return prepare(nodes_arrays(nodes, self.size_scaling), files_arrays(files), rows.of_file, rows.count)

    def file(self, name: str, default: float = 0.0) -> np.ndarray:
        return self._column("files", name, default)

    def node(self, name: str, default: float = 0.0) -> np.ndarray:
        return self._column("nodes", name, default)

    def _column(self, of: str, name: str, default: float) -> np.ndarray:
        key = of, name, default
        if key not in self._arrays:
            table = getattr(self, of)
            self._arrays[key] = (
                table[name].to_numpy(float, na_value=default)
                if name in table
                else np.full(len(table), float(default))
            )
        return self._arrays[key].copy()

    @property
    def k(self) -> np.ndarray:
        return self.file("k")

    @property
    def even(self) -> np.ndarray:
        """k / m for every file and node."""
        return np.repeat(self.k[:, None] / len(self.nodes), len(self.nodes), axis=1)

    def scaled(self, rate: float = 1.0, size: float = 1.0) -> "Case":
        """The tables that a user would give instead of rate_scale and size_scale."""
        files = self.files.copy()
        for name, factor in (
            ("rate_per_s", rate),
            ("write_rate_per_s", rate),
            ("bytes", size),
            ("stored_bytes", size),
        ):
            if name in files:
                files[name] = files[name] * factor
        return replace(self, files=files)

    def at_load(self, load: float) -> "Case":
        """Rates multiplied so that the even spread, every node storing every file, loads the busiest node so far."""
        background = self.node("background_load")
        busiest = (node_work(self, self.even, np.ones_like(self.even))[0] - background).max()
        return self.scaled(rate=(load - background.max()) / busiest)


def service(case: Case) -> list[np.ndarray]:
    """Raw service moments 1, 2, 3 of a chunk of every file at every node, (r, m) each."""
    if "service" not in case._arrays:
        case._arrays["service"] = _service(case)
    return [each.copy() for each in case._arrays["service"]]


def _service(case: Case) -> list[np.ndarray]:
    size = (case.file("bytes") / case.k)[:, None]
    if "delta_s" in case.nodes and not np.isnan(case.node("delta_s", np.nan)).any():
        fixed = case.node("delta_s") + case.node("delta_s_per_byte") * size
        mean = case.node("psi_s") + case.node("psi_s_per_byte") * size
        return [
            fixed + mean,
            fixed**2 + 2 * fixed * mean + 2 * mean**2,
            fixed**3 + 3 * fixed**2 * mean + 6 * fixed * mean**2 + 6 * mean**3,
        ]
    ratio = size / case.node("reference_bytes") if case.size_scaling == "proportional" else np.ones_like(size)
    names = ("service_mean_s", "service_second_s2", "service_third_s3")
    return [case.node(name) * ratio**power for power, name in enumerate(names, start=1)]


def node_work(case: Case, probabilities: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """rho, A_2 and A_3 of every node, (3, m); probabilities and stored are (r, m), a row per file."""
    chunks = (
        case.file("rate_per_s")[:, None] * probabilities + case.file("write_rate_per_s")[:, None] * stored
    )
    own = [(chunks * moment).sum(axis=0) for moment in service(case)]
    background = [case.node(f"background_{name}") for name in ("load", "second", "third")]
    return np.array(own) + background


def chunk_delay(case: Case, work: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the time from request to the last byte of a chunk, (r, m)."""
    idle = 1 - work[0]
    wait = work[1] / (2 * idle)
    first, second, _ = service(case)
    mean = first + wait + case.node("connect_mean_s")
    variance = second - first**2 + work[2] / (3 * idle) + wait**2 + case.node("connect_var_s2")
    return mean, variance


def bound_at(z: float, weights: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> float:
    """z + sum w/2 [(E - z) + sqrt((E - z)^2 + V)]."""
    return float(z + np.sum(weights / 2 * ((mean - z) + np.sqrt((mean - z) ** 2 + variance))))


def least_bound(weights: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[float, float]:
    """Minimum over z of ``bound_at`` and its z; the sum of w E at z = -inf where the weights sum to 1."""
    if abs(weights.sum() - 1) < 1e-9:
        return float(np.sum(weights * mean)), -np.inf
    reach = 10 * np.sqrt(weights.sum() * variance.max()) + np.ptp(mean) + 1e-9
    found = minimize_scalar(
        bound_at,
        args=(weights, mean, variance),
        method="bounded",
        bounds=(mean.min() - reach, mean.max() + reach),
        options={"xatol": 1e-10 * reach, "maxiter": 500},
    )
    return float(found.fun), float(found.x)


def least_bounds(weights: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """The minimum of ``least_bound`` for each row, whose z halves where the slope, which only rises, is 0."""
    one = np.abs(weights.sum(axis=1) - 1) < 1e-9
    reach = 10 * np.sqrt(weights.sum(axis=1) * variance.max(axis=1)) + np.ptp(mean, axis=1) + 1e-9
    low, high = mean.min(axis=1) - reach, mean.max(axis=1) + reach
    for _ in range(60):
        z = (low + high) / 2
        above = mean - z[:, None]
        root = np.sqrt(above**2 + variance)
        rising = 1 - np.sum(weights / 2 * (1 + above / root), axis=1) > 0
        low, high = np.where(rising, low, z), np.where(rising, z, high)
    value = z + np.sum(weights / 2 * (above + root), axis=1)
    return np.where(one, np.sum(weights * mean, axis=1), value)


@dataclass(frozen=True)
class Outcome:
    """What a plan costs and how fast it is; names as in the result tables."""

    load: np.ndarray
    latency_shared_z_s: float
    z_s: float
    latency_s: float
    file_latency: np.ndarray
    cost: float
    file_cost: np.ndarray

    def objective(self, theta: float, theta_per: str = "file") -> float:
        return self.latency_shared_z_s + theta * self.cost / (
            len(self.file_cost) if theta_per == "file" else 1
        )


def outcome(case: Case, probabilities: np.ndarray, stored: np.ndarray) -> Outcome:
    """Evaluate a plan with a row per file: probabilities (r, m), stored (r, m) 0 or 1."""
    work = node_work(case, probabilities, stored)
    rate = case.file("rate_per_s")
    share = rate / rate.sum()
    if work[0].max() >= 1:
        mean = variance = np.full(probabilities.shape, np.inf)
        shared, z = np.inf, np.inf
    else:
        mean, variance = chunk_delay(case, work)
        shared, z = least_bound(share[:, None] * probabilities, mean, variance)
    of_file = (
        least_bounds(probabilities, mean, variance) if np.isfinite(shared) else np.full(len(rate), np.inf)
    )
    stored_chunk = case.file("stored_bytes", np.nan)
    stored_chunk = np.where(np.isnan(stored_chunk), case.file("bytes"), stored_chunk) / case.k
    price = case.node("cost_per_chunk_dollars") + case.node("cost_per_byte_dollars") * stored_chunk[:, None]
    file_cost = (stored * price).sum(axis=1)
    return Outcome(
        load=work[0],
        latency_shared_z_s=shared,
        z_s=z,
        latency_s=float(np.sum(share * of_file)) if np.isfinite(shared) else np.inf,
        file_latency=of_file,
        cost=float(file_cost.sum()),
        file_cost=file_cost,
    )


def moment_nodes(seed: int = 0, count: int = NODES) -> pd.DataFrame:
    """Nodes of different speed and price, their service law given by three moments."""
    random = np.random.default_rng(seed)
    mean = random.uniform(0.5, 2.0, count)
    spread = random.uniform(0.2, 1.0, count)  # a gamma law has these moments
    return pd.DataFrame(
        {
            "node_id": [f"n{j}" for j in range(count)],
            "service_mean_s": mean,
            "service_second_s2": mean**2 * (1 + spread),
            "service_third_s3": mean**3 * (1 + spread) * (1 + 2 * spread),
            "reference_bytes": random.uniform(0.5e6, 2e6, count),
            "connect_mean_s": random.uniform(0.0, 0.2, count),
            "connect_var_s2": random.uniform(0.0, 0.02, count),
            "cost_per_byte_dollars": np.linspace(3e-6, 1e-6, count),
            "cost_per_chunk_dollars": random.uniform(0.0, 0.5, count),
        }
    )


def affine_nodes(seed: int = 0, count: int = NODES) -> pd.DataFrame:
    """Nodes with a shifted exponential service law whose parts are affine in the chunk size."""
    random = np.random.default_rng(seed)
    given = moment_nodes(seed, count)
    law = {
        "delta_s": random.uniform(0.1, 0.5, count),
        "delta_s_per_byte": random.uniform(1e-7, 5e-7, count),
        "psi_s": random.uniform(0.0, 0.4, count),
        "psi_s_per_byte": random.uniform(1e-7, 8e-7, count),
    }
    kept = given[[name for name in given if not name.startswith(("service_", "reference"))]]
    return kept.assign(**law)


def mixed_files(seed: int = 0, count: int = FILES, k: tuple[int, ...] = (2, 3, 4)) -> pd.DataFrame:
    """Files of different sizes, k and rates."""
    random = np.random.default_rng(seed + 100)
    return pd.DataFrame(
        {
            "file_id": np.arange(count) * 7,
            "bytes": np.exp(random.normal(14.5, 0.7, count)),
            "k": np.resize(k, count),
            "rate_per_s": np.exp(random.normal(0, 1, count)),
            "min_extra_chunks": np.resize([1, 0, 0], count),
        }
    )


def mixed(seed: int = 0, load: float = 0.6) -> Case:
    """Mixed sizes, moments proportional to the chunk size."""
    return Case(moment_nodes(seed), mixed_files(seed)).at_load(load)


def alike(seed: int = 0) -> Case:
    """One chunk size: for a fixed z the latency is convex."""
    files = mixed_files(seed)
    return Case(moment_nodes(seed), files.assign(bytes=2e6 * files["k"])).at_load(0.6)


def steady(load: float, seed: int = 0) -> Case:
    """Service and connection times that do not vary, one chunk size: with little load, delays hardly vary."""
    case = alike(seed)
    mean = case.nodes["service_mean_s"]
    constant = case.nodes.assign(service_second_s2=mean**2, service_third_s3=mean**3, connect_var_s2=0.0)
    return Case(constant, case.files).at_load(load)


def fixed(seed: int = 0) -> Case:
    """Service times that do not depend on the chunk size; some other work at two nodes."""
    nodes = moment_nodes(seed).assign(
        background_load=np.resize([0.2, 0.0, 0.0], NODES),
        background_second=np.resize([0.3, 0.0, 0.0], NODES),
        background_third=np.resize([0.7, 0.0, 0.0], NODES),
    )
    return Case(nodes, mixed_files(seed), "none").at_load(0.6)


def affine(seed: int = 0) -> Case:
    """Affine service law; string file ids; storage paid for other bytes than a read moves; no node prices a chunk."""
    files = mixed_files(seed).assign(
        file_id=[f"f/{i}" for i in range(FILES)], stored_bytes=np.linspace(1e6, 9e6, FILES)
    )
    return Case(affine_nodes(seed).drop(columns="cost_per_chunk_dollars"), files).at_load(0.6)


def idle(seed: int = 0) -> Case:
    """Files with k = 1, with k = m, and files that are never read."""
    files = mixed_files(seed, k=(1, 2, NODES, 1)).assign(min_extra_chunks=0)
    files.loc[[3, 5], "rate_per_s"] = 0.0
    return Case(moment_nodes(seed), files).at_load(0.6)


def replicated(seed: int = 0) -> Case:
    """Every file that is read has k = 1; one that is not has k = 3."""
    files = mixed_files(seed, k=(1,)).assign(min_extra_chunks=1)
    files.loc[4, ["k", "rate_per_s"]] = [3, 0.0]
    return Case(moment_nodes(seed), files.astype({"k": int})).at_load(0.6)


def written(seed: int = 0, writes: float = 0.1) -> Case:
    """Writes beside reads."""
    files = mixed_files(seed)
    files["write_rate_per_s"] = writes * files["rate_per_s"].to_numpy()[::-1]
    return Case(moment_nodes(seed), files).at_load(0.6)


def grouped(seed: int = 0) -> Case:
    """Two groups of files of different sizes and rates beside single files; writes; string ids."""
    files = mixed_files(seed, k=(2, 3)).assign(
        file_id=[f"f{i}" for i in range(FILES)],
        group=["a", "b", "a", "b", None, None, "a", None, "a", "b", None, None],
        write_rate_per_s=np.resize([0.0, 0.02, 0.05], FILES),
    )
    return Case(moment_nodes(seed), files).at_load(0.6)


def tiny(nodes: int = 4) -> Case:
    """Two files; on three or four nodes all placements can be tried."""
    files = pd.DataFrame(
        {
            "file_id": [0, 1],
            "bytes": [2e6, 3e6],
            "k": [1, 2],
            "rate_per_s": [1.0, 0.7],
            "min_extra_chunks": [1, 0],
        }
    )
    return Case(moment_nodes(3, nodes), files).at_load(0.7)


PLAIN = {
    "mixed": mixed,
    "alike": alike,
    "fixed": fixed,
    "affine": affine,
    "idle": idle,
    "replicated": replicated,
}
ALL = PLAIN | {"written": written, "grouped": grouped}


def of_files(case: Case, rows: np.ndarray) -> np.ndarray:
    """Values of placement rows, repeated for the files: groups first, then single files, in order of appearance."""
    if "group" not in case.files:
        return rows
    named = case.files["group"]
    groups = list(dict.fromkeys(named.dropna()))
    single = iter(range(len(groups), len(rows)))
    return rows[[next(single) if pd.isna(name) else groups.index(name) for name in named]]


def random_plan(case: Case, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (R, m) with 0 < p < 1 on random supports, and what is stored: the support and a cold chunk."""
    random = np.random.default_rng(seed)
    count = len(case.nodes)
    k = of_rows(case, rows, case.k)
    stored = np.zeros((rows, count))
    probabilities = np.zeros((rows, count))
    for i in range(rows):
        need = int(k[i])
        n = int(random.integers(need, count + 1))
        support = random.permutation(count)[:n]
        draws = random.uniform(0.5, 1.0, n)
        low, high = 0.0, 1.0 / draws.min() * need
        for _ in range(200):  # min(1, c draws) with sum k
            middle = (low + high) / 2
            low, high = (middle, high) if np.minimum(1, middle * draws).sum() < need else (low, middle)
        probabilities[i, support] = np.minimum(1, high * draws)
        stored[i, random.permutation(count)[: min(count, n)]] = 1
        stored[i, support] = 1
    return probabilities, stored


def of_rows(case: Case, rows: int, values: np.ndarray) -> np.ndarray:
    """Value of each placement row: that of its first file."""
    owner = of_files(case, np.arange(rows))
    return np.array([values[np.flatnonzero(owner == row)[0]] for row in range(rows)])


def solve_settings(**changes):
    """Tight settings of a batch: the same for all tests, so that they share compiled programs."""
    from ecjax.planning import BatchSettings, settings

    return BatchSettings(**{"settings": settings(10.0, 1e-9, 500, "merged"), **changes})


def solve(case: Case, theta, rate=1.0, size=1.0, start_plan=None, **changes):
    """Plans of a batch with a lane per theta (or per rate or size)."""
    from ecjax.planning import Lanes
    from ecjax.planning import solve as solve_batch

    lanes = Lanes(
        *(np.array(values, float) for values in np.broadcast_arrays(np.atleast_1d(theta), rate, size))
    )
    return solve_batch(case.problem(), lanes, solve_settings(**changes), start_plan)


def study(out, case: Case | None = None, **options):
    """Run the study on the tables of a case; returns the exit code and what it printed.

    Lane by lane unless asked otherwise: one compiled program for all tests.
    """
    from io import StringIO

    from rich.console import Console

    from ecjax.planning import METHODS
    from ecjax.studies.optimize.options import OptimizeOptions
    from ecjax.studies.optimize.study import optimize_study

    if case is not None:
        folder = out.parent / f"{out.name}-inputs"
        folder.mkdir(exist_ok=True)
        for name, table in (("nodes", case.nodes), ("files", case.files)):
            path = folder / f"{name}.parquet"
            table.to_parquet(path, index=False)
            options.setdefault(name, str(path))
        options.setdefault("size_scaling", case.size_scaling)
    console = Console(file=StringIO(), width=200)
    chosen = {
        "method": list(METHODS),
        "theta": 5.0,
        "estimate": False,
        # bounds of mixed sizes are searched for until they are this near
        "gap": 0.02,
        "eps": 1e-9,
        "max_iterations": 500,
        "memory_bytes": 1.0,
        "figures": [],
    } | options
    code = optimize_study(OptimizeOptions(out=str(out), **chosen), console)
    return code, console.file.getvalue()


def written_plan(out, run) -> tuple[Case, np.ndarray, np.ndarray]:
    """Case, probabilities and chunks (r, m) of a run, from the tables under ``out`` alone, read by pandas."""
    nodes, files = (
        pd.read_parquet(out / "inputs" / name / f"{run.input_id}.parquet").dropna(axis=1, how="all")
        for name in ("nodes", "files")
    )
    case = Case(nodes, files, json.loads(run.params)["size_scaling"]).scaled(run.rate_scale, run.size_scale)
    placements = pd.read_parquet(out / "placements")
    placements = placements[placements["run_id"] == run.run_id]
    probabilities, stored = np.zeros((len(files), len(nodes))), np.zeros((len(files), len(nodes)))
    node = {name: j for j, name in enumerate(nodes["node_id"])}
    rows = {("file", name): [i] for i, name in enumerate(files["file_id"])}
    if "group" in files:
        for i, name in enumerate(files["group"]):
            if not pd.isna(name):
                rows.setdefault(("group", name), []).append(i)
    for chunk in placements.itertuples():
        key = ("file", chunk.file_id) if pd.isna(chunk.group) else ("group", chunk.group)
        for i in rows[key]:
            assert stored[i, node[chunk.node_id]] == 0, "a chunk is there once"
            probabilities[i, node[chunk.node_id]] = chunk.probability
            stored[i, node[chunk.node_id]] = chunk.chunks
    return case, probabilities, stored
