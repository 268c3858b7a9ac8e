"""`torch.ao.quantization` for PyTorch programs: GT does not quantize models."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "DeQuantStub QConfig QuantStub QuantWrapper convert fuse_modules get_default_qat_qconfig "
        "get_default_qconfig prepare prepare_qat quantize quantize_dynamic quantize_qat",
        "compute in a smaller dtype: model.half(), model.bfloat16() or gt.autocast",
    )
)
