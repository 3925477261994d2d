"""Commands one after another in one process, ``python -m ecjax.commands_in_turn``, so that they share what it compiles.

Reads a line of JSON for each, the words of the command, and writes a line with its exit code when it has ended. What the
commands print goes nowhere: they are asked for their results, and for errors again by whoever reads those.
"""

import contextlib
import io
import json
import sys

from ecjax.cli import main


def serve() -> None:
    """Run what comes until there is no more."""
    answers = sys.stdout
    for line in sys.stdin:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = main(json.loads(line))
        print(code, file=answers, flush=True)


if __name__ == "__main__":
    serve()
