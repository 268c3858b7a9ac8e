"""Connectionist temporal classification (Graves et al., 2006)."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor, arange_beside, tensor_beside
from gt.nn.functional.common import NN, check_reduction, in_float32
from gt.ops.registry import function
from gt.ops.sizes import filled

#: The logarithm of no probability at all: unlike -inf it can be subtracted from itself.
_NEVER = -1e30


@function(namespace=NN)
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
    """Give minus the logarithm of a label sequence's probability, summed over all alignments.

    Alignments put labels in their order, each for one step or more, and blanks between and around
    them, of which those between equal labels are a must. As in PyTorch the gradient supposes that
    log_probs come from log_softmax.

    Args:
        log_probs: logarithms of probabilities: steps x samples x labels, or of one sample.
        targets: labels: samples x the longest of them, or all of them one after the other.
        input_lengths: how many steps count, for each sample.
        target_lengths: how many labels, for each sample.
        blank: the label that is a blank.
        reduction: "mean" (of losses over target lengths), "sum" or "none".
        zero_infinity: whether what has no alignment has loss 0 and no gradient.

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


def _loss(log_p, steps, labels, lengths, blank: int, zero_infinity: bool) -> Tensor:
    """Give each sample's loss, from the probability of being in each state after each step.

    The states are blank, label, blank, label, ..., blank.
    """
    counts = arange_beside(log_p, log_p.shape[0]).unsqueeze(-1) < steps
    blanks = filled(labels, (labels.shape[0], 1), blank)
    pairs = gt.stack([blanks.expand(labels.shape), labels], -1)
    states = gt.cat([pairs.flatten(1), blanks], 1)
    reached = _reached(log_p.clamp(min=_NEVER), counts, states)
    total = _at_the_ends(reached, lengths)
    impossible = total < _NEVER / 2
    # What PyTorch's gradient has beyond that of the sum: the probabilities themselves.
    summed = gt.where(counts, log_p.exp().sum(-1), 0).sum(0)
    loss = summed - summed.detach() - total
    if zero_infinity:
        return gt.where(impossible, 0, loss)
    # Infinite where there is no alignment, with a gradient that is no number.
    return loss - gt.where(impossible, 0 * summed, 1).log()


def _at_the_ends(reached: Tensor, lengths: Tensor) -> Tensor:
    """Give the logarithm of the probability to end with the last label or the blank behind it."""
    last = 2 * lengths.unsqueeze(-1)
    in_label = gt.where(last > 0, reached.gather(1, (last - 1).clamp(min=0)), _NEVER)
    return gt.cat([reached.gather(1, last), in_label], 1).logsumexp(1)


def _reached(log_p: Tensor, counts: Tensor, states: Tensor) -> Tensor:
    """Give the logarithm of each state's probability after the last step that counts."""
    emitted = log_p.gather(-1, states.expand(log_p.shape[0], *states.shape))
    never = filled(log_p, (states.shape[0], 2), _NEVER)
    # Labels that differ need no blank between them.
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
    """Give one length for each sample."""
    lengths = given if isinstance(given, Tensor) else tensor_beside(log_p, given, dtype="int64")
    if lengths.numel() != samples:
        raise ValueError(
            f"ctc_loss: {name} has shape {lengths.shape}, expected {samples}, one for each sample"
        )
    return lengths.long().reshape(samples)


def _padded(targets: Tensor, given: Any, lengths: Tensor) -> Tensor:
    """Give targets as rows of one length; what is behind their ends does not matter."""
    samples = lengths.shape[0]
    if targets.ndim == 2 or samples == 1:
        return targets.long().reshape(samples, -1)
    # Lengths in a tensor are not known here: no target is longer than all together.
    longest = targets.shape[0] if isinstance(given, Tensor) else max(given, default=0)
    starts = lengths.cumsum(0) - lengths
    places = starts.unsqueeze(-1) + arange_beside(targets, longest)
    return targets.long()[places.clamp(max=max(targets.shape[0] - 1, 0))]
