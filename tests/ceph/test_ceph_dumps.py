"""Dumps to clusters: formats, rates, failure domains; what is wrong with dumps, in a line."""

import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
from ceph_dumps import SECONDS, made, write

from ecjax.errors import UserError
from ecjax.rados.crush import UnknownStep, broken, rule_domains
from ecjax.rados.files import COMMANDS, read_dumps
from ecjax.rados.plan import demand_of, plan_of, role_load
from ecjax.rados.read import EQUAL, Reading, read_cluster, targets
from ecjax.rados.records import reads_per_osd
from ecjax.rados.times import incomplete, service_times


def cluster_of(tmp_path, parts, **reading):
    return read_cluster(read_dumps(write(tmp_path / "dumps", parts)), Reading(**reading))


def test_a_cluster_is_as_its_dumps_say(tmp_path):
    parts = made(items=2)
    cluster = cluster_of(tmp_path, parts)
    assert cluster.release == "pacific" and cluster.epoch == 50
    assert [pool.name for pool in cluster.pools] == ["e22"]
    stats = {each["pgid"]: each for each in parts["groups"][1]["pg_map"]["pg_stats"]}
    assert cluster.sets == {name: tuple(each["up"]) for name, each in stats.items()}
    first = {each["pgid"]: each for each in parts["groups"][0]["pg_map"]["pg_stats"]}
    rates = [
        (stats[name]["stat_sum"]["num_read"] - first[name]["stat_sum"]["num_read"]) / SECONDS
        for name in cluster.groups.ids
    ]
    np.testing.assert_allclose(cluster.groups.rate, rates)
    # a client read of 1 MiB takes half of it from each of two OSDs
    np.testing.assert_allclose(cluster.groups.read_bytes, 2**19)
    expected = np.zeros(8)
    for name, rate in zip(cluster.groups.ids, rates, strict=True):
        expected[list(cluster.sets[name][:2])] += rate
    np.testing.assert_allclose(reads_per_osd(cluster), expected)
    assert cluster.raw == parts["raw"]  # the items undone
    assert targets(cluster, 0).tolist() == [8.0] * 8
    assert cluster.host[3] == "h1" and cluster.device_class[3] == "hdd"


def test_files_are_told_by_content(tmp_path):
    parts = made()
    plain = cluster_of(tmp_path, parts)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.json.gz").write_bytes(gzip.compress(json.dumps(parts["osd"]).encode()))
    (other / "b.json").write_text(json.dumps(parts["groups"][1]["pg_map"]))  # as before Nautilus
    text = (
        json.dumps(parts["groups"][0])
        .replace('"pg_stats"', '"x": 1, "pg_stats"')
        .replace('"x": 1', '"x":inf')
    )
    (other / "c.json").write_text("dumped all\n" + text)  # Reef prints infinity so
    (other / "d.json.xz").write_bytes(lzma.compress(json.dumps(parts["crush"]).encode()))
    read = read_cluster(read_dumps(other))
    assert read.sets == plain.sets
    np.testing.assert_array_equal(read.groups.rate, plain.groups.rate)


def test_files_may_have_any_names(tmp_path):
    parts = made()
    plain = cluster_of(tmp_path, parts)
    other = tmp_path / "other"
    other.mkdir()
    (other / "osd_dump").write_text(json.dumps(parts["osd"]))
    (other / "pg.out").write_text("dumped all\n" + json.dumps(parts["groups"][0]))
    (other / "pg.bak").write_bytes(gzip.compress(json.dumps(parts["groups"][1]).encode()))
    (other / "crush").write_bytes(lzma.compress(json.dumps(parts["crush"]).encode()))
    (other / "README.md").write_text("what {these} are")
    (other / "osdmap").write_bytes(b"\0{}")
    (other / ".osd_dump.swp").write_text("{")
    dumps = read_dumps(other)
    read = read_cluster(dumps)
    assert read.sets == plain.sets and read.domains == plain.domains
    np.testing.assert_array_equal(read.groups.rate, plain.groups.rate)
    unknown = ["README.md: not a dump that is known", "osdmap: not a dump that is known"]
    assert [note for note in read.notes if "not a dump" in note] == unknown
    # what is no dump makes no other input
    (other / "README.md").write_text("what they are")
    assert read_dumps(other).sha256 == dumps.sha256


