"""JAX set-up shared by every module that computes: 64-bit floats.

ecjax computes in float64 unless asked otherwise, so importing a computing module turns on JAX's 64-bit types;
setting ``JAX_ENABLE_X64`` in the environment overrides that.
"""

import os

import jax

if "JAX_ENABLE_X64" not in os.environ:
    jax.config.update("jax_enable_x64", True)


def device_name() -> str:
    """What JAX computes on, as the column ``device`` of results has it."""
    return str(jax.devices()[0].device_kind)
