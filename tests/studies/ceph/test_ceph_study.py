"""``ecjax ceph`` from a folder of dumps to scripts, to a cluster that takes them, and back."""

import csv
import hashlib
import itertools
import json
import shlex
import shutil

import numpy as np
import pytest
from ceph_dumps import SECONDS, made, write

import ecjax
from ecjax.cli import main
from ecjax.errors import UserError
from ecjax.predict.plan_estimates import PlanEstimate
from ecjax.rados import live
from ecjax.rados.batches import Limits
from ecjax.rados.commands import PREPARE
from ecjax.rados.crush import rule_domains
from ecjax.rados.files import COMMANDS
from ecjax.rados.monitor import Map, applied
from ecjax.rados.plan import role_load
from ecjax.rados.records import Entries
from ecjax.studies.ceph import recommend
from ecjax.studies.ceph.inputs import read_case
from ecjax.studies.ceph.latencies import estimate, least_latency, read_probabilities, service_of
from ecjax.studies.ceph.options import CephOptions
from ecjax.studies.ceph.run import Settings, planned_of
from ecjax.studies.spine.study import only_rows
from ecjax.tables.results import read_results

WITHIN = "within=0.12"


@pytest.fixture(scope="module")
def parts():
    return made(hosts=6, pools=((2, 2, 24), (3, 2, 16)), items=4)


@pytest.fixture(scope="module")
def place(tmp_path_factory, parts):
    folder = tmp_path_factory.mktemp("ceph")
    write(folder / "dumps", parts)
    assert (
        main(["ceph", str(folder / "dumps"), WITHIN, f"out={folder / 'out'}", "figures=loads,batches"]) == 0
    )
    return folder


def scripts(place):
    (folder,) = (place / "out" / "scripts").iterdir()
    return folder


class Cluster:
    """A cluster behind ``ceph``: a monitor by the simulator, and dumps of what it holds."""

    def __init__(self, parts, dropping=()):
        domains = rule_domains(parts["crush"], 1)
        osd = parts["osd"]
        items = {
            each["pgid"]: tuple((pair["from"], pair["to"]) for pair in each["mappings"])
            for each in osd["pg_upmap_items"]
        }
        self.parts, self.dropping, self.lines = parts, dropping, []
        self.health, self.ill_after = {"status": "HEALTH_OK", "checks": {}}, None
        self.after = {}  # what somebody else commands once we have changed a group
        self.failing = {}  # how often a dump, or a command on a group, still fails
        self.map = Map(parts["raw"], dict.fromkeys(parts["raw"], domains), frozenset(), Entries({}, items))

    def __call__(self, words):
        assert words[0] == "ceph"
        what = words[3] if words[-1] != "json" else " ".join(words[1:-2])
        if self.failing.get(what) and self.lines:
            self.failing[what] -= 1
            raise UserError(f"{what}: found trouble; allowed: none")
        if words[-1] != "json":
            self.lines.append(shlex.join(words))
            if words[3] not in self.dropping:
                self.map = applied(self.map, [shlex.join(words)])
            self.map = applied(self.map, self.after.get(words[3], []))
            return ""
        return json.dumps(self.dump(what))

    def dump(self, what):
        if what == "health":
            moves = sum(" pg-upmap" in f" {line}" for line in self.lines)
            worse = self.ill_after is not None and moves > self.ill_after
            return check("OSD_DOWN", "1 osds down") if worse else self.health
        if what == "pg dump":
            groups = json.loads(json.dumps(self.parts["groups"][1]))
            for each in groups["pg_map"]["pg_stats"]:
                each["up"] = each["acting"] = list(self.map.up(each["pgid"]))
            return groups
        if what != "osd dump":
            return self.parts[
                {"osd crush dump": "crush", "osd df tree": "tree", "osd pool ls detail": "pools"}[what]
            ]
        entries = self.map.entries
        upmap = [{"pgid": name, "osds": list(osds)} for name, osds in entries.upmap.items()]
        items = [
            {"pgid": name, "mappings": [{"from": a, "to": b} for a, b in pairs]}
            for name, pairs in entries.items.items()
        ]
        return self.parts["osd"] | {"pg_upmap": upmap, "pg_upmap_items": items, "epoch": 60}


def check(code, message, status="HEALTH_WARN"):
    return {"status": status, "checks": {code: {"severity": status, "summary": {"message": message}}}}


@pytest.fixture
def cluster(parts, monkeypatch):
    behind = Cluster(parts)
    monkeypatch.setattr(live, "_run", behind)
    monkeypatch.setattr(live, "_POLL_S", 0.0)
    return behind


def test_the_plan_is_in_the_tables(place):
    run = read_results(place / "out", "runs").iloc[0]
    assert run["status"] == "ok" and run["group_count"] == 40 and run["osd_count"] == 12
    assert run["max_over_mean"] < run["max_over_mean_before"]
    assert run["lower_bound"] <= run["max_over_mean"] and run["gap"] <= 0.12 + 1e-9
    assert run["least_moved_chunks"] <= run["moved_chunks"]
    osds = read_results(place / "out", "osds")
    assert osds["load_before"].max() == pytest.approx(run["max_over_mean_before"])
    assert osds["load"].max() == pytest.approx(run["max_over_mean"])
    assert (osds["shards"] == osds["shards_before"]).all()
    batches = read_results(place / "out", "batches")
    assert len(batches) == 1 + run["batch_count"] and batches["moved_chunks"].sum() == run["moved_chunks"]
    assert batches["misplaced_share"].max() <= 0.05 or batches["changed_groups"].max() == 1
    assert {each.name for each in (place / "out" / "figures").iterdir()} == {"loads.png", "batches.png"}