def test_of_several_dumps_the_newest_counts(tmp_path):
    parts = made()
    folder = write(tmp_path / "dumps", parts)
    assert not any("counts" in note for note in read_cluster(read_dumps(folder)).notes)
    parts["osd"]["epoch"] = 51
    parts["crush"]["devices"][3]["class"] = "ssd"
    parts["tree"]["nodes"][3]["crush_weight"] = 2.0
    # of the map the epoch counts, of the others the name
    for name, content in (("a", parts["osd"]), ("crush2", parts["crush"]), ("tree2", parts["tree"])):
        (folder / f"{name}.json").write_text(json.dumps(content))
    cluster = read_cluster(read_dumps(folder))
    assert (cluster.epoch, cluster.device_class[3], cluster.weight[3]) == (51, "ssd", 2.0)
    for printed_by, name in (("osd dump", "a"), ("osd crush dump", "crush2"), ("osd df tree", "tree2")):
        assert f"2 outputs of ceph {printed_by}: that in {name}.json counts" in cluster.notes


def test_copies_of_earlier_dumps_make_no_rates(tmp_path):
    """Of a week before, under names of copies: rates are those of the ten minutes between the others."""
    parts = made()
    plain = cluster_of(tmp_path, parts)
    assert not any("pg dump" in note for note in plain.notes)
    folder = tmp_path / "dumps"
    earlier = json.loads(json.dumps(parts["groups"][0]))
    earlier["pg_map"]["stamp"] = "2025-12-25T00:00:00.000000+0000"
    for group in earlier["pg_map"]["pg_stats"]:
        group["stat_sum"]["num_read"] = group["stat_sum"]["num_read_kb"] = 0
    for name in ("pg.0.json.bak", "pg.old"):
        (folder / name).write_text(json.dumps(earlier))
    cluster = read_cluster(read_dumps(folder))
    np.testing.assert_array_equal(cluster.groups.rate, plain.groups.rate)
    assert any(note.startswith("pg.0.json.bak, pg.old: left out") for note in cluster.notes)
    # one that has such a name as the others counts, which is said
    (folder / "pg.old").rename(folder / "old.json")
    cluster = read_cluster(read_dumps(folder))
    assert np.all(cluster.groups.rate < plain.groups.rate)
    assert any(
        "3 outputs of ceph pg dump: rates are those of the 7.01 days" in note for note in cluster.notes
    )


@pytest.mark.parametrize(
    ("state", "clean"),
    [
        ("active+clean+scrubbing+deep+repair", True),
        ("active+clean+inconsistent", False),
        ("active+clean+scrubbing+deep+inconsistent+repair", False),
    ],
)
def test_groups_that_are_scrubbed_are_clean(tmp_path, state, clean):
    parts = made()
    parts["groups"][1]["pg_map"]["pg_stats"][3]["state"] = state
    cluster = cluster_of(tmp_path, parts)
    assert cluster.groups.movable.tolist() == [clean or place != 3 for place in range(16)]


def test_a_state_file_of_another_balancer(tmp_path):
    parts = made()
    for place, groups in enumerate(parts["groups"]):
        state = {"stateversion": 1, "osd_dump": parts["osd"], "pg_dump": groups, "crush_dump": parts["crush"]}
        state |= {"osd_df_tree_dump": parts["tree"], "pool_dump": parts["pools"]}
        (tmp_path / f"state{place}.xz").write_bytes(lzma.compress(json.dumps(state).encode()))
    assert read_cluster(read_dumps(tmp_path)).sets == cluster_of(tmp_path, parts).sets


def _degraded(parts):
    for dump in parts["groups"]:
        for group in dump["pg_map"]["pg_stats"]:
            group["state"] = "active+undersized+degraded"


def _replicated(parts):
    parts["osd"]["pools"][0]["type"] = 1


def _plugin(parts):
    parts["osd"]["erasure_code_profiles"]["p1"]["plugin"] = "clay"


def _other_cluster(parts):
    parts["osd"]["osds"].pop()


def _later_epoch(parts):
    parts["groups"][1]["pg_map"]["pg_stats"][0]["reported_epoch"] = 90


def _other_pools(parts):
    parts["pools"][0]["pool_name"] = "rgw"


def _few_groups(parts):
    parts["groups"][1]["pg_map"]["pg_stats"].pop()


def _same_time(parts):
    parts["groups"][0]["pg_map"]["stamp"] = parts["groups"][1]["pg_map"]["stamp"]


