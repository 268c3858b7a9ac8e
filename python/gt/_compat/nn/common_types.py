"""Types of sizes in annotations, under PyTorch's names: one number, or one for each axis."""

from typing import TypeAlias

_size_1_t: TypeAlias = int | tuple[int]
_size_2_t: TypeAlias = int | tuple[int, int]
_size_3_t: TypeAlias = int | tuple[int, int, int]
_size_4_t: TypeAlias = int | tuple[int, int, int, int]
_size_5_t: TypeAlias = int | tuple[int, int, int, int, int]
_size_6_t: TypeAlias = int | tuple[int, int, int, int, int, int]
_size_any_t: TypeAlias = int | tuple[int, ...]
_size_any_opt_t: TypeAlias = int | None | tuple[int | None, ...]
_size_2_opt_t: TypeAlias = int | None | tuple[int | None, int | None]
_size_3_opt_t: TypeAlias = int | None | tuple[int | None, int | None, int | None]
_ratio_2_t: TypeAlias = float | tuple[float, float]
_ratio_3_t: TypeAlias = float | tuple[float, float, float]
_ratio_any_t: TypeAlias = float | tuple[float, ...]
