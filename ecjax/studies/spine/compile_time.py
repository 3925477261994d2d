"""How much of a piece of work was compilation."""

import jax

_STAGES = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")


class CompileTime:
    """Context that sums what JAX took to trace and compile, in ``seconds``."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def _count(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event.endswith(_STAGES):
            self.seconds += duration_secs

    def __enter__(self) -> "CompileTime":
        jax.monitoring.register_event_duration_secs_listener(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_duration_listener(self._count)