def _no_reads(parts):
    parts["groups"][0]["pg_map"]["pg_stats"] = parts["groups"][1]["pg_map"]["pg_stats"]


def _other_json(parts):
    for group in parts["groups"][1]["pg_map"]["pg_stats"]:
        del group["stat_sum"]["num_read"]


def _k_of_zero(parts):
    parts["osd"]["erasure_code_profiles"]["p1"]["k"] = "0"


def _heavy(parts):
    parts["tree"]["nodes"][3]["crush_weight"] = 1e308


def _many_reads(parts):
    parts["groups"][1]["pg_map"]["pg_stats"][2]["stat_sum"]["num_read_kb"] = 1e308


def _large_id(parts):
    parts["osd"]["osds"][3]["osd"] = 1e308


def _upmap_to_nothing(parts):
    parts["osd"]["pg_upmap_items"] = [{"pgid": "1.0", "mappings": [{"from": 0, "to": {}}]}]


def _no_map(parts):
    parts["groups"][1]["pg_map"] = -1


def _no_time(parts):
    parts["groups"][0]["pg_map"]["stamp"] = "yesterday at noon"


def _twice(parts):
    parts["osd"]["osds"].append(parts["osd"]["osds"][3] | {"in": 0})


def _no_bytes(parts):
    parts["groups"][1]["pg_map"]["pg_stats"][2]["stat_sum"]["num_bytes"] = float("nan")


def _no_weights(parts):
    for node in parts["tree"]["nodes"]:
        node["crush_weight"] = 0


@pytest.mark.parametrize(
    ("spoil", "line"),
    [
        (_twice, "found osd.3 twice in the osd dump; allowed: once"),
        (_no_bytes, "group 1.2: found num_bytes nan; allowed: a number of bytes"),
        (_no_weights, "found no OSD that is up, in and of a weight above 0"),
        (_no_time, "yesterday"),
        (_k_of_zero, "pool e22: found k=0 of size 4; allowed: k from 1 to size - 1"),
        (_heavy, "osd.3: found weight 1e+308; allowed: 0 to 1e+06"),
        (_many_reads, "found num_read_kb 1e+308 in a dump of release pacific"),
        (_large_id, "in a dump of release pacific"),
        (_upmap_to_nothing, "in a dump of release pacific"),
        (_no_map, "in a dump of release unknown"),
        (_degraded, "found no group that is active+clean"),
        (_replicated, "found no erasure-coded pool that can be planned (replicated: e22)"),
        (_plugin, "found no erasure-coded pool"),
        (_other_cluster, "found osd.7 in the pg dump and not in the osd dump"),
        (_later_epoch, "found a pg dump of epoch 90 beside an osd dump of epoch 50"),
        (_other_pools, "found pool 1 as e22 and as rgw"),
        (_few_groups, "found 15 groups in the pg dump of 16"),
        (_same_time, "allowed: of different times"),
        (_no_reads, "found no reads between the two pg dumps"),
        (_other_json, "found no 'num_read' in a dump of release pacific"),
    ],
)
def test_what_cannot_be_planned_is_a_line(tmp_path, spoil, line):
    parts = made()
    spoil(parts)
    with pytest.raises(UserError, match=".") as caught:
        cluster_of(tmp_path, parts)
    text = str(caught.value)
    assert line in text and "\n" not in text and text.count("found") == 1


def test_a_bucket_below_itself_keeps_shards_where_they_are(tmp_path):
    parts = made()
    parts["crush"]["buckets"][2]["items"].append({"id": -1, "weight": 1, "pos": 9})
    cluster = cluster_of(tmp_path, parts)
    assert cluster.domains == (None,) and any("below itself" in note for note in cluster.notes)


def test_what_is_wrong_with_groups_and_osds_is_a_note(tmp_path):
    parts = made()
    stats = parts["groups"][1]["pg_map"]["pg_stats"]
    stats[2]["stat_sum"]["num_bytes"] = -5
    parts["osd"]["osds"][1]["primary_affinity"] = 0.0
    a, b = stats[4]["up"][:2]
    for osds in (stats[4]["up"], stats[4]["acting"]):
        osds[1] = a ^ 1  # the other OSD of the same host
    cluster = cluster_of(tmp_path, parts)
    text = "\n".join(cluster.notes)
    assert "1 group counts fewer than 0 bytes (1.2)" in text and cluster.groups.bytes.min() == 0
    assert "1 group breaks the CRUSH rule of the pool (1.4; 1.4: two shards in one host)" in text
    assert "primary_affinity of 1 OSD is not 1 (osd.1)" in text


