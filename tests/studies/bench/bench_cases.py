"""Cases as the table has them, with some parameters changed."""

from dataclasses import replace

from ecjax.studies.bench import run
from ecjax.studies.bench.cases import PARTS
from ecjax.studies.bench.rows import Row


def rows_of(name: str, settings: run.Settings, **changes: object) -> list[Row]:
    """Rows of a case; parameters that a part does not have are not changed."""
    parts = [
        replace(part, parameters={key: changes.get(key, value) for key, value in part.parameters.items()})
        for part in PARTS
        if part.case == name
    ]
    return run.rows_of(parts, settings)
