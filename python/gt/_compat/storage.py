"""`torch.storage` for PyTorch programs: the memory of a tensor is its worker's."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "TypedStorage UntypedStorage",
        "x.numpy() copies a tensor's values here",
    )
)
