"""Access logs of object stores, file systems and public traces: one reader of lines, and a profile for each source."""

from ecjax.tables.importers.access_logs.clusters import CLUSTERS, SWIFT_OBJECT, SWIFT_REQUESTS
from ecjax.tables.importers.access_logs.importer import AccessLogImporter
from ecjax.tables.importers.access_logs.public import PUBLIC
from ecjax.tables.importers.access_logs.stores import STORES

PROFILES = {profile.name: profile for profile in (*CLUSTERS, *STORES, *PUBLIC)}
_JOINED = {SWIFT_OBJECT.name: SWIFT_REQUESTS}
ACCESS_LOGS = tuple(
    AccessLogImporter(profile, tuple(PROFILES.values()), _JOINED.get(profile.name))
    for profile in PROFILES.values()
)

__all__ = ["ACCESS_LOGS", "PROFILES"]
