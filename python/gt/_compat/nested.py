"""`torch.nested` for PyTorch programs: GT has no nested tensors."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "as_nested_tensor nested_tensor nested_tensor_from_jagged narrow to_padded_tensor",
        "gt.nn.utils.rnn.pad_sequence(tensors, batch_first=True) pads them",
    )
)
