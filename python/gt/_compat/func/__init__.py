"""Function transforms: `vmap`, gradients and Jacobians, modules as functions.

They follow PyTorch's `torch.func`. They may be nested: `vmap(grad(loss), in_dims=(None, 0))`
computes the gradients of each sample.
"""

from gt._public import show_callers

from .gradients import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
)
from .mapping import vmap
from .modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "value_and_grad",
    "vjp",
    "vmap",
]

show_callers(globals())
