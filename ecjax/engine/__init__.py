"""Where work runs: in this process, or in the worker processes of a Ray cluster; the results are the same.

A study makes tasks (``Task``: what several items share, and the items by name) and maps a function over them. The
function gets the shared part, items and the ``Worker`` that it runs in, and returns rows. Whatever goes wrong is an
answer (``Done.error``), not an end: tasks whose function raises are halved until single items fail, tasks that are lost
with their worker or node are tried again elsewhere. What the user did wrong (``UserError``) is answered at once.

Results do not depend on where a task runs, on the number of workers, or on how tasks were halved.
"""

from ecjax.engine.opening import open_engine
from ecjax.engine.options import EngineOptions
from ecjax.engine.tasks import Done, Engine, Failed, Function, Lost, Task, Worker

__all__ = [
    "Done",
    "Engine",
    "EngineOptions",
    "Failed",
    "Function",
    "Lost",
    "Task",
    "Worker",
    "open_engine",
]
