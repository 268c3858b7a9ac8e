"""`torch.autograd.forward_ad` for PyTorch programs: `gt.func.jvp` computes in forward mode."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "dual_level enter_dual_level exit_dual_level make_dual unpack_dual",
        "gt.func.jvp(function, (x,), (tangent,))",
    )
)