def test_groups_with_osds_that_are_out_or_down_are_a_note(tmp_path):
    parts = made()
    parts["osd"]["osds"][1]["in"] = 0
    parts["osd"]["osds"][6]["up"] = 0
    touched = sum(bool({1, 6} & set(each["up"])) for each in parts["groups"][1]["pg_map"]["pg_stats"])
    cluster = cluster_of(tmp_path, parts)
    line = f"{touched} groups have OSDs that are down, out or of weight 0 (osd.1, osd.6): planned around"
    assert any(note.startswith(line) for note in cluster.notes)


def test_rules_that_are_not_understood_say_why(tmp_path):
    parts = made()
    parts["osd"]["pools"][0]["crush_rule"] = 77
    note = (
        "its CRUSH rule is not understood (rule 77 is not in the CRUSH dump): its shards stay on their OSDs"
    )
    assert any(each.endswith(note) for each in cluster_of(tmp_path, parts).notes)


def test_rules_of_several_roots_are_planned_around(tmp_path):
    """Positions 0 to 3 are below one root and 4 and 5 below another: the monitor drops a swap between them."""
    parts = made(hosts=6, pools=((4, 2, 16), (2, 2, 16)))
    for name, number, hosts in (("dc1", -90, range(4)), ("dc2", -91, range(4, 6))):
        items = [{"id": -2 - host, "weight": 131072, "pos": 0} for host in hosts]
        parts["crush"]["buckets"].append(
            {"id": number, "name": name, "type_name": "datacenter", "items": items}
        )
    steps = [
        step
        for root, count in ((-90, 4), (-91, 2))
        for step in (
            {"op": "take", "item": root},
            {"op": "chooseleaf_indep", "num": count, "type": "host"},
            {"op": "emit"},
        )
    ]
    parts["crush"]["rules"].append({"rule_id": 2, "rule_name": "two", "steps": steps})
    parts["osd"]["pools"][0]["crush_rule"] = 2
    for dump in parts["groups"]:
        for each in dump["pg_map"]["pg_stats"][:16]:
            each["up"] = each["acting"] = sorted(each["up"])
    cluster = cluster_of(tmp_path, parts)
    assert cluster.domains[0] is None and cluster.positions_bound == (True, False)
    note = "pool e42: its CRUSH rule is not understood (step take after emit): planned around, not changed"
    assert note in cluster.notes
    for tolerance in (None, 2):
        plan = plan_of(cluster, demand_of(cluster, np.ones(12), primary=0.5), 0.01, tolerance)
        assert plan.sets and all(name.startswith("2.") for name in plan.sets)
    alone = cluster_of(tmp_path / "alone", parts, pools=("e42",))
    plan = plan_of(alone, demand_of(alone, np.ones(12)), 0.01)
    assert not plan.sets and plan.after.max() == plan.before.max() == plan.roles.bound


def test_numbers_may_be_text(tmp_path):
    parts = made()
    pool = parts["osd"]["pools"][0]
    pool["pg_num"], pool["size"] = "16", "4"
    assert cluster_of(tmp_path, parts).pools[0].group_count == 16


def test_a_degraded_group_reads_the_first_k_that_are_there(tmp_path):
    parts = made()
    stats = parts["groups"][1]["pg_map"]["pg_stats"]
    held = list(stats[4]["up"])
    for osds in (stats[4]["up"], stats[4]["acting"]):
        osds[1] = 2147483647
    cluster = cluster_of(tmp_path, parts)
    rate = cluster.groups.rate[4]
    loads = reads_per_osd(cluster)
    held_loads = reads_per_osd(cluster_of(tmp_path / "whole", made()))
    change = np.zeros(8)
    change[held[1]] -= rate
    change[held[2]] += rate
    np.testing.assert_allclose(loads - held_loads, change, atol=1e-9)


def without_first(parts, place):
    """Leave the first position of a group of the later dump empty; its set as it was."""
    group = parts["groups"][1]["pg_map"]["pg_stats"][place]
    held = list(group["up"])
    for osds in (group["up"], group["acting"]):
        osds[0] = 2147483647
    return held


