"""What a run is: its identity, from which come its run id, and the beginning of its row in ``runs``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import ecjax
from ecjax.display import without_secrets
from ecjax.tables.run_ids import ALGORITHM_VERSION, canonical, run_id

FLOAT64 = "float64"


@dataclass(frozen=True)
class Run:
    """One run of a job, described once: everything that its results depend on.

    Runs with different ids differ in ``input_id``, in ``seed`` or in ``params``, which holds all parameters.

    Attributes:
        job: its name.
        parameters: what changes its results apart from inputs and seed, by name; hashed.
        input_id: fingerprint of the inputs.
        seed: random seed; None where nothing is random.
        columns: what of the above, or of the inputs, has columns of its own in ``runs``.
        remarks: what else a reader of ``params`` should know; not hashed.
        dtype: number type of the computation.
        algorithm_version: raised when the same parameters are to give other results.
    """

    job: str
    parameters: Mapping[str, Any]
    input_id: str
    seed: int | None
    columns: Mapping[str, Any] = field(default_factory=dict)
    remarks: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = FLOAT64
    algorithm_version: int = ALGORITHM_VERSION

    @cached_property
    def run_id(self) -> str:
        """Name of the run: the hash of what it computes."""
        identity = (_public(self.parameters), self.input_id, self.seed, self.dtype, self.algorithm_version)
        return run_id(self.job, *identity)

    def params(self, **remarks: Any) -> str:
        """The column ``params``, JSON: all parameters, number type and version where they are not the usual ones.

        Args:
            remarks: to add to those of the run.
        """
        unusual: dict[str, Any] = {} if self.dtype in (FLOAT64, "") else {"dtype": self.dtype}
        if self.algorithm_version != ALGORITHM_VERSION:
            unusual["algorithm_version"] = self.algorithm_version
        return canonical(_public({**self.remarks, **remarks, **unusual, **self.parameters}))

    def row(self) -> dict[str, Any]:
        """What is known of the run before it is done: its row of ``runs`` without status and results."""
        return {
            "run_id": self.run_id,
            "job": self.job,
            **({"input_id": self.input_id} if self.input_id else {}),
            **_public(self.columns),
            "device": "cpu",
            "version": ecjax.__version__,
            "seed": self.seed,
            "params": self.params(),
        }


def _public(value: Any) -> Any:
    """Parameters, with addresses of object stores in them as they may be kept."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {name: _public(each) for name, each in value.items()}
    return [_public(each) for each in value] if isinstance(value, list | tuple) else value


def json_text(value: Any) -> str | None:
    """A cell that holds JSON; None of None."""
    return None if value is None else json.dumps(value, sort_keys=True)
