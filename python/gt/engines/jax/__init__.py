"""JAX: whole plans by XLA, single operations by NumPy where that has the same memory."""

from gt.engines.jax.engine import JAXEngine

__all__ = ["JAXEngine"]
