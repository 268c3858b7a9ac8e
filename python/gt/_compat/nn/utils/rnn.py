"""Sequences of different lengths: padded to one length, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import gt
from gt._arguments import check_bool
from gt._gt import Tensor
from gt._public import show_callers


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences packed without padding: the elements of the first time step, the second, etc.

    The longest sequence comes first. `batch_sizes` has the number of sequences with an element at
    each time step; `sorted_indices` is the permutation that sorted the sequences, and
    `unsorted_indices` its inverse.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Create packed sequences from their parts."""
        if batch_sizes is None:
            raise ValueError("PackedSequence: batch_sizes must be given")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences with their data converted by `Tensor.to`."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def _with(self, data: Tensor) -> PackedSequence:
        """Return sequences with other data, packed in the same way."""
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cpu(self) -> PackedSequence:
        """Return the sequences themselves: all tensors are on the cluster."""
        return self

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return the sequences themselves: all tensors are on the cluster."""
        return self

    def float(self) -> PackedSequence:
        """Return the sequences with float32 elements."""
        return self.to(gt.float32)

    def double(self) -> PackedSequence:
        """Return the sequences with float64 elements."""
        return self.to(gt.float64)

    def half(self) -> PackedSequence:
        """Return the sequences with float16 elements."""
        return self.to(gt.float16)

    @property
    def is_cuda(self) -> bool:
        """False: the cluster is the only device."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation."""
    if permutation is None:
        return None
    return gt.zeros_like(permutation).scatter(
        0, permutation, gt.arange(permutation.numel(), dtype=permutation.dtype)
    )


def _lengths(lengths: Any) -> list[int]:
    """Return lengths as numbers; those of a tensor are fetched."""
    return [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


def _sizes(lengths: list[int]) -> list[int]:
    """Return the number of sequences with an element at each time step; the longest is first."""
    return [sum(length > time for length in lengths) for time in range(lengths[0])]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: of shape (time, batch, ...), or (batch, time, ...) with `batch_first`.
        lengths: the length of each sequence: numbers, or a tensor, which is fetched.
        batch_first: whether the input is (batch, time, ...).
        enforce_sorted: whether lengths must be in decreasing order; otherwise they are sorted here.

    Raises:
        RuntimeError: lengths are not sorted, not above 0, or too many or too few.
    """
    check_bool(batch_first=batch_first, enforce_sorted=enforce_sorted)
    given = _lengths(lengths)
    padded = input.transpose(0, 1) if batch_first else input
    if len(given) != padded.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(given)} (batch_size="
            f"{padded.shape[1]})"
        )
    if not given or min(given) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    sorted_indices = None
    if not enforce_sorted:
        order = sorted(range(len(given)), key=lambda at: -given[at])
        given = [given[at] for at in order]
        sorted_indices = gt.tensor(order, dtype=gt.int64)
        padded = padded.index_select(1, sorted_indices)
    elif any(one < other for one, other in zip(given, given[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if given[0] > padded.shape[0]:
        raise RuntimeError(
            f"Expected no length above {padded.shape[0]}, the padded one, but got {given[0]}"
        )
    sizes = _sizes(given)
    data = gt.cat([padded[time, :size] for time, size in enumerate(sizes)])
    return PackedSequence(data, gt.tensor(sizes, dtype=gt.int64), sorted_indices)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences as a padded tensor, and their lengths.

    Args:
        sequence: the packed sequences.
        batch_first: whether the result is (batch, time, ...).
        padding_value: the value after the end of each sequence.
        total_length: the length of the result, by default that of the longest sequence.
    """
    check_bool(batch_first=batch_first)
    sizes = _lengths(sequence.batch_sizes)
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being {length}"
            )
    batch, data = sizes[0], sequence.data
    rows = []
    for part in data.split(sizes):
        missing = batch - part.shape[0]
        rows.append(
            gt.cat([part, part.new_full((missing, *part.shape[1:]), padding_value)])
            if missing
            else part
        )
    padded = gt.stack(rows)
    if total_length is not None and total_length > length:
        behind = padded.new_full((total_length - length, *padded.shape[1:]), padding_value)
        padded = gt.cat([padded, behind])
    lengths = gt.tensor([sum(size > at for size in sizes) for at in range(batch)], dtype=gt.int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Return sequences as one tensor, padded to the longest.

    Args:
        sequences: tensors of shape (time, ...).
        batch_first: whether the result is (batch, time, ...).
        padding_value: the value of the padding.
        padding_side: "right" to pad after the end, "left" to pad before the beginning.
    """
    check_bool(batch_first=batch_first)
    if padding_side not in ("right", "left"):
        raise RuntimeError(f"Expected padding_side to be left or right, got {padding_side}")
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given = list(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    longest = max(one.shape[0] for one in given)
    padded = []
    for one in given:
        padding = one.new_full((longest - one.shape[0], *one.shape[1:]), padding_value)
        both = [one, padding] if padding_side == "right" else [padding, one]
        padded.append(gt.cat(both) if padding.shape[0] else one)
    return gt.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """Return padded sequences as a list of tensors without padding."""
    check_bool(batch_first=batch_first)
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    pairs = zip(padded_sequences.unbind(0), _lengths(lengths), strict=True)
    return [one[:length] for one, length in pairs]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences; see `pack_padded_sequence`."""
    check_bool(enforce_sorted=enforce_sorted)
    given = list(sequences)
    lengths = [one.shape[0] for one in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


show_callers(globals())
