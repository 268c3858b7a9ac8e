"""Single operations on a CPU: NumPy computes them in the memory of JAX arrays.

NumPy does not compile, so the first use of a shape is as fast as later ones. NumPy views JAX arrays
on a CPU without a copy, and its results are used as tensors of the JAX engine without conversion:
compiled code accepts NumPy arrays.
"""

import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erf

from gt.engines.numpy import NumPyEngine

#: NumPy arrays of up to this many bytes are passed to compiled code directly: the copy is cheap.
_SMALL = 1 << 16


class Host(NumPyEngine):
    """Computes on JAX and NumPy arrays by NumPy; operations that NumPy lacks, natively."""

    #: The bfloat16 dtype that JAX registers with NumPy.
    bfloat16 = np.dtype(jnp.bfloat16)
    lowerings = {
        **NumPyEngine.lowerings,
        "erf": erf,
    }


class Placed:
    """Converts NumPy arrays to JAX arrays on a device.

    An array that compiled code takes repeatedly, such as a constant mask, is copied once: the copy
    is cached for the lifetime of the array.
    """

    def __init__(self, device: jax.Device):
        self._device = device
        #: `id` of a NumPy array -> (weak reference to it, copy).
        self._copies: dict[int, tuple[weakref.ref[Any], jax.Array]] = {}

    def __call__(self, value: Any) -> Any:
        """Return an array for compiled code; numbers and JAX arrays are returned unchanged."""
        if not isinstance(value, np.ndarray) or value.nbytes <= _SMALL:
            return value
        key = id(value)
        kept = self._copies.get(key)
        if kept is None:
            # The `id` is not reused before the array dies, which removes the entry.
            gone = weakref.ref(value, lambda _: self._copies.pop(key, None))
            # A copy, because JAX may alias the memory and so keep the array alive.
            copy = jax.device_put(value.copy(), self._device)
            kept = self._copies[key] = (gone, copy)
        return kept[1]
