"""`torch.package` for PyTorch programs: GT has no packages of code and weights."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "PackageExporter PackageImporter",
        "gt.save(model.state_dict(), path) saves weights",
    )
)
