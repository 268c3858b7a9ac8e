"""Short-time Fourier transforms of overlapping frames of a signal."""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.registry import operation


def _window(name: str, n_fft: int, length: int | None, window: Tensor | None, x: Tensor) -> Tensor:
    """Return the window, centered in a frame; ones by default."""
    length = n_fft if length is None else length
    if not 0 < length <= n_fft:
        raise ValueError(f"{name}: win_length must be from 1 to n_fft = {n_fft}, not {length}")
    if window is None:
        window = gt.ones(length, dtype=x.dtype.to_real())
    elif window.shape != (length,):
        raise ValueError(f"{name}: window must have shape ({length},), not {window.shape}")
    left = (n_fft - length) // 2
    return gt.nn.functional.pad(window, (left, n_fft - length - left))


def _hop(name: str, n_fft: int, hop_length: int | None) -> int:
    hop = n_fft // 4 if hop_length is None else hop_length
    if hop < 1:
        raise ValueError(f"{name}: hop_length must be 1 or more, not {hop}")
    return hop


@operation(autocast="float32")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of overlapping frames of a signal.

    Args:
        input: a signal of shape (length,), or several of shape (batch, length).
        n_fft: the length of each transform.
        hop_length: the distance between frames; n_fft // 4 by default.
        win_length: the length of the window; n_fft by default.
        window: a factor for the values of each frame; ones by default.
        center: whether frames are centered at their positions; the signal is then padded.
        pad_mode: the mode of this padding; see `gt.nn.functional.pad`.
        normalized: whether results are divided by the square root of n_fft.
        onesided: whether to return only the first n_fft // 2 + 1 frequencies; by default for real
            signals.
        return_complex: must be given for real signals; False returns real and imaginary parts
            along a last axis.
        align_to_window: whether frames begin where the window does, not where the transform does;
            only for `center=False`.

    Returns:
        Complex numbers of shape (batch, frequencies, frames).

    >>> gt.stft(gt.ones(8), 4, center=False, return_complex=True).shape
    (3, 5)
    """
    if input.ndim not in (1, 2):
        raise ValueError(f"stft: expected a tensor of 1 or 2 axes, not of shape {input.shape}")
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None:
        if not is_complex:
            raise RuntimeError("stft: return_complex must be given for real signals\n  hint: True")
        return_complex = True
    if onesided and is_complex:
        raise ValueError("stft: onesided is only for real signals and windows")
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window is only for center=False")
    hop = _hop("stft", n_fft, hop_length)
    window = _window("stft", n_fft, win_length, window, input)
    x = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        x = gt.nn.functional.pad(x, (n_fft // 2, n_fft // 2), pad_mode)
    elif align_to_window:
        rest = n_fft - (win_length or n_fft)
        x = gt.nn.functional.pad(x, (rest // 2, rest - rest // 2))
    if not 0 < n_fft <= x.shape[1]:
        raise ValueError(f"stft: n_fft must be from 1 to {x.shape[1]}, not {n_fft}")
    frames = x.unfold(-1, n_fft, hop) * window
    half = not is_complex if onesided is None else onesided
    transform = gt.fft.rfft if half else gt.fft.fft
    result = transform(frames, norm="ortho" if normalized else None).mT
    result = result if input.ndim == 2 else result.squeeze(0)
    return result if return_complex else gt.view_as_real(result)


@operation(autocast="float32")
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose `stft` is given: the least-squares estimate where frames disagree.

    Parameters as for `stft`, and in addition:

    Args:
        input: complex numbers of shape (batch, frequencies, frames) or without the batch.
        length: the length of the signal; by default that of the frames together.
        return_complex: whether the signal is complex.

    The frames, multiplied by the window, are added up at their positions and divided by the sum of
    the windows' squares (D. Griffin, J. Lim, "Signal estimation from modified short-time Fourier
    transform", 1984).

    >>> signal = gt.tensor([1.0, 2.0, 3.0, 4.0])
    >>> gt.istft(gt.stft(signal, 4, return_complex=True), 4)
    tensor([1., 2., 3., 4.], dtype=float32)
    """
    if not input.dtype.is_complex or input.ndim not in (2, 3):
        raise ValueError(
            "istft: expected complex numbers of shape (batch, frequencies, frames), not "
            f"{input.dtype.name} of shape {input.shape}"
        )
    half = n_fft != input.shape[-2] if onesided is None else onesided
    if input.shape[-2] != (n_fft // 2 + 1 if half else n_fft):
        raise ValueError(f"istft: {input.shape[-2]} frequencies do not fit n_fft = {n_fft}")
    hop = _hop("istft", n_fft, hop_length)
    window = _window("istft", n_fft, win_length, window, input)
    norm = "ortho" if normalized else None
    spectra = input.mT
    if return_complex:
        frames = gt.fft.ifft(spectra, norm=norm)
    else:  # irfft assumes that the other half is the conjugate of this one
        frames = gt.fft.irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    signal = _added_up(frames * window, hop)
    weights = _added_up((window * window).expand(input.shape[-1], n_fft), hop)
    start = n_fft // 2 if center else 0
    if length is not None:
        end = start + length
    else:
        end = signal.shape[-1] - (n_fft // 2 if center else 0)
    kept = min(end, signal.shape[-1])
    weights = weights[start:kept]
    if not weights.abs().min() > 1e-11:
        raise RuntimeError(
            "istft: parts of the signal are in no frame where the window is above 0\n"
            "  hint: another window or a shorter hop_length, or center=True"
        )
    return gt.nn.functional.pad(signal[..., start:kept] / weights, (0, end - kept))


def _added_up(frames: Tensor, hop: int) -> Tensor:
    """Add up frames of shape (..., frames, n), each `hop` values after the one before."""
    count, n = frames.shape[-2:]
    places = (gt.arange(count).unsqueeze(1) * hop + gt.arange(n)).reshape(-1)
    flat = frames.reshape(*frames.shape[:-2], count * n)
    whole = flat.new_zeros((*flat.shape[:-1], (count - 1) * hop + n))
    return whole.index_add(-1, places, flat)
