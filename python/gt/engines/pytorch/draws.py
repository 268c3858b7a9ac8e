"""Random numbers on PyTorch's device, bitwise equal to those of the native engine.

Each is a function of the seed, the instruction and the element's position by Philox4x32-10 (Salmon
et al., SC'11). The formulas are those of `gt-ir/draws`, with one PyTorch call for each addition or
multiplication: a fused kernel would contract them to FMAs, which round differently.
"""

import math
from typing import Any

import torch

from gt.engines.engine import Meta
from gt.engines.pytorch.values import DTYPES, converted

_WORD = 2**32 - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)

_LOG_F32 = (7.0376836e-2, -1.151461e-1, 1.1676999e-1, -1.2420141e-1, 1.4249323e-1, -1.6668058e-1,
            2.0000715e-1, -2.4999994e-1, 3.333333e-1)  # fmt: skip
_SIN_F32 = (-1.9515296e-4, 8.332161e-3, -0.16666655)
_COS_F32 = (2.4433157e-5, -1.3887316e-3, 4.1666646e-2)
_LOG_F64 = (1.4798198605116586e-1, 1.5313837699209373e-1, 1.818357216161805e-1,
            2.2222198432149784e-1, 2.857142874366239e-1, 3.999999999940942e-1,
            6.666666666666735e-1)  # fmt: skip
_SIN_F64 = (1.5896230157654657e-10, -2.5050747762857807e-8, 2.7557313621385725e-6,
            -1.984126982958954e-4, 8.333333333322118e-3, -1.666666666666663e-1)  # fmt: skip
_COS_F64 = (-1.1358536521387682e-11, 2.087570084197473e-9, -2.755731417929674e-7,
            2.48015872888517e-5, -1.3888888888873056e-3, 4.166666666666659e-2)  # fmt: skip


