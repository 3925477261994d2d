"""``python -m ecjax`` is the command ``ecjax``."""

import sys

from ecjax.cli import command

sys.exit(command())
