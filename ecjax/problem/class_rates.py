"""Option class_rate_scale: rates of the service classes, multiplied in the files table itself."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ecjax.errors import UserError
from ecjax.problem.classes import file_classes
from ecjax.problem.identity import Identity


def with_class_rates(files: pa.Table, names: Identity, scale: tuple[float, ...]) -> tuple[pa.Table, str]:
    """The files table with read and write rates multiplied, class by class; and by what, as JSON by class.

    Args:
        files: checked.
        names: its ids.
        scale: (K,) in class order.

    Raises:
        UserError: files have no service_class, or numbers are not one per class.
    """
    if "service_class" not in files.column_names:
        raise UserError(
            "class_rate_scale: files have no column service_class; allowed without it: rate_scale, for all files"
        )
    classes = file_classes(names, files)
    if len(scale) != len(classes.names):
        raise UserError(
            f"class_rate_scale: found {list(scale)}; allowed: one number per service class: {', '.join(classes.names)}"
        )
    factor = pa.array(np.array(scale)[classes.of_file])
    for name in ("rate_per_s", "rate_standard_error_per_s", "write_rate_per_s"):
        if name in files.column_names:
            place = files.column_names.index(name)
            files = files.set_column(place, files.schema.field(name), pc.multiply(files[name], factor))
    return files, json.dumps(dict(zip(classes.names, scale, strict=True)))
