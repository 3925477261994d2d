"""Judge a plan by its tables alone: every constraint, and every figure computed again in NumPy.

Nothing of the package computes here. Everything is held per chunk (file, node), so that 10^5 files take seconds.
"""

import json

import numpy as np
import pandas as pd
from planning.plan_figures import SUM, Chunks, Facts, facts_of, figures_of, file_costs, numbers, require

CLOSE = 1e-9  # relative: figures


def judge(
    nodes: pd.DataFrame,
    files: pd.DataFrame,
    run,
    placements: pd.DataFrame,
    file_plans: pd.DataFrame,
    *,
    size_scaling: str = "proportional",
    per_site: int | None = None,
    network: pd.DataFrame | None = None,
    migration: float = 0.0,
    fixed_groups: bool = False,
    earlier: pd.DataFrame | None = None,
) -> dict:
    """Check one run; returns its figures computed again.

    Args:
        nodes: the input table.
        files: the input table, before ``rate_scale`` and ``size_scale``.
        run: row of the ``runs`` dataset (Series or named tuple).
        placements: rows of the dataset; those of other runs are left aside.
        file_plans: rows of the dataset; those of other runs are left aside.
        size_scaling: "proportional" or "none".
        per_site: most chunks of a file at one site.
        network: table of dollars per byte read.
        migration: dollars per stored byte that is put outside the current placement.
        fixed_groups: files that have ``nodes`` are placed on exactly these.
        earlier: placements of the plan that is the current placement where files has no ``nodes``.

    Raises:
        AssertionError: one sentence that names what is wrong and where.
    """
    assert run.status in ("ok", "not_converged"), f"run {run.run_id}: status {run.status} has no plan"
    files = files.reset_index(drop=True)
    for name, factor in (
        ("rate_per_s", run.rate_scale),
        ("write_rate_per_s", run.rate_scale),
        ("bytes", run.size_scale),
        ("stored_bytes", run.size_scale),
    ):
        if name in files:
            files = files.assign(**{name: files[name] * factor})
    facts = facts_of(nodes, files, size_scaling)
    chunks = _chunks(nodes, files, _of_run(placements, run))
    current = None
    if "nodes" in files and files["nodes"].notna().any():
        current = _listed(nodes, files, "nodes")
    elif earlier is not None:
        before = _chunks(nodes, files, earlier, strict=False)
        current = before.file, before.node
    n = _check_placement(nodes, files, facts, chunks, per_site)
    if fixed_groups and current is not None:
        _check_fixed(nodes, files, chunks, current)
    figures = figures_of(facts, chunks)
    figures["file_cost"] = file_costs(nodes, files, facts, chunks, network, migration, current)
    figures["cost"] = float(figures["file_cost"].sum())
    per = len(files) if run.theta_per == "file" else 1
    figures["objective"] = figures["latency_shared_z_s"] + run.theta * figures["cost"] / per
    figures["n"] = n
    _check_run(run, facts, figures, len(nodes))
    _check_file_plans(_of_run(file_plans, run), files, facts, figures)
    return figures


def judge_folder(out, **options) -> dict[str, dict]:
    """Judge every finished run under ``out``, size_scaling and limits as the runs have them; figures by run_id.

    Options that are tables (``network``, ``earlier``) are the caller's.
    """
    from ecjax import read_results

    runs = read_results(out, "runs")
    tables = {name: read_results(out, name) for name in ("placements", "file_plans")}
    inputs = {
        name: dict(list(read_results(out, f"inputs/{name}").groupby("input_id")))
        for name in ("nodes", "files")
    }
    figures = {}
    for run in runs[runs["status"].isin(["ok", "not_converged"])].itertuples():
        nodes, files = (inputs[name][run.input_id].dropna(axis=1, how="all") for name in ("nodes", "files"))
        params = json.loads(run.params)
        own = {
            "size_scaling": params["size_scaling"],
            "per_site": params.get("max_chunks_per_site"),
            "migration": params.get("migration_dollars_per_byte", 0.0),
            "fixed_groups": params.get("fixed_groups", False),
        }
        figures[run.run_id] = judge(
            nodes, files, run, tables["placements"], tables["file_plans"], **own | options
        )
    return figures


