"""Cells of recurrent networks, which save a workspace for their derivatives.

Gates are concatenated along axis 1, in the order of PyTorch's fused kernels.
"""

from __future__ import annotations

import gt
from gt.torch.kernels import kernel


def _biased(gates, bias):
    return gates if bias is None else gates + bias


@kernel("_thnn_fused_lstm_cell")
def lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = _biased(input_gates, input_bias) + _biased(hidden_gates, hidden_bias)
    into, forget, cell, out = gates.chunk(4, 1)
    into, forget, out = gt.sigmoid(into), gt.sigmoid(forget), gt.sigmoid(out)
    cell = gt.tanh(cell)
    cy = forget * cx + into * cell
    return out * gt.tanh(cy), cy, gt.cat([into, forget, cell, out], 1)


@kernel("_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    into, forget, cell, out = workspace.chunk(4, 1)
    shown = gt.tanh(cy)
    of_out, of_cell = gt.zeros_like(cx), gt.zeros_like(cx) if grad_cy is None else grad_cy
    if grad_hy is not None:
        of_out = grad_hy * shown * out * (1 - out)
        of_cell = of_cell + grad_hy * out * (1 - shown * shown)
    of_gates = gt.cat(
        [
            of_cell * cell * into * (1 - into),
            of_cell * cx * forget * (1 - forget),
            of_cell * into * (1 - cell * cell),
            of_out,
        ],
        1,
    )
    return of_gates, of_cell * forget, of_gates.sum(0) if has_bias else None


@kernel("_thnn_fused_gru_cell")
def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    reset_in, update_in, new_in = _biased(input_gates, input_bias).chunk(3, 1)
    reset_by, update_by, new_by = _biased(hidden_gates, hidden_bias).chunk(3, 1)
    reset, update = gt.sigmoid(reset_in + reset_by), gt.sigmoid(update_in + update_by)
    new = gt.tanh(new_in + reset * new_by)
    return new + update * (hx - new), gt.cat([reset, update, new, hx, new_by], 1)


@kernel("_thnn_fused_gru_cell_backward")
def gru_cell_backward(grad_hy, workspace, has_bias):
    reset, update, new, hx, new_by = workspace.chunk(5, 1)
    of_new = grad_hy * (1 - update) * (1 - new * new)
    of_update = grad_hy * (hx - new) * update * (1 - update)
    of_reset = of_new * new_by * reset * (1 - reset)
    of_input = gt.cat([of_reset, of_update, of_new], 1)
    of_hidden = gt.cat([of_reset, of_update, of_new * reset], 1)
    return (
        of_input,
        of_hidden,
        grad_hy * update,
        of_input.sum(0) if has_bias else None,
        of_hidden.sum(0) if has_bias else None,
    )
