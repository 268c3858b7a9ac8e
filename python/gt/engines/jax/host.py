"""Single operations on a processor: NumPy computes them in the memory of JAX's arrays.

NumPy compiles nothing, so a shape that comes once costs no more than one that comes often. JAX's
arrays on a processor are seen without a copy, and what NumPy gives is a tensor of this engine as
it is: compiled code takes NumPy's arrays as well.
"""

import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erf

from gt.engines.numpy import NumPyEngine

#: Compiled code takes arrays of no more bytes as they are: to copy them costs next to nothing.
_SMALL = 1 << 16


class Host(NumPyEngine):
    """Computes with NumPy on arrays of JAX's and of NumPy's; what NumPy lacks, natively."""

    #: JAX brings the dtype along.
    bfloat16 = np.dtype(jnp.bfloat16)
    lowerings = {
        **NumPyEngine.lowerings,
        "erf": erf,
    }


class Placed:
    """Gives JAX's arrays for NumPy's, on a device.

    What compiled code takes again and again, as a mask that was made once, is copied once: the
    copy is kept as long as the array is.
    """

    def __init__(self, device: jax.Device):
        self._device = device
        #: By the `id` of an array.
        self._copies: dict[int, tuple[weakref.ref, jax.Array]] = {}

    def __call__(self, value: Any) -> Any:
        """Give an array for compiled code; numbers, and what JAX has, stay as they are."""
        if not isinstance(value, np.ndarray) or value.nbytes <= _SMALL:
            return value
        key = id(value)
        kept = self._copies.get(key)
        if kept is None:
            # No other array has this `id` before this one is gone.
            gone = weakref.ref(value, lambda _: self._copies.pop(key, None))
            # JAX may keep the memory that it is given, and so keep the array alive.
            copy = jax.device_put(value.copy(), self._device)
            kept = self._copies[key] = (gone, copy)
        return kept[1]
