"""`torch.utils.cpp_extension` for PyTorch programs: kernels in C++ are not compiled."""

from gt._absent import absent_names

__all__: list[str] = []

CUDA_HOME = None

globals().update(
    absent_names(
        __name__,
        "BuildExtension CUDAExtension CppExtension SyclExtension load load_inline",
        "write the operation in Python with gt's functions: repeated sequences are compiled",
    )
)
