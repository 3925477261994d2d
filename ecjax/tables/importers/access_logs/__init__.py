"""Access logs of object stores, file systems and public traces: one reader of lines, and a profile for each source."""

from ecjax.tables.importers.access_logs.importer import AccessLogImporter
from ecjax.tables.importers.access_logs.public import PUBLIC
from ecjax.tables.importers.access_logs.stores import STORES

PROFILES = {profile.name: profile for profile in (*STORES, *PUBLIC)}
ACCESS_LOGS = tuple(AccessLogImporter(profile, tuple(PROFILES.values())) for profile in PROFILES.values())

__all__ = ["ACCESS_LOGS", "PROFILES"]