def test_scripts_say_the_same_as_the_tables(place):
    folder = scripts(place)
    with (folder / "plan.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["group", "position", "osd", "before"]
    assert [
        {name: str(value) for name, value in row.items()}
        for row in json.loads((folder / "plan.json").read_text())
    ] == rows
    plan = read_results(place / "out", "plan")
    assert len(plan) == len(rows) and set(plan["group"]) == {row["group"] for row in rows}
    count = int(read_results(place / "out", "runs")["batch_count"].iloc[0])
    assert (
        len(list(folder.glob("batch-*-expected.json"))) == len(list(folder.glob("batch-*-undo.sh"))) == count
    )
    first = (folder / "batch-001.sh").read_text().splitlines()
    assert first[:2] == ["#!/bin/sh", "set -e"] and "ceph osd set-require-min-compat-client luminous" in first


def test_scripts_are_verified_as_the_tables_are(place, tmp_path, capsys):
    out = tmp_path / "copy"
    shutil.copytree(place / "out", out)
    assert main(["verify", str(out)]) == 0
    (folder,) = (out / "scripts").iterdir()
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert sorted(line.split("  ")[1] for line in lines) == sorted(
        each.name for each in folder.iterdir() if each.name != "SHA256SUMS"
    )
    script = folder / "batch-001.sh"
    assert hashlib.sha256(script.read_bytes()).hexdigest() in "".join(lines)
    script.write_text(script.read_text().replace("pg-upmap", "pg-upmap ", 1))
    (folder / "undo.sh").unlink()
    capsys.readouterr()
    assert main(["verify", str(out), "--json"]) == 1
    datasets = {each["dataset"]: each for each in json.loads(capsys.readouterr().out)["datasets"]}
    assert datasets["scripts"]["wrong"] == 2 and sum(each["wrong"] for each in datasets.values()) == 2
    assert main(["verify", str(out)]) == 1
    said = capsys.readouterr().out
    assert "batch-001.sh: has other bytes than were written" in said and "undo.sh: is missing" in said


def lines_of(path):
    return [line for line in path.read_text().splitlines() if line.startswith("ceph ")]


def test_scripts_bring_it_about_and_undo_takes_it_back(place, parts):
    behind, folder = Cluster(parts), scripts(place)
    before = behind.map
    for path in sorted(folder.glob("batch-???.sh")):
        behind.map = applied(behind.map, lines_of(path))
        for group, osds in json.loads(path.with_name(f"{path.stem}-expected.json").read_text()).items():
            assert behind.map.up(group) == tuple(osds)
    behind.map = applied(behind.map, lines_of(folder / "undo.sh"))
    assert behind.map == before


def test_apply_then_verify(place, cluster, capsys):
    out, dumps = place / "out", place / "later"
    assert main(["ceph", f"collect={place / 'before'}", "wait_s=0"]) == 0
    assert main(["ceph", str(place / "before"), f"verify={out}", "--quiet"]) == 1
    assert "0 of" in capsys.readouterr().out
    assert main(["ceph", f"verify={out}", "apply=true", "--quiet"]) == 0
    assert "are in force, read back" in capsys.readouterr().out
    assert cluster.lines[0] == PREPARE
    assert main(["ceph", f"collect={dumps}", "wait_s=0"]) == 0
    assert main(["ceph", str(dumps), f"verify={out}", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["exit_code"] == 0 and printed["findings"] == []
    # what has moved on since must not be applied again over it
    name = next(iter(cluster.map.entries.upmap))
    cluster.map = applied(cluster.map, [f"ceph osd rm-pg-upmap {name}"])
    moved = cluster.map.up(name) != tuple(cluster.parts["raw"][name])
    assert not moved
    assert main(["ceph", f"collect={place / 'gone'}", "wait_s=0"]) == 0
    assert main(["ceph", str(place / "gone"), f"verify={out}"]) == 1
    assert f"group {name}: it has no entry" in capsys.readouterr().out


def verified(capsys, cluster, out, folder):
    """Exit code and what is printed of a plan beside what the cluster holds."""
    assert main(["ceph", f"collect={folder}", "wait_s=0", "--quiet"]) == 0
    capsys.readouterr()
    code = main(["ceph", str(folder), f"verify={out}", "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


def test_batches_that_were_not_begun_are_no_findings(place, cluster, capsys, tmp_path):
    out, folder = place / "out", scripts(place)
    count = int(read_results(out, "runs")["batch_count"].iloc[0])
    cluster.map = applied(cluster.map, lines_of(folder / "batch-001.sh"))
    code, printed = verified(capsys, cluster, out, tmp_path / "first")
    assert (code, printed["findings"], printed["in_force"], printed["next"]) == (0, [], [1], "batch-002.sh")
    assert f"Batch 1 of {count} of plan" in printed["line"]
    # of a batch that was begun each group that is not in its new set is one, and none of the others
    cluster.map = applied(cluster.map, lines_of(folder / "batch-002.sh"))
    commands = read_results(out, "commands")
    groups = commands.loc[commands["batch"] == 2, "group"]
    lost = next(name for name in groups if name not in cluster.parts["osd"]["pg_upmap_items"])
    assert len(groups) > 1
    cluster.map = applied(cluster.map, [f"ceph osd rm-pg-upmap {lost}"])
    code, printed = verified(capsys, cluster, out, tmp_path / "second")
    assert (code, printed["in_force"], printed["next"]) == (1, [1], None)
    assert [each["group"] for each in printed["findings"]] == [lost]
    assert "begun, and not as expected: batch 2" in printed["line"]


def test_a_group_of_a_later_batch_that_somebody_else_moved_is_a_finding(place, cluster, capsys, tmp_path):
    commands = read_results(place / "out", "commands")
    groups = commands.loc[commands["batch"] == 2, "group"]
    moved = next(name for name in groups if name not in cluster.map.entries.items)
    raw = cluster.parts["raw"][moved]
    cluster.map = applied(cluster.map, lines_of(scripts(place) / "batch-001.sh"))
    # the other OSD of the host
    cluster.map = applied(cluster.map, [f"ceph osd pg-upmap-items {moved} {raw[0]} {raw[0] ^ 1}"])
    code, printed = verified(capsys, cluster, place / "out", tmp_path / "later")
    assert (code, printed["in_force"]) == (1, [1])
    assert [each["group"] for each in printed["findings"]] == [moved] and "plan again" in printed["line"]


def test_undo_of_all_says_that_it_is_for_all(place):
    folder = scripts(place)
    assert "only after all of them were run" in (folder / "undo.sh").read_text()
    assert "after all later ones that were run" in (folder / "batch-001-undo.sh").read_text()


def test_apply_says_how_far_it_came_where_a_command_is_refused(place, cluster, capsys):
    plan = read_results(place / "out", "commands")
    refused = plan.loc[plan["batch"] == 2, "group"].iloc[-1]
    cluster.failing = {refused: 1}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 1 of" in said and f"batch 2: {refused}: found trouble" in said
    assert "taken back by batch-002-undo.sh to batch-001-undo.sh" in said


def test_apply_asks_again_where_the_cluster_cannot_be_read(place, cluster, capsys):
    cluster.failing = {"pg dump": 1, "health": 1}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 0
    assert "are in force, read back" in capsys.readouterr().out and set(cluster.failing.values()) == {0}
    cluster.failing, cluster.lines = {"pg dump": 10**6}, []
    cluster.map = Cluster(cluster.parts).map
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "apply_wait_s=1e-9", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 0 of" in said and "did not take effect" in said and "pg dump: found trouble" in said
    assert "taken back by batch-001-undo.sh in" in said


def test_apply_looks_no_second_time_at_what_it_has_waited_for(place, cluster, capsys, monkeypatch):
    """Every second dump fails once commands are run: each is asked for again, and none fails in between."""
    asked = itertools.count()

    def failing(words):
        if cluster.lines and words[1:3] == ["pg", "dump"] and next(asked) % 2:
            raise UserError("pg dump: found trouble; allowed: none")
        return cluster(words)

    monkeypatch.setattr(live, "_run", failing)
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 0
    assert "are in force, read back" in capsys.readouterr().out and next(asked) > 2


@pytest.mark.parametrize("kind", [3, 1])  # erasure-coded, replicated
def test_groups_of_pools_that_a_plan_leaves_alone_are_awaited(
    place, cluster, capsys, monkeypatch, tmp_path, kind
):
    """A plan of one pool, beside a group of the other one that is recovered: before it is applied, then meanwhile."""
    out = tmp_path / "out"
    words = [str(place / "dumps"), "pools=e22", WITHIN, "figures=[]", f"out={out}", "--quiet"]
    assert main(["ceph", *words]) == 0
    clean, ill = (
        cluster.parts,
        cluster.parts | json.loads(json.dumps({name: cluster.parts[name] for name in ("osd", "groups")})),
    )
    ill["osd"]["pools"][1]["type"] = kind
    other = next(each for each in ill["groups"][1]["pg_map"]["pg_stats"] if each["pgid"] == "2.3")
    other["state"] = "active+undersized+degraded"
    cluster.parts = ill
    assert main(["ceph", f"verify={out}", "apply=true", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "not all groups are active+clean (2.3)" in said and cluster.lines == []
    code, printed = verified(capsys, cluster, out, tmp_path / "before")
    assert code == 1 and "1 group is not active+clean yet" in printed["line"]

    def later(words):
        cluster.parts = ill if any("pg-upmap" in line for line in cluster.lines) else clean
        return cluster(words)

    monkeypatch.setattr(live, "_run", later)
    assert main(["ceph", f"verify={out}", "apply=true", "apply_wait_s=1e-9", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 0 of" in said and "batch 1: not all groups are active+clean (2.3) within" in said


def test_pools_that_are_made_meanwhile_stop_nothing(place, cluster, capsys, tmp_path):
    """A pool of which there are no groups yet."""
    osd = cluster.parts["osd"]
    made_now = osd["pools"][0] | {"pool": 9, "pool_name": "new"}
    cluster.parts = cluster.parts | {"osd": osd | {"pools": [*osd["pools"], made_now]}}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 0
    assert "are in force, read back" in capsys.readouterr().out
    code, printed = verified(capsys, cluster, place / "out", tmp_path / "later")
    assert code == 0 and printed["next"] is None


def ill(code, message, count=0, error=False):
    return live.Health(False, {code: live.Check(message, error, count)})


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        (ill("OSDMAP_FLAGS", "noout flag(s) set"), ill("OSDMAP_FLAGS", "noout,nobackfill flag(s) set"), True),
        (ill("OSDMAP_FLAGS", "noout,noup flag(s) set"), ill("OSDMAP_FLAGS", "noout flag(s) set"), False),
        (ill("OSD_DOWN", "1 osds down", 1), ill("OSD_DOWN", "3 osds down", 3), True),
        (ill("OSD_DOWN", "3 osds down", 3), ill("OSD_DOWN", "3 osds down", 3), False),
        (ill("OSD_NEARFULL", "1 nearfull osd(s)", 1), ill("OSD_NEARFULL", "5 nearfull osd(s)", 5), True),
        (ill("OSD_DOWN", "1 osds down", 1), ill("OSD_DOWN", "1 osds down", 1, error=True), True),
        (ill("SLOW_OPS", "1 slow ops", 1), ill("SLOW_OPS", "9 slow ops", 9), False),
        (ill("OBJECT_MISPLACED", "1 %", 1), ill("OBJECT_MISPLACED", "9 %", 9), False),
    ],
)
def test_health_that_becomes_worse_under_the_same_code_is_seen(before, now, worse):
    assert bool(live._worse(before, now)) == worse


@pytest.mark.parametrize(
    ("vanishes", "ending"), [(False, "in force, read back"), (True, "Stopped after 1 of")]
)
def test_a_plan_that_is_applied_at_once_is_one_object(place, cluster, capsys, tmp_path, vanishes, ending):
    plan = read_results(place / "out", "commands")
    cluster.dropping = (plan.loc[plan["batch"] == 2, "group"].iloc[0],) if vanishes else ()
    words = [str(place / "dumps"), WITHIN, f"out={tmp_path}", "figures=[]", "apply=true", "apply_wait_s=1e-9"]
    assert main(["ceph", *words, "--json"]) == int(vanishes)
    (line,) = capsys.readouterr().out.splitlines()
    printed = json.loads(line)
    assert printed["job"] == "ceph" and len(printed["runs"]) == 1 and printed["exit_code"] == int(vanishes)
    assert ending in printed["applied"]["line"] and bool(printed["applied"]["findings"]) == vanishes
    assert cluster.lines


def test_rows_that_a_sweep_asks_for_apply_nothing(place, cluster, tmp_path):
    """Hydra's sweepers take their objective from the rows of what was done."""
    words = [str(place / "dumps"), WITHIN, f"out={tmp_path}", "figures=[]", "--quiet"]
    assert main(["ceph", *words]) == 0
    for more in (
        [*words, "apply=true"],
        [f"verify={place / 'out'}", "apply=true"],
        [f"collect={tmp_path / 'new'}"],
    ):
        with only_rows():
            assert main(["ceph", *more]) == 0
    assert cluster.lines == [] and not (tmp_path / "new").exists()


@pytest.mark.parametrize(("min_client", "said"), [("jewel", True), ("unknown", True), ("reef", False)])
def test_clients_are_required_only_where_older_ones_may_connect(
    place, parts, cluster, tmp_path, min_client, said
):
    required = {"require_min_compat_client": min_client}
    dumps = write(tmp_path / "dumps", parts | {"osd": parts["osd"] | required})
    out = tmp_path / "out"
    assert main(["ceph", str(dumps), WITHIN, f"out={out}", "figures=[]", "--quiet"]) == 0
    (folder,) = (out / "scripts").iterdir()
    for script in folder.glob("batch-???.sh"):
        assert (PREPARE in script.read_text().splitlines()) == said
    # what holds now counts, not what the dumps of the plan said
    cluster.parts = cluster.parts | {"osd": cluster.parts["osd"] | required}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 0
    assert (PREPARE in cluster.lines) == said and len(cluster.lines) > 1


def test_apply_stops_where_a_command_vanishes(place, cluster, capsys):
    plan = read_results(place / "out", "commands")
    second = plan.loc[plan["batch"] == 2, "group"].iloc[0]
    cluster.dropping = (second,)
    words = ["ceph", f"verify={place / 'out'}", "apply=true", "apply_wait_s=1e-9"]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert "Stopped after 1 of" in said and f"group {second}:" in said
    later = set(plan.loc[plan["batch"] > 2, "group"]) - set(plan.loc[plan["batch"] <= 2, "group"])
    assert later and not any(f" {group} " in f"{line} " for group in later for line in cluster.lines)


@pytest.mark.parametrize("sleeping", [False, True])
def test_apply_stops_where_somebody_else_changes_a_later_group(place, cluster, capsys, sleeping):
    """Items of the balancer, which the commands of the later batch do not take away; asleep they change no set."""
    plan = read_results(place / "out", "commands")
    ours = plan.loc[plan["batch"] == 1, "group"].iloc[-1]
    groups = plan.loc[plan["batch"] == 2, "group"]
    later = next(name for name in groups if name not in cluster.map.entries.items)
    raw = cluster.parts["raw"][later]
    to = raw[1] if sleeping else raw[0] ^ 1  # an OSD that the group has; the other one of the host
    cluster.after = {ours: [f"ceph osd pg-upmap-items {later} {raw[0]} {to}"]}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "apply_wait_s=1e-9"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 1 of" in said and "plan again" in said and f"group {later}:" in said
    assert not any(f" {later} " in f"{line} " for line in cluster.lines)


def test_apply_looks_at_every_batch_again(place, cluster, capsys):
    plan = read_results(place / "out", "commands")
    count = plan["batch"].max()
    groups = plan.loc[plan["batch"] < count, "group"]
    lost = next(name for name in groups if name not in cluster.map.entries.items)
    cluster.after = {plan.loc[plan["batch"] == count, "group"].iloc[-1]: [f"ceph osd rm-pg-upmap {lost}"]}
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "apply_wait_s=1e-9"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"Stopped after {count} of {count} batches" in said and "plan again" in said
    assert f"group {lost}: it has no entry" in said and "in force" not in said


def test_a_plan_that_is_not_worth_it_is_not_applied_unless_it_is_named(
    place, cluster, capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(recommend, "_NOTHING", 0.9)  # the plan saves less
    out = tmp_path / "out"
    words = ["ceph", str(place / "dumps"), WITHIN, f"out={out}", "figures=[]"]
    assert main([*words, "apply=true"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Nothing to change" in said and "Nothing was applied" in said and cluster.lines == []
    run = read_results(out, "runs").iloc[0]
    assert run["batch_count"] > 0
    assert main(["ceph", f"verify={out}", "apply=true"]) == 0 and cluster.lines == []
    assert main(["ceph", f"verify={out}", f"plan_run={run['run_id']}", "apply=true"]) == 0
    assert "are in force, read back" in capsys.readouterr().out and len(cluster.lines) > run["batch_count"]


@pytest.mark.parametrize("changed_s", [0.02, 0.005])
def test_a_plan_with_longer_latencies_than_now_is_none(place, monkeypatch, changed_s):
    options = CephOptions(dumps=str(place / "dumps"), service_s=0.01)
    case = read_case(options)
    now = read_probabilities(case.cluster, case.cluster.groups.osd)

    def told(_case, _service, takes):
        return PlanEstimate(0.01 if np.array_equal(takes, now) else changed_s, 0.1)

    monkeypatch.setattr("ecjax.studies.ceph.run.estimate", told)
    settings = Settings(Limits(0.05, np.inf), None, service_of(case, options), [], "mean")
    planned = planned_of(case, 0.12, settings)
    assert planned.latencies[-1].mean == min(0.01, changed_s)
    assert bool(planned.plan.sets) == bool(planned.batches) == (changed_s < 0.01)
    np.testing.assert_allclose(planned.plan.before, role_load(case.cluster, case.demand, {}))
    np.testing.assert_allclose(planned.plan.after, role_load(case.cluster, case.demand, planned.plan.sets))


@pytest.mark.parametrize(
    ("health", "line"),
    [
        (check("OSD_FULL", "1 full osd(s)", "HEALTH_ERR"), "health is HEALTH_ERR (OSD_FULL: 1 full osd(s))"),
        (check("OSDMAP_FLAGS", "noout,nobackfill flag(s) set"), "nobackfill is set, no data would move"),
    ],
)
def test_apply_begins_only_where_health_allows_it(place, cluster, capsys, health, line):
    cluster.health = health
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Stopped after 0 of" in said and line in said and cluster.lines == []


def test_apply_stops_where_health_becomes_worse(place, cluster, capsys):
    cluster.health, cluster.ill_after = check("OBJECT_MISPLACED", "3 % misplaced"), 1
    assert main(["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "batch 1: health has become worse (OSD_DOWN: 1 osds down)" in said
    plan = read_results(place / "out", "commands")
    assert set(cluster.map.entries.upmap) <= set(plan.loc[plan["batch"] == 1, "group"])


def test_the_function_plans_and_leaves_the_cluster_alone(place, cluster):
    with ecjax.ceph(place / "dumps", within=0.12) as results:
        same = read_results(place / "out", "runs").iloc[0]
        assert results.runs["max_over_mean"].iloc[0] == pytest.approx(same["max_over_mean"])
        assert set(results.plan.columns) >= {"group", "position", "osd", "before"}
    assert cluster.lines == []


def test_apply_refuses_another_cluster_and_other_sets(place, cluster, capsys):
    words = ["ceph", f"verify={place / 'out'}", "apply=true", "--quiet"]
    planned = set(read_results(place / "out", "plan")["group"])
    group = next(name for name in sorted(planned) if name not in cluster.map.entries.items)
    raw = cluster.parts["raw"][group]
    swapped = (raw[2], raw[1], raw[0], *raw[3:]) if len(raw) == 5 else (raw[1], raw[0], *raw[2:])
    cluster.map = applied(cluster.map, [f"ceph osd pg-upmap {group} {' '.join(map(str, swapped))}"])
    assert main(words) == 1
    assert "plan again" in capsys.readouterr().out and cluster.lines == []
    cluster.parts = cluster.parts | {"osd": cluster.parts["osd"] | {"fsid": "another"}}
    assert main(words) == 1
    assert "the cluster is another" in capsys.readouterr().out and cluster.lines == []


def test_what_if_and_moves(place, capsys):
    out = place / "moves"
    scenarios = "what_if=[osd.3,host:h1,slow:osd.2:3,fast_read:e22,code:e22:3+1,backfill:1e6]"
    words = [
        "ceph",
        str(place / "dumps"),
        WITHIN,
        "roles_only=false",
        "load=bytes",
        "speeds={hdd: 2, osd.1: 1}",
    ]
    assert main([*words, scenarios, "figures=[]", f"out={out}"]) == 0
    table = read_results(out, "scenarios").set_index(["scenario", "placement"])
    assert len(table) == 12
    assert (table["unavailable_share"] == 0).all() and table["estimated_mean_s"].isna().all()
    before = read_results(out, "runs")["max_over_mean_before"].iloc[0]
    assert table.loc[("slow:osd.2:3", "before"), "max_over_mean"] != pytest.approx(before)
    # all n are read, by the plan and without it
    fast = table.loc["fast_read:e22", "max_over_mean"]
    assert fast["before"] > 1
    assert (
        table.loc[("code:e22:3+1", "plan"), "max_over_mean"]
        < table.loc[("code:e22:3+1", "before"), "max_over_mean"]
    )
    assert "what if" in capsys.readouterr().out


def test_loads_before_and_after_are_relative_to_one_mean(tmp_path, capsys):
    """Loads 10 and 10 of speed 1 and 40 of speed 8, evenly 6, 6 and 48: the busiest OSD has 10, then 6."""
    parts = made(hosts=3, per_host=1, pools=((1, 2, 5),))
    parts["crush"]["devices"][2]["class"] = "ssd"
    reads = [(0, 6), (0, 4), (1, 6), (1, 4), (2, 40)]
    for later, dump in enumerate(parts["groups"]):
        for each, (first, rate) in zip(dump["pg_map"]["pg_stats"], reads, strict=True):
            each["up"] = each["acting"] = [first, *({0, 1, 2} - {first})]
            each["stat_sum"]["num_read"] = int(rate * SECONDS) * later
    dumps, out = write(tmp_path / "dumps", parts), tmp_path / "out"
    words = ["speeds={hdd: 1, ssd: 8}", "within=0", "max_misplaced=1", "figures=[]", f"out={out}"]
    assert main(["ceph", str(dumps), *words]) == 0
    table, mean = read_results(out, "runs").iloc[0], 25 / 3
    assert table["max_over_mean_before"] == pytest.approx(10 / mean)
    assert table["max_over_mean"] == pytest.approx(6 / mean) == pytest.approx(table["lower_bound"])
    assert table["gap"] == pytest.approx(0.0, abs=1e-9)
    osds = read_results(out, "osds").set_index("osd")
    np.testing.assert_allclose(osds["load_before"], np.array([10, 10, 5]) / mean)
    np.testing.assert_allclose(osds["load"], np.array([6, 6, 6]) / mean)
    batches = read_results(out, "batches")["max_over_mean"]
    np.testing.assert_allclose(batches.iloc[[0, -1]], [10 / mean, 6 / mean])
    # 10 / 6 times the reads until the busiest OSD has as much to do as now
    assert "serves 67 % more reads" in " ".join(capsys.readouterr().out.split())


def test_a_hot_pool_on_other_osds_hides_no_imbalance(tmp_path, capsys):
    """An index pool of one copy, with a hundred times the reads, on an OSD of another root."""
    parts = made(hosts=6, pools=((2, 2, 24), (1, 1, 1)))
    alone = write(tmp_path / "alone", made(hosts=6, pools=((2, 2, 24),)))
    parts["osd"]["pools"][1] |= {"type": 1, "size": 1, "min_size": 1, "pool_name": "index"}
    parts["osd"]["osds"].append({"osd": 12, "up": 1, "in": 1, "weight": 1})
    parts["crush"]["devices"].append({"id": 12, "name": "osd.12", "class": "ssd"})
    item = {"id": 12, "weight": 65536, "pos": 0}
    parts["crush"]["buckets"].append({"id": -90, "name": "fast", "type_name": "root", "items": [item]})
    reads = 0
    for later, dump in enumerate(parts["groups"]):
        stats = dump["pg_map"]["pg_stats"]
        stats[:24] = json.loads((alone / f"pg.{later}.json").read_text())["pg_map"]["pg_stats"]
        reads = sum(each["stat_sum"]["num_read"] for each in stats[:24]) - reads
        stats[24]["up"] = stats[24]["acting"] = [12]
    stats[24]["stat_sum"]["num_read"] = 100 * reads
    parts["groups"][0]["pg_map"]["pg_stats"][24]["stat_sum"]["num_read"] = 0
    dumps = write(tmp_path / "dumps", parts)
    for name, folder in (("without", alone), ("with", dumps)):
        assert main(["ceph", str(folder), WITHIN, "figures=[]", f"out={tmp_path / name}"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not of 1 other (osd.12; busiest: osd.12, with" in said.rpartition("ceph: 24 groups")[2]
    without, beside = (read_results(tmp_path / name, "runs").iloc[0] for name in ("without", "with"))
    assert (beside["counted_osds"], beside["osd_count"]) == (12, 13)
    for column in ("max_over_mean_before", "lower_bound", "max_over_mean"):
        assert beside[column] == pytest.approx(
            without[column], rel=0.05 if column == "max_over_mean" else 1e-6
        )
    osds = read_results(tmp_path / "with", "osds").set_index("osd")
    # 100 reads for each of the others, which are two of 24 shard reads of an OSD: 600 times their mean
    assert osds.loc[12, "load"] == osds.loc[12, "load_before"] == pytest.approx(600, rel=1e-6)


@pytest.mark.parametrize("roles_only", ["true", "false"])
def test_pools_on_osds_of_their_own_that_stay_uneven_are_named(tmp_path, capsys, roles_only):
    """Reads of OSDs 0 to 2: 200/s each, which is even. Of 3 to 5: 30, 20 and 10, evenly 20, and no plan sees it."""
    parts = made(hosts=6, per_host=1, pools=((1, 1, 6), (1, 1, 6)))
    (rule,) = parts["crush"]["rules"]
    for number, hosts in ((1, (-2, -3, -4)), (2, (-5, -6, -7))):
        items = [{"id": host, "weight": 65536, "pos": 0} for host in hosts]
        root = {"id": -90 - number, "name": f"r{number}", "type_name": "root", "items": items}
        parts["crush"]["buckets"].append(root)
        steps = [step | {"item": root["id"]} if step["op"] == "take" else step for step in rule["steps"]]
        parts["crush"]["rules"].append(rule | {"rule_id": 1 + number, "steps": steps})
        parts["osd"]["pools"][number - 1]["crush_rule"] = 1 + number
    sets = [(0, 1), (1, 2), (2, 0)] * 2 + [(3, 4), (3, 5), (3, 4), (4, 5), (4, 3), (5, 3)]
    for later, dump in enumerate(parts["groups"]):
        for place, (each, osds) in enumerate(zip(dump["pg_map"]["pg_stats"], sets, strict=True)):
            each["up"] = each["acting"] = list(osds)
            each["stat_sum"]["num_read"] = int((100 if place < 6 else 10) * SECONDS) * later
    words = [str(write(tmp_path / "dumps", parts)), f"roles_only={roles_only}", "figures=[]"]
    assert main(["ceph", *words, f"out={tmp_path / 'all'}"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Nothing to change" in said and "pool e11:" not in said
    assert (
        "pool e11-2: the busiest of its OSDs keeps 1.5 times the load of reads that are spread there at will"
        in said
    )
    assert "pools=e11-2 plans it alone" in said
    assert main(["ceph", *words, "pools=e11-2", f"out={tmp_path / 'alone'}"]) == 0
    run = read_results(tmp_path / "alone", "runs").iloc[0]
    assert run["max_over_mean_before"] == pytest.approx(1.5)
    assert run["max_over_mean"] == pytest.approx(1.0) and "alone" not in run["notes"]


def test_what_if_counts_bytes_where_loads_are_bytes(tmp_path):
    """All shard reads have the same size: loads in bytes are those in reads times that size, relatively the same."""
    dumps = write(tmp_path / "dumps", made(hosts=6, pools=((2, 2, 24),)))
    tables = {}
    for load in ("reads", "bytes"):
        words = [WITHIN, "what_if=[osd.3,backfill:1e7,code:e22:4+2]", "figures=[]", f"out={tmp_path / load}"]
        assert main(["ceph", str(dumps), f"load={load}", *words]) == 0
        tables[load] = read_results(tmp_path / load, "scenarios").set_index(["scenario", "placement"])
    reads, size = tables["reads"], tables["bytes"]
    usual = read_results(tmp_path / "bytes", "runs")["max_over_mean_before"].iloc[0]
    for name in ("osd.3", "backfill:1e7"):
        for column in ("max_over_mean", "load_ratio"):
            np.testing.assert_allclose(size.loc[name, column], reads.loc[name, column], rtol=1e-9)
    assert reads.loc[("backfill:1e7", "before"), "load_ratio"] > 1.05
    # of 4+2 twice as many shards are read as of 2+2, of half the size: the mean load doubles, or stays
    code = ("code:e22:4+2", "before")
    for table, times in ((reads, 2), (size, 1)):
        mean = table.loc[code, "load_ratio"] / table.loc[code, "max_over_mean"]
        assert mean == pytest.approx(times / usual)


def test_reads_of_pools_with_fast_read_are_work_beside_the_others(tmp_path, capsys):
    parts = made(hosts=6, pools=((2, 2, 24), (3, 2, 16)))
    parts["osd"]["pools"][1]["fast_read"] = True
    dumps, service_s = write(tmp_path / "dumps", parts), 0.002
    found = []
    for pools in (None, ["e22"]):
        options = CephOptions(dumps=str(dumps), service_s=service_s, pools=pools)
        case = read_case(options)
        service = service_of(case, options)
        takes = read_probabilities(case.cluster, case.cluster.groups.osd)
        found.append((estimate(case, service, takes), least_latency(case, service, roles_only=True)))
        line = "pools e32-2: latencies of their reads, the first k of n with fast_read, are not estimated"
        assert (line in service.notes) == (pools is None)
    # a pool that is not planned reads all n shards with fast_read, too
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
    words = ["pools=e32-2", "service_s=0.002", "what_if=osd.3", "figures=[]", f"out={tmp_path / 'out'}"]
    assert main(["ceph", str(dumps), *words, "objective=mean"]) == 2
    assert "objective=mean: found reads with fast_read only" in " ".join(capsys.readouterr().err.split())
    assert main(["ceph", str(dumps), *words]) == 0
    for dataset in ("runs", "batches", "scenarios"):
        assert read_results(tmp_path / "out", dataset)["estimated_mean_s"].isna().all()


@pytest.mark.parametrize(("min_size", "host", "one"), [(2, 0, 0), (3, 1, 0), (4, 1, 1)])
def test_groups_below_min_size_serve_nothing(tmp_path, min_size, host, one):
    """2+2 on four OSDs, two of them on one host: without it each group has 2 shards, without an OSD 3."""
    parts = made(hosts=4, per_host=1, pools=((2, 2, 8),))
    root, first, _, *others = parts["crush"]["buckets"]
    hosts = [{"id": number, "weight": 65536, "pos": 0} for number in (-2, -4, -5)]
    osds = [{"id": osd, "weight": 65536, "pos": osd} for osd in (0, 1)]
    parts["crush"]["buckets"] = [root | {"items": hosts}, first | {"items": osds}, *others]
    parts["crush"]["rules"][0]["steps"][2]["type"] = "osd"
    parts["osd"]["pools"][0]["min_size"] = min_size
    dumps, out = write(tmp_path / "dumps", parts), tmp_path / "out"
    words = ["what_if=[host:h0,osd.1,code:e22:2+1]", "figures=[]", f"out={out}"]
    assert main(["ceph", str(dumps), *words]) == 0
    table = read_results(out, "scenarios").set_index(["scenario", "placement"])["unavailable_share"]
    for name, share in (("host:h0", host), ("osd.1", one), ("code:e22:2+1", 0)):
        assert (table.loc[name] == share).all()


@pytest.mark.parametrize("load", ["reads", "bytes"])
def test_reads_of_other_pools_go_to_osds_that_are_up(tmp_path, load):
    parts = made(pools=((2, 2, 8), (2, 1, 8), (1, 1, 8)))
    parts["osd"]["pools"][2]["type"] = 1
    first, last = ({each["pgid"]: each for each in dump["pg_map"]["pg_stats"]} for dump in parts["groups"])

    def loads(down):
        """Of every OSD, group by group; reads are of 1 MiB."""
        found = np.zeros(8)
        for name, group in last.items():
            rate = (group["stat_sum"]["num_read"] - first[name]["stat_sum"]["num_read"]) / SECONDS
            k = 1 if name.startswith("3.") else 2
            there = [osd for osd in group["acting"] if osd not in down]
            found[there[:k]] += rate * (2**20 / k if load == "bytes" else 1)
        return found

    dumps, out = write(tmp_path / "dumps", parts), tmp_path / "out"
    words = ["pools=e22", f"load={load}", "what_if=[osd.3,host:h1]", "figures=[]", f"out={out}"]
    assert main(["ceph", str(dumps), *words]) == 0
    table = read_results(out, "scenarios").set_index(["scenario", "placement"])
    for name, down in (("osd.3", [3]), ("host:h1", [2, 3])):
        expected = np.delete(loads(down), down)
        row = table.loc[(name, "before")]
        assert row["max_over_mean"] == pytest.approx(expected.max() / expected.mean())
        assert row["load_ratio"] == pytest.approx(expected.max() / loads([]).max())


def test_what_an_osd_has_that_is_out_is_not_spread_in_the_least_possible(tmp_path):
    """Three OSDs with a read/s each, one of them out: its reads stay there, those of the others are even already."""
    parts = made(hosts=3, per_host=1, pools=((1, 2, 3),), equal=True)
    for dump in parts["groups"]:
        for place, each in enumerate(dump["pg_map"]["pg_stats"]):
            each["up"] = each["acting"] = [place, (place + 1) % 3, (place + 2) % 3]
    parts["osd"]["osds"][2]["in"] = 0
    dumps, out = write(tmp_path / "dumps", parts), tmp_path / "out"
    words = ["objective=mean", "service_s=0.01", "figures=[]", f"out={out}"]
    assert main(["ceph", str(dumps), *words]) == 0
    run = read_results(out, "runs").iloc[0]
    assert run["lower_bound"] == pytest.approx(1.0) == pytest.approx(run["max_over_mean"])
    assert run["gap"] == pytest.approx(0.0, abs=1e-9)


def test_what_takes_every_osd_down_serves_nothing(tmp_path):
    """One host with all OSDs; of these every group of 3+1 can spare one."""
    parts = made(hosts=4, per_host=1, pools=((3, 1, 8),))
    names = parts["crush"]["buckets"]
    parts["crush"]["buckets"] = [names[0] | {"items": [{"id": -2, "weight": 262144, "pos": 0}]}]
    parts["crush"]["buckets"].append(
        names[1] | {"items": [{"id": osd, "weight": 65536, "pos": osd} for osd in range(4)]}
    )
    parts["crush"]["rules"][0]["steps"][2]["type"] = "osd"
    dumps, out = write(tmp_path / "dumps", parts), tmp_path / "out"
    words = ["service_s=0.002", "what_if=[host:h0,osd.1]", "figures=[]", f"out={out}"]
    assert main(["ceph", str(dumps), *words]) == 0
    table = read_results(out, "scenarios").set_index(["scenario", "placement"])
    gone = table.loc["host:h0"]
    assert (gone["unavailable_share"] == 1).all()
    assert gone[["max_over_mean", "load_ratio", "estimated_mean_s", "estimated_p99_s"]].isna().all(axis=None)
    assert (table.loc["osd.1", "unavailable_share"] == 0).all() and table.loc["osd.1"].notna().all(axis=None)


@pytest.mark.slow
def test_the_least_latency_is_not_always_an_even_load(place):
    words = [
        "ceph",
        str(place / "dumps"),
        WITHIN,
        "service_s=0.01",
        "speeds={hdd: 1, osd.0: 0.25}",
        "figures=[]",
    ]
    means = {}
    for objective in ("load", "mean"):
        out = place / f"least-{objective}"
        assert main([*words, f"objective={objective}", f"out={out}"]) == 0
        means[objective] = read_results(out, "runs")["estimated_mean_s"].iloc[0]
    assert means["mean"] <= means["load"] * (1 + 1e-9)


def test_no_plan_is_faster_than_the_fastest_osds_without_waiting(tmp_path):
    dumps = write(tmp_path / "dumps", made(hosts=4, per_host=1, pools=((2, 1, 6),)))
    options = CephOptions(dumps=str(dumps), service_s=0.01, speeds={"hdd": 1.0, "osd.2": 0.2})
    case = read_case(options)
    service = service_of(case, options)
    least = least_latency(case, service, roles_only=True)
    # exponential times: the larger of two has mean a + b - 1 / (1/a + 1/b); each group takes the best pair of its OSDs
    groups, mean = case.cluster.groups, service.moments[0]
    best = [
        min(a + b - 1 / (1 / a + 1 / b) for a, b in itertools.combinations(mean[osds], 2))
        for osds in groups.osd.reshape(-1, 3)
    ]
    exact = np.average(best, weights=groups.rate)
    assert exact * 0.97 < least.mean <= exact
    assert least.mean < least.p99
    assert least_latency(case, service, roles_only=False).mean <= least.mean


@pytest.mark.slow
def test_latencies_where_service_times_are_told(place):
    out = place / "timed"
    words = ["ceph", str(place / "dumps"), WITHIN, "service_s=0.004", "what_if=slow:osd.2:2", "figures=[]"]
    assert main([*words, f"out={out}"]) == 0
    run = read_results(out, "runs").iloc[0]
    assert run["service_source"] == "service_s"
    assert 0.004 < run["estimated_mean_s"] < run["estimated_mean_before_s"] < run["estimated_p99_before_s"]
    assert 0.004 < run["least_mean_s"] < run["estimated_mean_s"]
    assert 0.004 < run["least_p99_s"] < run["estimated_p99_s"]
    batches = read_results(out, "batches").sort_values("batch")
    assert batches["estimated_mean_s"].iloc[-1] == pytest.approx(run["estimated_mean_s"])
    slow = read_results(out, "scenarios")
    assert (slow["estimated_mean_s"] > run["estimated_mean_s"]).all()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "dumps: found none; allowed: ecjax ceph DUMPS"),
        (
            ["nowhere"],
            "found nowhere, which is not there; allowed: key=value, or the path of one folder of dumps (ecjax "
            "ceph --collect says how to get one)",
        ),
        (["dumps=nowhere"], "dumps: found nowhere, which is not there"),
        (["{dumps}", "speeds={ssd: 2}"], "speeds: found ssd; allowed: device classes (hdd)"),
        (["{dumps}", "speeds={hdd: 0}"], "speeds: found hdd: 0"),
        (["{dumps}", "pools=rgw"], "pools: found rgw; allowed: e22, e32-2"),
        (["{dumps}", "what_if=osd.99"], "what_if: found osd.99; allowed: OSDs of the cluster"),
        (["{dumps}", "what_if=broken"], "what_if: found broken; allowed: osd.N"),
        (["{dumps}", "what_if=slow:osd.1:0"], "what_if: found slow:osd.1:0; allowed: osd.N"),
        (["{dumps}", "what_if=slow:osd.1:0.00"], "what_if: found slow:osd.1:0.00; allowed: osd.N"),
        (
            ["{dumps}", "load=bytes", "rates=equal"],
            "load=bytes: found rates=equal, of which no read has bytes; allowed: rates=measured, or load=reads",
        ),
        (
            ["{dumps}", "objective=p99"],
            "objective=p99: found no service times; allowed: with service_s=, complete dump_historic_ops among the "
            "dumps, or two perf dumps of an OSD",
        ),
        (["{dumps}", "plan_run=x"], "plan_run=x: found no verify="),
        (["{dumps}", "verify=nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_a_line(place, words, line, capsys, tmp_path):
    filled = [word.format(dumps=place / "dumps") if word == "{dumps}" else word for word in words]
    assert main(["ceph", *filled, f"out={tmp_path / 'out'}"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert line in said and "Traceback" not in said


OPERATION = {"description": "MOSDECSubOpRead(", "initiated_at": "2026-01-01T00:00:00.000000+0000"}
SCHEMA = {"osd": {"op_r": {"type": 10}}, "bluestore": {"read_lat": {"type": 5, "description": "read"}}}


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (
            {"osd.0.json": {"size": 20, "duration": 600, "ops": [OPERATION | {"type_data": {}}]}},
            "found no 'events' in a dump of release pacific",
        ),
        (
            {"osd.0.first.json": SCHEMA, "osd.0.last.json": SCHEMA},
            "found no 'avgcount' in a dump of release pacific",
        ),
    ],
)
def test_service_times_of_another_form_are_a_line(tmp_path, parts, capsys, files, line):
    dumps = write(tmp_path / "dumps", parts)
    for name, content in files.items():
        (dumps / name).write_text(json.dumps(content))
    assert main(["ceph", str(dumps), f"out={tmp_path / 'out'}"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert line in said and "Traceback" not in said


def test_what_was_refused_as_service_times_is_said(tmp_path, parts):
    dumps = write(tmp_path / "dumps", parts)
    full = {"size": 1, "duration": 600, "ops": [OPERATION | {"type_data": {}}]}
    (dumps / "osd.0.json").write_text(json.dumps(full))
    assert main(["ceph", str(dumps), WITHIN, "figures=[]", f"out={tmp_path / 'refused'}"]) == 0
    notes = read_results(tmp_path / "refused", "runs")["notes"].iloc[0]
    assert "dump_historic_ops of osd.0 (1 of 1)" in notes
    # of one OSD there are means
    for name, count in (("osd.0.first.json", 4), ("osd.0.last.json", 8)):
        counters = {"osd": {}, "bluestore": {"read_lat": {"avgcount": count, "sum": count * 0.002}}}
        (dumps / name).write_text(json.dumps(counters))
    assert main(["ceph", str(dumps), WITHIN, "figures=[]", f"out={tmp_path / 'means'}"]) == 0
    run = read_results(tmp_path / "means", "runs").iloc[0]
    assert run["service_source"] == "perf dump" and "11 of 12 OSDs have no two perf dumps" in run["notes"]


def test_scripts_of_more_batches_that_a_run_had_go(place, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(place / "out", out)
    (folder,) = (out / "scripts").iterdir()
    written = {each.name for each in folder.iterdir()}
    for name in ("batch-099.sh", "batch-099-undo.sh", "batch-099-expected.json", "diary.txt"):
        (folder / name).write_text("\n")
    assert main(["ceph", str(place / "dumps"), WITHIN, f"out={out}", "figures=[]", "--quiet"]) == 0
    assert {each.name for each in folder.iterdir()} == {*written, "diary.txt"}


def test_what_makes_a_plan_fail_is_said(place, tmp_path, monkeypatch, capsys):
    def fails(case, within, settings):
        if within < 0.1:
            raise ArithmeticError("no plan today")
        return planned_of(case, within, settings)

    monkeypatch.setattr("ecjax.studies.ceph.run.planned_of", fails)
    words = ["ceph", str(place / "dumps"), f"out={tmp_path / 'out'}", "figures=[loads]"]
    assert main([*words, "within=0.01"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "ceph: 1 run in" in said and "1 run: " in said and "no plan today" in said
    # beside one that does not
    assert main([*words, "within=[0.01,0.12]"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "40 groups of 2 pools on 12 OSDs" in said and "no plan today" in said and "nan" not in said
    changed = read_results(place / "out", "runs")["changed_groups"].iloc[0]
    assert f"Recommended: change {changed} of 40 groups" in said


def test_collect_prints_what_to_run(capsys):
    assert main(["ceph", "--collect"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("ceph ") == 6 and "sleep 60" in printed


def test_commands_that_fail_are_tried_again_and_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(live, "_POLL_S", 0.0)
    script = tmp_path / "ceph"
    script.write_text(
        f'echo x >> {tmp_path}/calls\n[ "$(wc -l < {tmp_path}/calls)" -ge 3 ] && echo "{{}}" || exit 1\n'
    )
    assert live._run(["sh", str(script)]) == "{}\n"
    # one that does not answer, too
    monkeypatch.setattr(live, "_TIMEOUT_S", 0.5)
    (tmp_path / "calls").unlink()
    script.write_text(
        f'echo x >> {tmp_path}/calls\n[ "$(wc -l < {tmp_path}/calls)" -ge 2 ] && echo "{{}}" || exec sleep 60\n'
    )
    assert live._run(["sh", str(script)]) == "{}\n"
    script.write_text("exec sleep 60\n")
    with pytest.raises(UserError, match="found no answer within 0.5 s"):
        live._run(["sh", str(script)])
    monkeypatch.setattr(live, "_TIMEOUT_S", 60)
    script.write_text("echo no monitor >&2; exit 1\n")
    assert main(["ceph", f"collect={tmp_path / 'dumps'}", f"ceph=sh {script}"]) == 2
    assert "found no monitor; allowed: a command that the cluster accepts" in " ".join(
        capsys.readouterr().err.split()
    )
    script.write_text("echo text\n")
    assert main(["ceph", f"collect={tmp_path / 'dumps'}", f"ceph=sh {script}"]) == 2
    assert "found no JSON of pg dump" in " ".join(capsys.readouterr().err.split())
    assert main(["ceph", f"collect={tmp_path / 'dumps'}", "ceph=/nowhere/ceph"]) == 2
    assert not (tmp_path / "dumps").exists()


def test_ceph_may_print_lines_before_json_and_infinity(tmp_path):
    """As Reef prints scores of its read balancer, and wrappers of ceph what they do."""
    script = tmp_path / "ceph"
    script.write_text(
        """echo 'dumped all'; echo '{"status": "HEALTH_OK", "checks": {}, "score":inf, "other":-nan}'\n"""
    )
    assert main(["ceph", f"collect={tmp_path / 'dumps'}", "wait_s=0", f"ceph=sh {script}"]) == 0
    assert {each.name for each in (tmp_path / "dumps").iterdir()} == set(COMMANDS)
    assert live.health_now(f"sh {script}") == live.Health(False, {})