def test_the_first_osd_that_is_there_is_the_primary(tmp_path):
    parts = made()
    held = without_first(parts, 4)
    cluster, whole = cluster_of(tmp_path, parts), cluster_of(tmp_path / "whole", made())
    rate = cluster.groups.rate[4]
    loads, held_loads = (
        role_load(each, demand_of(each, np.ones(8), primary=0.5), {}) for each in (cluster, whole)
    )
    # the second is read as before, and leads; the third is read in place of the first, which led
    change = np.zeros(8)
    change[held[:3]] = [-1.5 * rate, 0.5 * rate, rate]
    np.testing.assert_allclose(loads - held_loads, change, atol=1e-9)


def test_a_degraded_group_of_another_pool_reads_the_first_that_are_there(tmp_path):
    pools = ((2, 2, 8), (2, 1, 8))
    parts = made(pools=pools)
    held = without_first(parts, 8 + 3)
    cluster = cluster_of(tmp_path, parts, pools=("e22",))
    whole = cluster_of(tmp_path / "whole", made(pools=pools), pools=("e22",))
    first, last = (dump["pg_map"]["pg_stats"][8 + 3]["stat_sum"]["num_read"] for dump in parts["groups"])
    change = np.zeros(8)
    change[[held[0], held[2]]] = np.array([-1, 1]) * (last - first) / SECONDS
    np.testing.assert_allclose(cluster.background - whole.background, change, atol=1e-9)


def test_lists_that_are_no_pools_are_a_note(tmp_path):
    parts = made()
    parts["pools"] = [5]
    assert any("not a dump" in note for note in cluster_of(tmp_path, parts).notes)


def test_the_map_is_collected_after_the_groups():
    assert list(COMMANDS.values())[-1] == "osd dump" and list(COMMANDS)[:2] == [
        "pg_dump.0.json",
        "pg_dump.1.json",
    ]


def test_pools_that_are_not_planned_are_load_that_stays(tmp_path):
    parts = made(pools=((2, 2, 8), (2, 1, 8), (1, 1, 8)))
    parts["osd"]["pools"][2]["type"] = 1
    cluster = cluster_of(tmp_path, parts, pools=("e22",))
    first, last = ({each["pgid"]: each for each in dump["pg_map"]["pg_stats"]} for dump in parts["groups"])
    expected = np.zeros(8)
    for name, group in last.items():
        rate = (group["stat_sum"]["num_read"] - first[name]["stat_sum"]["num_read"]) / SECONDS
        if not name.startswith("1."):
            expected[group["acting"][: 2 if name.startswith("2.") else 1]] += rate
    np.testing.assert_allclose(cluster.background, expected)
    assert any("count as load that stays" in note for note in cluster.notes)
    # a read of 1 MiB is two halves of one erasure-coded pool, and one piece of the replicated one
    assert 2**19 * expected.sum() < cluster.background_bytes.sum() < 2**20 * expected.sum()
    np.testing.assert_allclose(demand_of(cluster, np.ones(8)).base, expected)
    np.testing.assert_allclose(demand_of(cluster, np.ones(8), "bytes").base, cluster.background_bytes)


def test_reads_of_groups_without_counted_ones_have_the_bytes_of_their_pool(tmp_path):
    """Reads of 1 MiB of 2+2 are halves, those of 4 MiB of 2+1 are 2 MiB; one group of each pool is new."""
    parts = made(pools=((2, 2, 8), (2, 1, 8)))
    first, last = (dump["pg_map"]["pg_stats"] for dump in parts["groups"])
    for each, early in zip(last[8:], first[8:], strict=True):
        reads = each["stat_sum"]["num_read"] - early["stat_sum"]["num_read"]
        each["stat_sum"]["num_read_kb"] = early["stat_sum"]["num_read_kb"] + 4096 * reads
    del first[8], first[0]
    cluster = cluster_of(tmp_path, parts)
    assert np.isnan(cluster.groups.read_bytes[[0, 8]]).all()
    size = np.repeat([2.0**19, 2.0**21], 8)
    np.testing.assert_allclose(demand_of(cluster, np.ones(8), "bytes").work, cluster.groups.rate * size)


def test_an_osd_that_is_in_no_crush_map_yet_takes_nothing(tmp_path):
    parts = made(hosts=8, pools=((2, 2, 48),))
    parts["osd"]["osds"].append(parts["osd"]["osds"][0] | {"osd": 16})
    cluster = cluster_of(tmp_path, parts)
    assert cluster.weight[16] == 0 and not cluster.usable[16]
    plan = plan_of(cluster, demand_of(cluster, np.ones(17)), 0.05, tolerance=3)
    assert plan.sets and not any(16 in osds for osds in plan.sets.values())


