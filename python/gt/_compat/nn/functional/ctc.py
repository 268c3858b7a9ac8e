"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, arange_beside, tensor_beside
from gt.ops.registry import function
from gt.ops.sizes import filled

from .common import NN, check_reduction, in_float32

#: The log probability of an impossible event: unlike -inf, it can be subtracted from itself.
_NEVER = -1e30


@function(namespace=NN, autocast="float32")
@in_float32
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log probability of a label sequence, summed over all alignments.

    An alignment has the labels in their order, each for one step or more, with optional blanks
    between and around them; between equal labels a blank is required. As in PyTorch, the gradient
    assumes that log_probs come from log_softmax.

    Args:
        log_probs: log probabilities: (steps, samples, labels), or (steps, labels) for one sample.
        targets: labels: (samples, longest target), or the targets of all samples concatenated.
        input_lengths: the number of steps of each sample.
        target_lengths: the number of labels of each sample.
        blank: the index of the blank label.
        reduction: "mean" (of losses divided by target lengths), "sum" or "none".
        zero_infinity: whether a sample without an alignment has loss 0 and no gradient.

    >>> log_p = gt.tensor([[0.5, 0.5], [0.5, 0.5]]).log()
    >>> label, two, one = (gt.tensor(n, dtype=gt.int64) for n in ([1], 2, 1))
    >>> gt.nn.functional.ctc_loss(log_p, label, two, one)
    tensor(0.2876821, dtype=float32)
    """
    check_reduction("ctc_loss", reduction)
    single = log_probs.ndim == 2
    log_p = log_probs.unsqueeze(1) if single else log_probs
    if not 0 <= blank < log_p.shape[-1]:
        raise ValueError(f"ctc_loss: blank is {blank}, expected 0 to {log_p.shape[-1] - 1}")
    samples = log_p.shape[1]
    steps, lengths = (
        _lengths(name, log_p, given, samples)
        for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    labels = _padded(targets, target_lengths, lengths)
    within = arange_beside(labels, labels.shape[1]) < lengths.unsqueeze(-1)
    loss = _loss(log_p, steps, gt.where(within, labels, blank), lengths, blank, zero_infinity)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss.squeeze(0) if single else loss


def _loss(
    log_p: Tensor, steps: Tensor, labels: Tensor, lengths: Tensor, blank: int, zero_infinity: bool
) -> Tensor:
    """Return each sample's loss, from the probabilities of its states after the last step.

    The states are blank, label, blank, label, ..., blank.
    """
    counts = arange_beside(log_p, log_p.shape[0]).unsqueeze(-1) < steps
    blanks = filled(labels, (labels.shape[0], 1), blank)
    pairs = gt.stack([blanks.expand(labels.shape), labels], -1)
    states = gt.cat([pairs.flatten(1), blanks], 1)
    reached = _reached(log_p.clamp(min=_NEVER), counts, states)
    total = _at_the_ends(reached, lengths)
    impossible = total < _NEVER / 2
    # A term of value 0 adds the probabilities to the gradient, as in PyTorch's.
    summed = gt.where(counts, log_p.exp().sum(-1), 0).sum(0)
    loss = summed - summed.detach() - total
    if zero_infinity:
        return gt.where(impossible, 0, loss)
    # Infinite without an alignment, with a gradient of NaN.
    return loss - gt.where(impossible, 0 * summed, 1).log()


def _at_the_ends(reached: Tensor, lengths: Tensor) -> Tensor:
    """Return the log probability of ending with the last label or the blank after it."""
    last = 2 * lengths.unsqueeze(-1)
    in_label = gt.where(last > 0, reached.gather(1, (last - 1).clamp(min=0)), _NEVER)
    return gt.cat([reached.gather(1, last), in_label], 1).logsumexp(1)


def _reached(log_p: Tensor, counts: Tensor, states: Tensor) -> Tensor:
    """Return the log probability of each state after each sample's last step."""
    emitted = log_p.gather(-1, states.expand(log_p.shape[0], *states.shape))
    never = filled(log_p, (states.shape[0], 2), _NEVER)
    # The blank between two different labels can be skipped.
    width = states.shape[1]
    differ = states[:, 2:] != states[:, : max(width - 2, 0)]
    skips = gt.cat([gt.zeros_like(never, dtype=gt.bool), differ], 1)[:, :width]
    first = arange_beside(states, width) == 0
    reached = gt.where(first, 0.0, never[:, :1])
    for step in range(log_p.shape[0]):
        before = gt.cat([never, reached], 1)
        skipping = gt.where(skips, before[:, :-2], _NEVER)
        paths = gt.stack([reached, before[:, 1:-1], skipping])
        following = paths.logsumexp(0) + emitted[step]
        reached = gt.where(counts[step].unsqueeze(-1), following, reached)
    return reached


def _lengths(name: str, log_p: Tensor, given: Any, samples: int) -> Tensor:
    """Return one length for each sample."""
    lengths = given if isinstance(given, Tensor) else tensor_beside(log_p, given, dtype="int64")
    if lengths.numel() != samples:
        raise ValueError(
            f"ctc_loss: {name} has shape {lengths.shape}, expected {samples}, one for each sample"
        )
    return lengths.long().reshape(samples)


def _padded(targets: Tensor, given: Any, lengths: Tensor) -> Tensor:
    """Return targets as rows of equal length; values beyond a target's length are arbitrary."""
    samples = lengths.shape[0]
    if targets.ndim == 2 or samples == 1:
        return targets.long().reshape(samples, -1)
    # The values of a tensor of lengths are not known here: use the total length as a bound.
    longest = targets.shape[0] if isinstance(given, Tensor) else max(given, default=0)
    starts = lengths.cumsum(0) - lengths
    places = starts.unsqueeze(-1) + arange_beside(targets, longest)
    return targets.long()[places.clamp(max=max(targets.shape[0] - 1, 0))]
