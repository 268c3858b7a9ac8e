"""`torch.quasirandom` for PyTorch programs: GT has no sequences of low discrepancy."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "SobolEngine",
        "scipy.stats.qmc.Sobol, and gt.tensor of its array",
    )
)
