"""``python -m ecjax.studies.bench [CASE ...]``, for machines without Hydra."""

import argparse
import logging
import sys
from dataclasses import fields

from ecjax.console import OUTPUT
from ecjax.errors import UserError
from ecjax.studies.bench.options import BenchOptions
from ecjax.studies.bench.study import bench_study


def main() -> int:
    """Run the cases that are named, or all; returns the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("ecjax").setLevel(logging.INFO)
    parser = argparse.ArgumentParser(prog="python -m ecjax.studies.bench", description=__doc__)
    for option in fields(BenchOptions):
        text = option.metadata["help"]
        if option.name == "cases":
            parser.add_argument("cases", nargs="*", help=text)
        elif isinstance(option.default, bool):
            parser.add_argument(f"--{option.name}", action="store_true", help=text)
        else:
            kind = str if option.default is None else type(option.default)
            parser.add_argument(f"--{option.name}", type=kind, default=option.default, help=text)
    words = vars(parser.parse_args())
    words["cases"] = words["cases"] or None  # argparse gives an empty list where none is named
    try:
        return bench_study(BenchOptions(**words), OUTPUT)
    except UserError as error:
        print(f"ecjax: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