def _of_run(table: pd.DataFrame, run) -> pd.DataFrame:
    return table[table["run_id"] == run.run_id].reset_index(drop=True)


def _chunks(nodes: pd.DataFrame, files: pd.DataFrame, placements: pd.DataFrame, strict=True) -> Chunks:
    """Chunks of a placements table; where not ``strict``, files and nodes that are not known are left out."""
    placements = placements.reset_index(drop=True)
    group = placements["group"] if "group" in placements else pd.Series(None, placements.index, object)
    group_of = files["group"] if "group" in files else pd.Series(None, files.index, object)
    alone, single = group.isna().to_numpy(), group_of.isna().to_numpy()
    node = pd.Index(nodes["node_id"]).get_indexer(placements["node_id"])
    file = pd.Index(files["file_id"]).get_indexer(placements.loc[alone, "file_id"])
    row = np.flatnonzero(alone)
    members = pd.DataFrame({"group": group_of[~single], "file": np.flatnonzero(~single)})
    chunks = pd.DataFrame({"group": group[~alone], "row": np.flatnonzero(~alone)})
    joined = chunks.merge(members, on="group", how="left")
    if strict:
        require(node < 0, lambda i: f"placements: node_id {placements['node_id'][i]} is no node")
        require(
            (file < 0) | ~single[file],
            lambda i: f"placements: file_id {placements['file_id'][row[i]]} is no file of its own",
        )
        require(joined["file"].isna(), lambda i: f"placements: group {joined['group'][i]} has no files")
        require(
            placements["chunks"] != 1,
            lambda i: f"placements: row {i} keeps {placements['chunks'][i]} chunks on a node, not one",
        )
    joined = joined.dropna(subset="file")
    row = np.concatenate([row, joined["row"].to_numpy(int)])
    file = np.concatenate([file, joined["file"].to_numpy(int)])
    known = (file >= 0) & (node[row] >= 0)
    row, file = row[known], file[known]
    return Chunks(file, node[row], placements["probability"].to_numpy(float)[row])


def _listed(nodes: pd.DataFrame, files: pd.DataFrame, name: str) -> tuple[np.ndarray, np.ndarray]:
    """File and node of every item of a column of node lists."""
    listed = files[name].explode().dropna()
    return listed.index.to_numpy(), pd.Index(nodes["node_id"]).get_indexer(listed)


def _check_placement(nodes, files, facts: Facts, chunks: Chunks, per_site: int | None) -> np.ndarray:
    """What concerns chunks and probabilities; returns n of every file."""
    r, m = len(files), len(nodes)
    name, node_name = files["file_id"].to_numpy(), nodes["node_id"].to_numpy()
    pair = chunks.file * m + chunks.node

    def where(i: int) -> str:
        return f"file_id {name[chunks.file[i]]} on node_id {node_name[chunks.node[i]]}"

    require(pd.Series(pair).duplicated(), lambda i: f"two chunks of {where(i)}")
    p = chunks.probability
    require(~((p >= 0) & (p <= 1)), lambda i: f"{where(i)}: probability {p[i]} is outside [0, 1]")
    total = np.bincount(chunks.file, p, minlength=r)
    require(
        ~(np.abs(total - facts.read) <= SUM),
        lambda i: f"file_id {name[i]}: probabilities sum to {total[i]}, not {facts.read[i]:.0f}",
    )
    n = np.bincount(chunks.file, minlength=r)
    require(
        n < facts.floor,
        lambda i: f"file_id {name[i]}: n = {n[i]} is below its floor {facts.floor[i]:.0f}",
    )
    if per_site is not None:
        site = pd.factorize(nodes["site"])[0]
        at_site = pd.Series(chunks.file * m + site[chunks.node]).value_counts()
        require(
            at_site > per_site,
            lambda i: (
                f"file_id {name[at_site.index[i] // m]}: {at_site.iloc[i]} chunks at one site, not at most {per_site}"
            ),
        )
    capacity = numbers(nodes, "capacity_chunks", np.inf)
    held = np.bincount(chunks.node, minlength=m)
    require(
        held > capacity,
        lambda j: f"node_id {node_name[j]} holds {held[j]} chunks, more than its capacity {capacity[j]:g}",
    )
    if "forbidden_nodes" in files:
        file, node = _listed(nodes, files, "forbidden_nodes")
        require(np.isin(pair, file * m + node), lambda i: f"{where(i)}: that node is forbidden to it")
    return n


