"""The JAX engine: XLA compiles whole plans; on CPUs, NumPy computes single operations."""

from gt.engines.jax.engine import JAXEngine

__all__ = ["JAXEngine"]
