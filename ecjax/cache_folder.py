"""Where compiled programs are kept. Imports nothing heavy."""

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """The user's cache folder: ``ECJAX_CACHE``, else ``~/.cache/ecjax``; None where the user has no home."""
    if setting := os.environ.get("ECJAX_CACHE"):
        return Path(setting)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ecjax"
    except RuntimeError:
        return None
