"""Recurrent networks over sequences."""

from __future__ import annotations

import math
import numbers
from functools import partial
from typing import TYPE_CHECKING, Any

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt.nn.functional import dropout as drop
from gt.nn.functional import linear

from . import init
from .module import Module
from .parameter import Parameter
from .recurrent_cells import States, gru_step, lstm_step, rnn_step
from .recurrent_times import Step, through_even_times, through_times
from .utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """The base class of multi-layer recurrent networks: `RNN`, `LSTM` and `GRU`.

    One matrix product projects the inputs of all time steps; each step then projects the hidden
    state.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        _check(input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional = float(dropout), bidirectional
        self.proj_size = proj_size
        self._make_parameters({"device": device, "dtype": dtype})
        self.reset_parameters()

    def _make_parameters(self, kind: dict[str, Any]) -> None:
        width, directions = _GATES[self.mode] * self.hidden_size, len(self._suffixes())
        given = self.proj_size or self.hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(self.num_layers):
            taken = self.input_size if layer == 0 else given * directions
            for suffix in self._suffixes():
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (width, taken),
                    "weight_hh": (width, given),
                }
                if self.bias:
                    shapes |= {"bias_ih": (width,), "bias_hh": (width,)}
                if self.proj_size:
                    shapes["weight_hr"] = (self.proj_size, self.hidden_size)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(gt.empty(*shape, **kind)))
                self._all_weights.append(names)

    def _suffixes(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Initialize all parameters, uniformly on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: in PyTorch, this arranges the weights in memory for cuDNN."""

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    # Forward.

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Tensor | Any, Any]:
        """Return the last layer's output at all time steps, and the last states of each layer.

        Args:
            input: (time, batch, features), (batch, time, features) with `batch_first`, (time,
                features) without a batch, or a `PackedSequence`.
            hx: the initial states, zeros by default.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self.mode.partition('_')[0]}: Expected input to be 2D or 3D, got "
                f"{input.dim()}D instead"
            )
        is_batched = input.dim() == 3
        batch_axis = 0 if self.batch_first else 1
        given = input if is_batched else input.unsqueeze(batch_axis)
        self._check_input(given, 3)
        times = given.transpose(0, 1) if self.batch_first else given
        states = self._states(hx, times, times.shape[1], is_batched)
        sizes = [times.shape[1]] * times.shape[0]
        flat = times.reshape(-1, times.shape[2])
        flat, last = self._layers(flat, sizes, states)
        output = flat.reshape(*times.shape[:2], flat.shape[-1])
        output = output.transpose(0, 1) if self.batch_first else output
        if not is_batched:
            output, last = output.squeeze(batch_axis), tuple(s.squeeze(1) for s in last)
        return output, last if self.mode == "LSTM" else last[0]

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        self._check_input(packed.data, 2)
        sizes = [int(size) for size in packed.batch_sizes.tolist()]
        states = self._states(hx, packed.data, sizes[0], True)
        if hx is not None and packed.sorted_indices is not None:
            states = tuple(state.index_select(1, packed.sorted_indices) for state in states)
        data, last = self._layers(packed.data, sizes, states)
        if packed.unsorted_indices is not None:
            last = tuple(state.index_select(1, packed.unsorted_indices) for state in last)
        return packed._with(data), last if self.mode == "LSTM" else last[0]

    def _check_input(self, input: Tensor, axes: int) -> None:
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype and not gt.is_autocast_enabled():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        if input.dim() != axes:
            raise RuntimeError(f"input must have {axes} dimensions, got {input.dim()}")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.shape[-1]}"
            )

    def _states(self, hx: Any, input: Tensor, batch: int, is_batched: bool) -> States:
        """Return the initial states, each of shape (layers * directions, batch, width)."""
        count = self.num_layers * len(self._suffixes())
        widths = [self.proj_size or self.hidden_size, self.hidden_size]
        widths = widths if self.mode == "LSTM" else widths[:1]
        if hx is None:
            return tuple(input.new_zeros(count, batch, width) for width in widths)
        given = tuple(hx) if self.mode == "LSTM" else (hx,)
        wanted_axes = 3 if is_batched else 2
        for state in given:
            if state.dim() != wanted_axes:
                raise RuntimeError(
                    f"For {'batched 3-D' if is_batched else 'unbatched 2-D'} input, hx should also "
                    f"be {wanted_axes}-D but got {state.dim()}-D tensor"
                )
        states = given if is_batched else tuple(state.unsqueeze(1) for state in given)
        for state, width in zip(states, widths, strict=True):
            if tuple(state.shape) != (count, batch, width):
                raise RuntimeError(
                    f"Expected hidden size {(count, batch, width)}, got {list(state.shape)}"
                )
        return states

    def _layers(self, data: Tensor, sizes: list[int], states: States) -> tuple[Tensor, States]:
        """Return the output of the last layer, and the last states of all layers.

        Args:
            data: the rows of all time steps, concatenated.
            sizes: the number of rows of each time step; it never increases.
            states: the initial states.
        """
        suffixes, last = self._suffixes(), []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(suffixes):
                at = layer * len(suffixes) + direction
                begin = tuple(state[at] for state in states)
                output, end = self._direction(data, sizes, begin, f"_l{layer}{suffix}")
                outputs.append(output)
                last.append(end)
            data = gt.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
            if self.dropout and layer < self.num_layers - 1:
                data = drop(data, self.dropout, self.training)
        return data, tuple(gt.stack(parts) for parts in zip(*last, strict=True))

    def _direction(
        self, data: Tensor, sizes: list[int], begin: States, name: str
    ) -> tuple[Tensor, States]:
        weight, bias = getattr(self, f"weight_hh{name}"), getattr(self, f"bias_hh{name}", None)
        input_weight = getattr(self, f"weight_ih{name}")
        input_bias = getattr(self, f"bias_ih{name}", None)
        projection = getattr(self, f"weight_hr{name}", None)
        step: Step = gru_step
        if self.mode != "GRU":
            # Both biases are added once, to the inputs of all time steps.
            input_bias, bias = (input_bias if bias is None else input_bias + bias), None
            step = partial(lstm_step, projection=projection)
            if self.mode != "LSTM":
                step = partial(rnn_step, nonlinearity=self.mode.partition("_")[2].lower())
        inputs = linear(data, input_weight, input_bias)
        is_even = sizes[0] == sizes[-1] and projection is None
        go = through_even_times if is_even else through_times
        return go(step, sizes, "reverse" in name, inputs, weight, bias, begin)


def _check(
    input_size: Any,
    hidden_size: Any,
    num_layers: int,
    bias: Any,
    batch_first: Any,
    dropout: Any,
    proj_size: int,
) -> None:
    """Raise an error if an option is invalid."""
    is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
    if not is_number or not 0 <= dropout <= 1:
        raise ValueError(
            f"dropout should be a number in range [0, 1], the probability of an element being "
            f"zeroed, not {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={dropout} and "
            f"num_layers={num_layers}",
        )
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(value, int):
            raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """A plain recurrent network (Elman, 1990), with tanh or relu.

    Args:
        input_size: the number of features of the input.
        hidden_size: the number of features of the hidden state.
        num_layers: the number of stacked layers.
        nonlinearity: "tanh" or "relu".
        bias: whether the layers have biases.
        batch_first: whether input and output are (batch, time, features).
        dropout: the probability of dropout between layers.
        bidirectional: whether sequences are read in both directions.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self_nonlinearity, args = args[3], args[:3] + args[4:]
            kwargs.pop("nonlinearity", None)
        else:
            self_nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self_nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self_nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self_nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = self_nonlinearity

    if TYPE_CHECKING:

        def forward(self, input: Any, hx: Any = None) -> tuple[Tensor | Any, Tensor]:
            """Return the output, and the last hidden states."""


class LSTM(RNNBase):
    """A long short-term memory (Hochreiter and Schmidhuber, 1997); arguments as for `RNN`.

    With `proj_size`, the hidden state is projected to fewer features (Sak et al., 2014).
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__("LSTM", *args, **kwargs)

    if TYPE_CHECKING:

        def forward(self, input: Any, hx: Any = None) -> tuple[Tensor | Any, tuple[Tensor, Tensor]]:
            """Return the output, and the last hidden and cell states."""


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014); arguments as for `RNN`."""

    def __init__(self, *args: Any, **kwargs: Any):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    if TYPE_CHECKING:

        def forward(self, input: Any, hx: Any = None) -> tuple[Tensor | Any, Tensor]:
            """Return the output, and the last hidden states."""
