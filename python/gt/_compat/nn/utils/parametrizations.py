"""Common parametrizations: orthogonal matrices, weight and spectral normalization."""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt._public import show_callers
from gt.autograd import no_grad
from gt.nn.functional import normalize

from ..module import Module
from . import parametrize
from .spectral_norm import as_matrix, output_axis
from .weight_norm import norm_except, normed

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _Orthogonal(Module):
    """A parametrization of orthogonal matrices by lower triangular ones.

    With `base`, the matrix B of the dynamic trivialization framework, the result is B times an
    orthogonal matrix that starts as the identity (Lezcano-Casado, Trivializations for
    Gradient-Based Optimization on Manifolds, https://arxiv.org/abs/1909.09501).
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.use_trivialization = use_trivialization
        self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """Return the orthogonal matrix for a tensor of the same shape."""
        is_wide = x.size(-2) < x.size(-1)
        x = x.mT if is_wide else x
        q = _reflected(x) if self.orthogonal_map == "householder" else self._rotated(x)
        if self.base is not None:
            q = self.base @ q
        return q.mT if is_wide else q

    def _rotated(self, x: Tensor) -> Tensor:
        """Apply the matrix exponential or Cayley map to a tall matrix made skew-symmetric."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = gt.cat([x, x.new_zeros(*x.shape[:-1], n - k)], dim=-1)
        skew = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = gt.matrix_exp(skew)
        else:
            identity = gt.eye(n, dtype=x.dtype)
            q = gt.linalg.solve(identity - skew / 2, identity + skew / 2)
        return q[..., :k]

    @no_grad()
    def right_inverse(self, q: Tensor) -> Tensor:
        """Return the tensor for an orthogonal matrix; other matrices are orthogonalized first."""
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        is_wide = q.size(-2) < q.size(-1)
        tall = q.mT if is_wide else q
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            reflectors = _reflectors(tall)
            return reflectors.mT if is_wide else reflectors
        n, k = tall.shape[-2:]
        if n == k:
            # An orthogonal matrix is kept as it is; the workers choose, so nothing waits for them.
            self.base = gt.where(_is_orthogonal(tall), tall, _make_orthogonal(tall))
        else:
            more = gt.randn(*tall.shape[:-1], n - k, dtype=tall.dtype)
            self.base = _make_orthogonal(gt.cat([tall, more], dim=-1))
        return -gt.eye(*q.shape[-2:], dtype=q.dtype).expand(q.shape).clone()


def _is_orthogonal(q: Tensor) -> Tensor:
    """Return whether all columns are orthonormal, up to rounding, as a tensor of shape ()."""
    n, k = q.shape[-2:]
    error = (q.mH @ q - gt.eye(k, dtype=q.dtype)).abs()
    return error.max() <= 10.0 * n * gt.finfo(q.dtype).eps


def _make_orthogonal(a: Tensor) -> Tensor:
    """Return the factor Q of tall matrices QR, where R has a positive diagonal."""
    x, tau = gt.geqrf(a)
    q = gt.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _reflected(x: Tensor) -> Tensor:
    """Return the product of the reflections below the diagonal, with the signs of the diagonal."""
    below = x.tril(diagonal=-1)
    tau = 2.0 / (1.0 + (below * below).sum(dim=-2))
    q = gt.linalg.householder_product(below, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)


def _reflectors(q: Tensor) -> Tensor:
    """Return the tensor that `_reflected` maps to an orthogonal matrix."""
    a, tau = gt.geqrf(q)
    signs = a.diagonal(dim1=-2, dim2=-1).sign()
    signs = gt.where(tau == 0.0, -signs, signs)
    return a.diagonal_scatter(signs, dim1=-2, dim2=-1)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normed(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except(weight, self.dim), weight


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ):
        super().__init__()
        axes = weight.dim()
        if not -axes <= dim < axes:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-axes}, {axes - 1}] but "
                f"got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps, self.n_power_iterations = dim % axes, eps, n_power_iterations
        if axes > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = (matrix.new_empty(size).normal_() for size in matrix.shape)
            self.register_buffer("_u", normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", normalize(v, dim=0, eps=eps))
            self._iterate(matrix, 15)

    @no_grad()
    def _iterate(self, matrix: Tensor, times: int) -> None:
        """Run power iteration, towards the singular vectors of the largest singular value."""
        for _ in range(times):
            self._u.copy_(normalize(gt.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(gt.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.dim() == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        return weight / gt.vdot(self._u, gt.mv(matrix, self._v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def orthogonal(
    module: Any,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Any:
    """Parametrize a matrix, or a batch of them, to have orthonormal columns (or rows, if fewer).

    Args:
        module: the module, which is changed.
        name: the name of the parameter or buffer.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; by default "matrix_exp" for square
            and complex matrices, otherwise "householder".
        use_trivialization: whether to keep a buffer `base`, at which the result starts.

    Returns:
        The module. With `use_trivialization` or "householder", an orthogonal matrix keeps its
        value, and another matrix is replaced by the factor Q of its QR decomposition.

    Raises:
        ValueError: the tensor does not exist or has fewer than two axes, or the map is unknown.

    >>> layer = gt.nn.utils.parametrizations.orthogonal(gt.nn.Linear(3, 3))
    >>> gt.allclose(layer.weight @ layer.weight.T, gt.eye(3), atol=1e-5)
    True
    """
    weight = _weight(module, name)
    if weight.dim() < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.dim()} dimensions."
        )
    if orthogonal_map is None:
        is_exponential = weight.size(-2) == weight.size(-1) or weight.is_complex()
        orthogonal_map = "matrix_exp" if is_exponential else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
            f"Got: {orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight as `g * v / |v|`: a magnitude and a direction.

    Args:
        module: the module, which is changed.
        name: the name of the weight.
        dim: the axis along which each slice has a norm; None for one norm of the whole tensor.

    Returns:
        The module. `g` is `parametrizations.weight.original0`, `v` is `original1`. States of the
        older `weight_norm` can be loaded, too.

    Salimans and Kingma, Weight Normalization, https://arxiv.org/abs/1602.07868
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_older_names(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        older = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in older):
            for index, key in enumerate(older):
                new = f"{prefix}parametrizations.{name}.original{index}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(take_older_names)
    return module


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Parametrize a weight as divided by its largest singular value, found by power iteration.

    Args:
        module: the module, which is changed.
        name: the name of the weight; a vector is divided by its norm.
        n_power_iterations: the number of power iterations at each use in training mode.
        eps: the smallest norm that a vector is divided by.
        dim: the axis of the outputs; by default 0, and 1 for transposed convolutions.

    Returns:
        The module.

    Miyato et al., Spectral Normalization for Generative Adversarial Networks,
    https://arxiv.org/abs/1802.05957
    """
    weight = _weight(module, name)
    dim = output_axis(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


def _weight(module: Any, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


show_callers(globals())
