"""`torch.export` for PyTorch programs: GT does not export models."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "Dim ExportedProgram export load register_dataclass save",
        "gt.save(model.state_dict(), path), load it in PyTorch and export the model there",
    )
)
