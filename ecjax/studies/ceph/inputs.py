"""What ``ecjax ceph`` plans for: a cluster as its dumps say it, with speeds of its OSDs."""

import re
from typing import NamedTuple

import numpy as np

from ecjax.errors import UserError
from ecjax.rados.files import Dumps, read_dumps
from ecjax.rados.plan import Demand, demand_of
from ecjax.rados.read import Reading, read_cluster
from ecjax.rados.records import Cluster
from ecjax.studies.ceph.options import CephOptions
from ecjax.tables.run_ids import run_id

_OSD = re.compile(r"osd\.(\d+)")


class Case(NamedTuple):
    """A cluster and what loads its OSDs."""

    cluster: Cluster
    demand: Demand
    dumps: Dumps
    input_id: str
    notes: tuple[str, ...]  # on the dumps and on what was assumed


def read_case(options: CephOptions) -> Case:
    """The cluster of ``dumps``.

    Raises:
        UserError: the dumps, or something that names a part of the cluster, are wrong.
    """
    dumps = read_dumps(str(options.dumps))
    cluster = read_cluster(dumps, Reading(options.rates, tuple(options.pools or ())))
    speed, notes = speeds_of(cluster, options.speeds)
    demand = demand_of(cluster, speed, options.load, options.primary_work)
    names = {"dumps": dumps.sha256, "rates": options.rates, "pools": options.pools}
    return Case(cluster, demand, dumps, run_id("inputs", names, "", None, ""), (*cluster.notes, *notes))


def speeds_of(cluster: Cluster, speeds: dict[str, float] | None) -> tuple[np.ndarray, list[str]]:
    """(m,) speeds of the OSDs, and what was assumed.

    Args:
        cluster: whose OSDs.
        speeds: by device class or OSD; an OSD's own one counts.

    Raises:
        UserError: a name is neither.
    """
    speed = np.ones(len(cluster.osds))
    classes = sorted({each for each in cluster.device_class if each})
    if speeds is None:
        several = f"; they are of classes {', '.join(classes)}" if len(classes) > 1 else ""
        return speed, [f"all OSDs count as equally fast{several} (speeds={{...}} says otherwise)"]
    ids = cluster.osds.tolist()
    for name, value in sorted(speeds.items(), key=lambda pair: _OSD.fullmatch(pair[0]) is not None):
        osd = _OSD.fullmatch(name)
        if osd is not None and int(osd[1]) in ids:
            speed[ids.index(int(osd[1]))] = value
        elif name in classes:
            speed[np.array(cluster.device_class) == name] = value
        else:
            raise UserError(
                f"speeds: found {name}; allowed: device classes ({', '.join(classes) or 'there are none'}) or OSDs of "
                "the cluster, as osd.3"
            )
    return speed, []