def test_items_that_go_on_from_each_other_are_in_effect(tmp_path):
    """(a, b), (b, c) in this order: the position of a is that of c; in the other order it would be that of b."""
    parts = made(hosts=8)
    group = parts["groups"][1]["pg_map"]["pg_stats"][5]
    held = group["up"]
    last = held[0] ^ 1  # the other OSD of the same host
    first, between = [osd for osd in range(16) if osd // 2 not in {each // 2 for each in held}][:2]
    group["up"] = group["acting"] = [last, *held[1:]]
    pairs = [(first, between), (between, last)]
    for name, listed, doubtful in (("chained", pairs, False), ("reversed", pairs[::-1], True)):
        mappings = [{"from": a, "to": b} for a, b in listed]
        parts["osd"]["pg_upmap_items"] = [{"pgid": "1.5", "mappings": mappings}]
        assert any("upmap entries" in note for note in cluster_of(tmp_path / name, parts).notes) == doubtful


def test_own_sets_of_another_time_are_not_used(tmp_path):
    parts = made(items=1)
    sets = {name: {"raw": list(osds), "up": list(osds)} for name, osds in parts["raw"].items()}
    folder = write(tmp_path / "dumps", parts)
    (folder / "mapping.json").write_text(json.dumps(sets))
    assert not any("another time" in note for note in read_cluster(read_dumps(folder)).notes)
    sets["1.5"]["raw"].reverse()
    (folder / "mapping.json").write_text(json.dumps(sets))
    cluster = read_cluster(read_dumps(folder))
    assert any("another time" in note for note in cluster.notes) and cluster.raw == parts["raw"]


def test_missing_pieces(tmp_path):
    parts = made()
    with pytest.raises(UserError, match="found one pg dump; allowed: two.*rates=equal"):
        read_cluster(read_dumps(write(tmp_path / "one", parts, ["pg.0"])))
    equal = read_cluster(read_dumps(tmp_path / "one"), Reading(EQUAL))
    assert set(equal.groups.rate) == {1.0}
    with pytest.raises(UserError, match="found no ceph osd dump"):
        read_dumps(write(tmp_path / "two", parts, ["osd"]))
    with pytest.raises(UserError, match="not there"):
        read_dumps(tmp_path / "three")
    without = read_cluster(read_dumps(write(tmp_path / "four", parts, ["crush"])))
    assert without.domains == (None,) and "roles_only" in without.notes[0]
    (tmp_path / "one" / "x.json").write_text("{")
    with pytest.raises(UserError, match="allowed: JSON"):
        read_dumps(tmp_path / "one")


def test_what_is_doubtful_is_a_note_and_planned_around(tmp_path):
    parts = made(pools=((2, 2, 16), (2, 1, 8)), items=1)
    parts["osd"]["pools"][1]["fast_read"] = True
    parts["osd"]["pg_upmap_items"].append({"pgid": "1.5", "mappings": [{"from": 90, "to": 91}]})
    for dump in parts["groups"]:
        stats = dump["pg_map"]["pg_stats"]
        stats[3]["state"] = "active+remapped+backfilling"
    parts["groups"][1]["pg_map"]["pg_stats"][4]["stat_sum"]["num_read"] = 0
    cluster = cluster_of(tmp_path, parts)
    text = "\n".join(cluster.notes)
    assert "1 group moves or is degraded (1.3: active+remapped+backfilling)" in text
    assert "1 group counts fewer reads than before" in text and "(1.4:" in text
    assert "fast_read" in text and "1 group has upmap entries that are not" in text
    plan = plan_of(cluster, demand_of(cluster, np.ones(8)), 0.01)
    assert plan.sets and "1.3" not in plan.sets and all(name.startswith("1.") for name in plan.sets)


def test_items_on_a_pg_upmap_are_judged_with_it(tmp_path):
    parts = made()
    held = parts["groups"][1]["pg_map"]["pg_stats"][5]["up"]
    other = held[0] ^ 1  # the other OSD of the same host
    upmap, up = [held[1], held[0], *held[2:]], [held[1], other, *held[2:]]
    parts["osd"]["pg_upmap"] = [{"pgid": "1.5", "osds": upmap}]
    parts["osd"]["pg_upmap_items"] = [{"pgid": "1.5", "mappings": [{"from": held[0], "to": other}]}]
    for name, found, doubtful in (("both", up, False), ("one", upmap, True)):
        group = parts["groups"][1]["pg_map"]["pg_stats"][5]
        group["up"] = group["acting"] = found
        text = "\n".join(cluster_of(tmp_path / name, parts).notes)
        assert ("1 group has upmap entries that are not, or not wholly, in effect (1.5)" in text) == doubtful
        assert ("upmap entries" in text) == doubtful


def test_domains_of_rules():
    parts = made(hosts=4, per_host=2)
    domains = rule_domains(parts["crush"], 1)
    assert broken(domains, (0, 2, 4, 6)) is None
    assert broken(domains, (0, 1, 4, 6)) == "two shards in one host"
    assert broken(domains, (0, 2, 4, 99)) == "osd.99 is outside default"
    steps = parts["crush"]["rules"][0]["steps"]
    steps[2:3] = [
        {"op": "choose_indep", "num": 2, "type": "host"},
        {"op": "chooseleaf_indep", "num": 2, "type": "osd"},
    ]
    two = rule_domains(parts["crush"], 1)
    assert broken(two, (0, 1, 4, 5)) is None
    assert broken(two, (0, 1, 4, 6)) == "3 of type host, the rule takes 2"
    steps[1]["item"] = -2  # only the first host
    assert rule_domains(parts["crush"], 1).allowed == {0, 1}
    steps.insert(2, {"op": "choosemsr", "num": 0, "type": "osd"})
    with pytest.raises(UnknownStep, match="step choosemsr"):
        rule_domains(parts["crush"], 1)


def operation(second, served_s=0.002, what="MOSDECSubOpRead(2.31s0 71/31 ECSubRead(tid=1"):
    time = f"2026-01-01T00:00:{second:02d}.000000+0000"
    done = f"2026-01-01T00:00:{second:02d}.{round(served_s * 1e6):06d}+0000"
    events = [
        {"event": "reached_pg", "time": time},
        {"event": "done", "time": done, "duration": 4294967295.99},
    ]
    return {"description": what, "initiated_at": time, "type_data": {"events": events}}


def test_full_histories_are_no_samples():
    whole = {
        "size": 20,
        "duration": 600,
        "ops": [operation(s) for s in range(5)] + [operation(6, what="osd_op(")],
    }
    full = {"size": 5, "duration": 600, "ops": [operation(s) for s in range(5)]}
    long = {"size": 20, "duration": 4, "ops": [operation(s) for s in range(5)]}
    assert incomplete(whole) is None and incomplete(full) == "5 of 5" and incomplete(long) == "4 s of 4 s"
    counters = [{"bluestore": {"read_lat": {"avgcount": n, "sum": n * 0.25}}} for n in (4, 8)]
    other = {"osd": {"op_r_latency_in_bytes_histogram": {}}, "bluestore": {}}  # perf histogram dump
    times = service_times({0: whole, 1: full}, {0: [other, *counters, other], 1: counters[:1]})
    assert times.samples == {0: (0.002,) * 5} and times.means == {0: 0.25}
    assert "osd.1 (5 of 5)" in times.notes[0] and "refused" in times.notes[0]


DUMPS = os.environ.get("ECJAX_CEPH_DUMPS", "")


@pytest.mark.skipif(
    not DUMPS, reason="ECJAX_CEPH_DUMPS names no folder with the recorded dumps small and large"
)
@pytest.mark.parametrize(
    ("name", "reading", "before", "after"),
    [
        ("large", Reading(), 1.780, 1.010),
        ("large", Reading(EQUAL), 1.732, 1.013),
        ("large", Reading(EQUAL, ("e42",)), 1.758, 1.0547),
        ("large", Reading(EQUAL, ("e83",)), 1.743, 1.014),
        ("small", Reading(EQUAL), 1.500, 1.042),
    ],
)
def test_recorded_clusters(name, reading, before, after):
    cluster = read_cluster(read_dumps(Path(DUMPS) / name), reading)
    plan = plan_of(cluster, demand_of(cluster, np.ones(len(cluster.osds))), 0.01)
    assert plan.before.max() / plan.before.mean() == pytest.approx(before, abs=5e-4)
    assert plan.after.max() / plan.after.mean() <= after
    assert plan.shards == plan.roles.copies <= 1.1 * plan.roles.copies_bound
