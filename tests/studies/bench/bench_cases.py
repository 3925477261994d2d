"""Cases as the table has them, with some parameters changed."""

from dataclasses import replace

from ecjax.studies.bench.cases import CASES
from ecjax.studies.bench.rows import Row
from ecjax.studies.bench.run import Settings, case_rows


def rows_of(name: str, settings: Settings, **changes: object) -> list[Row]:
    """Rows of a case; parameters that a part does not have are not changed."""
    parts = tuple(
        replace(
            part,
            parameters={key: changes.get(key, value) for key, value in part.parameters.items()},
        )
        for part in CASES[name].parts
    )
    return case_rows(replace(CASES[name], parts=parts), settings)
