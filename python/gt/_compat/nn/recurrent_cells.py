"""Single steps of recurrent networks, as functions and as modules."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import linear

from . import init
from .module import Module
from .parameter import Parameter

#: The states of a step: the hidden state and, for an LSTM, the cell state.
States = tuple[Tensor, ...]


# Each step takes the projected input, the projected hidden state and the states.


def rnn_step(inputs: Tensor, hidden: Tensor, states: States, nonlinearity: str) -> States:
    """Return the next state of a plain recurrent network (Elman, 1990)."""
    following = inputs + hidden
    return (following.tanh() if nonlinearity == "tanh" else following.relu(),)


def lstm_step(
    inputs: Tensor, hidden: Tensor, states: States, projection: Tensor | None = None
) -> States:
    """Return the next states of an LSTM (Hochreiter and Schmidhuber, 1997; Sak et al., 2014)."""
    enter, keep, new, out = (inputs + hidden).chunk(4, -1)
    cell = keep.sigmoid() * states[1] + enter.sigmoid() * new.tanh()
    output = out.sigmoid() * cell.tanh()
    return (output if projection is None else linear(output, projection)), cell


def gru_step(inputs: Tensor, hidden: Tensor, states: States) -> States:
    """Return the next state of a gated recurrent unit (Cho et al., 2014)."""
    reset, update, new = inputs.chunk(3, -1)
    of_reset, of_update, of_new = hidden.chunk(3, -1)
    new = (new + (reset + of_reset).sigmoid() * of_new).tanh()
    return (new + (update + of_update).sigmoid() * (states[0] - new),)


class RNNCellBase(Module):
    """The base class of modules that compute one step: `RNNCell`, `LSTMCell` and `GRUCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        width = num_chunks * hidden_size
        kind = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(gt.empty(width, input_size, **kind))
        self.weight_hh = Parameter(gt.empty(width, hidden_size, **kind))
        if bias:
            self.bias_ih = Parameter(gt.empty(width, **kind))
            self.bias_hh = Parameter(gt.empty(width, **kind))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize all parameters, uniformly on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def _prepared(self, input: Tensor, hx: Any, count: int) -> tuple[Tensor, States, bool]:
        """Return the projected input and the states, as batches, and whether `input` is one."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        given = (hx,) if isinstance(hx, Tensor) else hx
        for state in given or ():
            if state.dim() not in (1, 2):
                raise ValueError(
                    f"{name}: Expected hidden to be 1D or 2D, got {state.dim()}D instead"
                )
        is_batched = input.dim() == 2
        input = input if is_batched else input.unsqueeze(0)
        if given is None:
            zeros = input.new_zeros(input.shape[0], self.hidden_size)
            states: States = (zeros,) * count
        else:
            states = tuple(given) if is_batched else tuple(s.unsqueeze(0) for s in given)
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]} expected "
                f"{self.input_size}"
            )
        for state in states:
            if state.shape[0] != input.shape[0] or state.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"{name}: hidden has shape {state.shape}, expected "
                    f"{(input.shape[0], self.hidden_size)}"
                )
        return linear(input, self.weight_ih, self.bias_ih), states, is_batched


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network: tanh(W_ih x + b_ih + W_hh h + b_hh), or with relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next hidden state."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        inputs, states, is_batched = self._prepared(input, hx, 1)
        projected = linear(states[0], self.weight_hh, self.bias_hh)
        (hidden,) = rnn_step(inputs, projected, states, self.nonlinearity)
        return hidden if is_batched else hidden.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the next hidden state and the next cell state."""
        inputs, states, is_batched = self._prepared(input, hx, 2)
        projected = linear(states[0], self.weight_hh, self.bias_hh)
        hidden, cell = lstm_step(inputs, projected, states)
        return (hidden, cell) if is_batched else (hidden.squeeze(0), cell.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next hidden state."""
        inputs, states, is_batched = self._prepared(input, hx, 1)
        projected = linear(states[0], self.weight_hh, self.bias_hh)
        (hidden,) = gru_step(inputs, projected, states)
        return hidden if is_batched else hidden.squeeze(0)
