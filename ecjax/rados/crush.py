"""CRUSH rules as failure domains: which OSDs a set may have, and how many shards a host or rack may hold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ecjax.rados.records import NO_OSD, Cluster, Domains, Level

_SETTINGS = "set_"  # steps that change how hard CRUSH tries
_OSD = "osd"


class UnknownStep(ValueError):
    """A rule has a step that is not understood; the text names it."""


class Tree(NamedTuple):
    """Buckets of a CRUSH map by id; OSDs have ids from 0, buckets below 0."""

    children: Mapping[int, tuple[int, ...]]
    kind: Mapping[int, str]
    name: Mapping[int, str]


def tree_of(crush: Mapping[str, Any]) -> Tree:
    """The buckets of ``ceph osd crush dump``, shadow buckets of device classes included."""
    buckets = crush["buckets"]
    return Tree(
        {each["id"]: tuple(item["id"] for item in each["items"]) for each in buckets},
        {each["id"]: each["type_name"] for each in buckets},
        {each["id"]: each["name"] for each in buckets},
    )


def _check_tree(tree: Tree) -> None:
    """Refuse a map in which a bucket is below itself.

    Raises:
        UnknownStep: one is.
    """
    above = set[int]()
    cleared = set[int]()

    def descend(bucket: int) -> None:
        if bucket >= 0 or bucket in cleared:
            return
        if bucket in above:
            raise UnknownStep(f"bucket {bucket} is below itself")
        above.add(bucket)
        for child in tree.children.get(bucket, ()):
            descend(child)
        above.remove(bucket)
        cleared.add(bucket)

    for bucket in tree.children:
        descend(bucket)


def osds_below(tree: Tree, bucket: int) -> list[int]:
    """Ids of the OSDs at or below a bucket."""
    if bucket >= 0:
        return [bucket]
    return [osd for child in tree.children.get(bucket, ()) for osd in osds_below(tree, child)]


def domain_of(tree: Tree, root: int, kind: str) -> dict[int, int]:
    """For every OSD below a root: the bucket of a type above it, or itself for type osd.

    Raises:
        UnknownStep: an OSD has none.
    """
    if kind == _OSD:
        return {osd: osd for osd in osds_below(tree, root)}
    domains: dict[int, int] = {}

    def descend(bucket: int, above: int | None) -> None:
        if bucket >= 0:
            if above is None:
                raise UnknownStep(f"osd.{bucket} has no {kind} above it")
            domains[bucket] = above
            return
        inside = bucket if tree.kind.get(bucket) == kind else above
        for child in tree.children.get(bucket, ()):
            descend(child, inside)

    descend(root, None)
    return domains


def rule_domains(crush: Mapping[str, Any], rule_id: int) -> Domains:
    """What a rule demands.

    ``take R`` allows only OSDs under R; ``chooseleaf_indep a type T`` puts a shard into each of its Ts; a
    ``choose_indep b type U`` before it takes at most b Us, with a shards in each.

    Args:
        crush: ``ceph osd crush dump``.
        rule_id: of the pool.

    Raises:
        UnknownStep: the rule is not there, or has a step, or an order of steps, that is not understood.
    """
    rule = next((each for each in crush["rules"] if each["rule_id"] == rule_id), None)
    if rule is None:
        raise UnknownStep(f"rule {rule_id} is not in the CRUSH dump")
    tree, root, levels, emitted = tree_of(crush), None, list[Level](), False
    _check_tree(tree)
    for step in rule["steps"]:
        operation = step["op"]
        if operation.startswith(_SETTINGS):
            continue
        if emitted:
            raise UnknownStep(f"step {operation} after emit")
        if operation == "take" and root is None:
            root = int(step["item"])
        elif operation in ("choose_indep", "chooseleaf_indep") and root is not None:
            leaf = operation == "chooseleaf_indep" or step["type"] == _OSD
            most = max(int(step["num"]), 0)
            levels.append(Level(step["type"], domain_of(tree, root, step["type"]), most, leaf, int(leaf)))
        elif operation == "emit" and levels and levels[-1].one_each:
            emitted = True
        else:
            raise UnknownStep(f"step {operation}")
    if root is None or not emitted:
        raise UnknownStep("no take ... emit")
    # a step's number counts within each domain of the one before it
    shards = 1
    for place in reversed(range(len(levels) - 1)):
        shards *= levels[place + 1].most
        if not levels[place].one_each:
            levels[place] = levels[place]._replace(shards=shards)
    if len(levels) > 1:
        levels[-1] = levels[-1]._replace(most=0)
    return Domains(tree.name.get(root, str(root)), frozenset(osds_below(tree, root)), tuple(levels))


def broken(domains: Domains, osds: Sequence[int] | Iterable[int]) -> str | None:
    """Why a set breaks a rule, in words; None where it does not.

    Args:
        domains: of the pool's rule.
        osds: of the set; positions without one do not count.
    """
    ids = [osd for osd in osds if osd != NO_OSD]
    if len(set(ids)) < len(ids):
        return "an OSD twice"
    outside = [osd for osd in ids if osd not in domains.allowed]
    if outside:
        return f"osd.{outside[0]} is outside {domains.root}"
    for level in domains.levels:
        buckets = [level.domain_of[osd] for osd in ids]
        distinct = len(set(buckets))
        if level.one_each and distinct < len(buckets):
            return f"two shards in one {level.kind}"
        if level.most and distinct > level.most:
            return f"{distinct} of type {level.kind}, the rule takes {level.most}"
    return None


def has_room(level: Level, osd: int, others: Iterable[int]) -> bool:
    """Whether the domain of an OSD holds fewer shards than CRUSH puts there.

    Args:
        level: of the pool's rule.
        osd: that is to hold a shard more.
        others: OSDs of the set without it.
    """
    domain = level.domain_of[osd]
    return not level.shards or sum(level.domain_of[each] == domain for each in others) < level.shards


def breaking(cluster: Cluster) -> dict[str, str]:
    """Groups whose set breaks the rule of their pool, as far as it is known, and why."""
    wrong = {}
    for place, name in enumerate(cluster.groups.ids):
        domains = cluster.domains[int(cluster.groups.pool[place])]
        why = None if domains is None else broken(domains, cluster.osd_ids(place).tolist())
        if why is not None:
            wrong[name] = why
    return wrong
