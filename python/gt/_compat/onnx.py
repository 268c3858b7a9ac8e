"""`torch.onnx` for PyTorch programs: GT does not export models."""

from gt._absent import absent_names

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Return False: nothing is exported."""
    return False


globals().update(
    absent_names(
        __name__,
        "ExportOptions ONNXProgram dynamo_export export register_custom_op_symbolic",
        "gt.save(model.state_dict(), path), load it in PyTorch and export the model there",
    )
)