def draw(
    operation: str, numbers: tuple[int, ...], output: Meta, part: tuple[int, ...], device: Any
) -> torch.Tensor:
    """Return the random numbers of `rand`, `randn` or `randint`, or a shard of them.

    `numbers` are the seed, the instruction number and, for `randint`, the limits. `part` is empty,
    or describes a shard: its start on each axis, then the shape of the unsharded tensor.
    """
    seed, instruction, *limits = numbers
    per = 2 if output.dtype == "float64" or operation == "randint" else 4

    def values(counters: torch.Tensor) -> torch.Tensor:
        words = philox(counters, instruction, seed)
        if operation == "randint":
            drawn = _below(words, limits[1] - limits[0])
            return torch.stack([offset + limits[0] for offset in drawn], -1)
        return torch.stack(_FLOATS[operation, per](words), -1)

    places = _places(output.shape, part, device)
    if isinstance(places, int):
        count = math.prod(output.shape)
        counters = torch.arange(places // per, -(-(places + count) // per), device=device)
        drawn = values(counters).flatten()[places % per :][:count].reshape(output.shape)
    else:
        drawn = values(places // per).gather(-1, (places % per).unsqueeze(-1)).squeeze(-1)
    if operation == "rand" and output.dtype in _STEPS:
        steps = _STEPS[output.dtype]
        drawn = (drawn * steps).floor() / steps
    return converted(drawn, DTYPES[output.dtype]).contiguous()


#: The number of steps from 0 to 1 for 16-bit floats, which are rounded down: never up to 1.
_STEPS = {"float16": 2048.0, "bfloat16": 256.0}


def _places(shape: tuple[int, ...], part: tuple[int, ...], device: Any) -> int | torch.Tensor:
    """Return each element's position in the unsharded tensor; just the first if consecutive."""
    if not part:
        return 0
    starts, whole = part[: len(shape)], part[len(shape) :]
    places, first, step = torch.zeros((), dtype=torch.int64, device=device), 0, 1
    for axis in reversed(range(len(shape))):
        along = torch.arange(starts[axis], starts[axis] + shape[axis], device=device) * step
        places = places + along.reshape([-1] + [1] * (len(shape) - axis - 1))
        first += starts[axis] * step
        step *= whole[axis]
    return first if shape[1:] == tuple(whole[1:]) else places


def philox(counters: torch.Tensor, instruction: int, seed: int) -> list[Any]:
    """Return four 32-bit words for each counter, as int64."""
    a, b = counters & _WORD, (counters >> 32) & _WORD
    c: Any = instruction & _WORD
    d: Any = (instruction >> 32) & _WORD
    keys = [seed & _WORD, (seed >> 32) & _WORD]
    for _ in range(10):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = _high(second) ^ b ^ keys[0], second & _WORD
        c, d = _high(first) ^ d ^ keys[1], first & _WORD
        keys = [(key + weyl) & _WORD for key, weyl in zip(keys, _WEYL, strict=True)]
    return [a, b, c, d]


def _high(product: Any) -> Any:
    """Return the upper 32 of 64 bits; the shift is arithmetic, hence the mask."""
    return (product >> 32) & _WORD


def _below(words: list[torch.Tensor], span: int) -> list[torch.Tensor]:
    """Return the upper 64 bits of the product of each pair of words and a span."""
    s1, s0 = span >> 32, span & _WORD
    shares = []
    for high, low in (words[:2], words[2:]):
        crossed = high * s0, low * s1
        middle = _high(low * s0) + (crossed[0] & _WORD) + (crossed[1] & _WORD)
        shares.append(high * s1 + _high(crossed[0]) + _high(crossed[1]) + _high(middle))
    return shares


def _uniforms_f32(words: list[torch.Tensor]) -> list[torch.Tensor]:
    return [(word >> 8).float() * 2.0**-24 for word in words]


def _uniforms_f64(words: list[torch.Tensor]) -> list[torch.Tensor]:
    return [_bits53(*pair) * 2.0**-53 for pair in (words[:2], words[2:])]


def _bits53(high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    return ((high << 21) | (low >> 11)).double()


def _normals_f32(words: list[torch.Tensor]) -> list[torch.Tensor]:
    return [number for pair in (words[:2], words[2:]) for number in _pair_f32(*pair)]


def _pair_f32(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    squared = _log_f32(((a >> 1).float() + 0.5) * 2.0**-31) * -2.0
    # Through float64 the root is correctly rounded, unlike PyTorch's float32 root on CPUs.
    radius = squared.double().sqrt().float()
    # The lower 30 bits, shifted to the top of an int32.
    x = (b << 2).to(torch.int32).float() * _float32(math.pi / 4 / 2**31)
    z = x * x
    sine = _polynomial(z, _SIN_F32) * z * x + x
    cosine = _polynomial(z, _COS_F32) * z * z - z * 0.5 + 1.0
    return _turned(radius, sine, cosine, b)


def _normals_f64(words: list[torch.Tensor]) -> list[torch.Tensor]:
    a, b, c, d = words
    radius = _root_f64(_log_f64((_bits53(a, b) + 0.5) * 2.0**-53) * -2.0)
    x = (_bits53((c << 2) & _WORD, d) - 2.0**52) * (math.pi / 4 / 2**52)
    z = x * x
    sine = _polynomial(z, _SIN_F64) * z * x + x
    cosine = _polynomial(z, _COS_F64) * z * z - z * 0.5 + 1.0
    return list(_turned(radius, sine, cosine, c))


def _root_f64(x: torch.Tensor) -> torch.Tensor:
    """Return the correctly rounded square root, which PyTorch's on CPUs is not.

    The residual x - root² is exact by Dekker's product ("A Floating-Point Technique for Extending
    the Available Precision", 1971), and yields the correction by a Newton step.
    """
    root = x.sqrt()
    scaled = root * (2.0**27 + 1)
    high = scaled - (scaled - root)
    low, square = root - high, root * root
    error = ((high * high - square) + high * low * 2.0) + low * low
    left = (x - square) - error
    return root + left / (root * 2.0).clamp(min=1e-300)


def _turned(
    radius: torch.Tensor, sine: torch.Tensor, cosine: torch.Tensor, word: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the point at an angle: the word's top two bits choose a quadrant around an axis."""
    cosine = torch.where(word >> 31 == 1, -cosine, cosine)
    swapped = (word >> 30) & 1 == 1
    return (
        radius * torch.where(swapped, sine, cosine),
        radius * torch.where(swapped, cosine, sine),
    )


def _polynomial(x: torch.Tensor, terms: tuple[float, ...]) -> torch.Tensor:
    value = x * terms[0] + terms[1]
    for term in terms[2:]:
        value = value * x + term
    return value


def _float32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float32).item()


def _log_f32(x: torch.Tensor) -> torch.Tensor:
    bits = x.view(torch.int32)
    n = (bits - 0x3F3504F3) >> 23
    r = (bits - n * 2**23).view(torch.float32) - 1.0
    n, z = n.float(), r * r
    p = _polynomial(r, _LOG_F32)
    return p * r * z + n * -2.1219444e-4 - z * 0.5 + r + n * 0.6933594


def _log_f64(x: torch.Tensor) -> torch.Tensor:
    bits = x.view(torch.int64)
    n = (bits - 0x3FE6A09E667F3BCD) >> 52
    f = (bits - n * 2**52).view(torch.float64) - 1.0
    n, s, half = n.double(), f / (f + 2.0), f * 0.5 * f
    z = s * s
    p = _polynomial(z, _LOG_F64)
    return n * 6.931471803691238e-1 - (half - (s * (half + p * z) + n * 1.9082149292705877e-10) - f)


_FLOATS = {
    ("rand", 4): _uniforms_f32,
    ("rand", 2): _uniforms_f64,
    ("randn", 4): _normals_f32,
    ("randn", 2): _normals_f64,
}
