"""Commands one after another in one process, ``python -m ecjax.commands_in_turn``, so that they share what it compiles.

Reads a line of JSON for each, the words of the command, and writes a line with its exit code once it has ended. What
commands print goes nowhere: who asks reads their results, and hears of errors by running what is missing.
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