def _check_fixed(nodes, files, chunks: Chunks, current: tuple[np.ndarray, np.ndarray]) -> None:
    """Files that have a current placement keep it; files of a group without one follow those that have."""
    m, name = len(nodes), files["file_id"].to_numpy()
    row = np.arange(len(files))
    if "group" in files:
        group = pd.factorize(files["group"])[0]
        row = np.where(group >= 0, len(files) + group, row)
    fixed = np.unique(row[current[0]] * m + current[1])
    require(
        np.isin(row[chunks.file], fixed // m) & ~np.isin(row[chunks.file] * m + chunks.node, fixed),
        lambda i: f"file_id {name[chunks.file[i]]} has a chunk outside the nodes that it is fixed to",
    )
    wanted = np.bincount(fixed // m, minlength=row.max() + 1)[row]
    kept = np.bincount(chunks.file, minlength=len(files))
    require(
        (wanted > 0) & (kept != wanted),
        lambda i: f"file_id {name[i]} has {kept[i]} chunks and is fixed to {wanted[i]} nodes",
    )


def _check_run(run, facts: Facts, figures: dict, nodes: int) -> None:
    """The row of the run against what was computed again."""
    n = figures["n"]
    expected = {
        **{name: figures[name] for name in ("max_load", "latency_shared_z_s", "latency_s")},
        "cost_dollars_per_period": figures["cost"],
        "objective": figures["objective"],
        "mean_n": n.mean(),
        "file_count": len(n),
        "node_count": nodes,
        "files_without_redundancy": np.sum(n == facts.k),
    }
    for name, value in expected.items():
        found, value = float(getattr(run, name)), float(value)
        assert abs(found - value) <= CLOSE * abs(value), (
            f"runs: {name} is {found!r}; the tables give {value!r}"
        )
    at_z, least = figures["bound_at"](float(run.z_s)), figures["latency_shared_z_s"]
    assert at_z <= least * (1 + CLOSE), (
        f"runs: the bound is {at_z!r} at z_s = {run.z_s!r} and {least!r} at best"
    )
    figures["gap"] = None
    if not pd.isna(run.lower_bound):
        bound = float(run.lower_bound)
        assert bound <= figures["objective"] * (1 + CLOSE), (
            f"runs: lower_bound {bound!r} is above the objective {figures['objective']!r}"
        )
        if bound > 0:
            figures["gap"] = (figures["objective"] - bound) / bound
            assert run.gap >= 0 and abs(run.gap - figures["gap"]) <= CLOSE * (1 + figures["gap"]), (
                f"runs: gap is {run.gap!r}; the tables give {figures['gap']!r}"
            )


def _check_file_plans(plans: pd.DataFrame, files: pd.DataFrame, facts: Facts, figures: dict) -> None:
    name = files["file_id"].to_numpy()
    assert len(plans) == len(files) and np.array_equal(plans["file_id"].to_numpy(), name), (
        "file_plans: the files are not those of the files table, in its order"
    )
    for column, value in (
        ("n", figures["n"]),
        ("k", facts.k),
        ("latency_s", figures["file_latency"]),
        ("cost_dollars_per_period", figures["file_cost"]),
    ):
        found = plans[column].to_numpy(float)
        require(
            ~(np.abs(found - value) <= CLOSE * np.abs(value)),
            lambda i, c=column, f=found, v=value: (
                f"file_plans: {c} of file_id {name[i]} is {f[i]}; the tables give {v[i]}"
            ),
        )
