"""What to use instead of the public names and modules of PyTorch that GT does not have."""

from __future__ import annotations

import re

_SPARSE = "GT has no sparse tensors", "gt.sparse_coo_tensor returns a dense tensor"
_QUANTIZED = (
    "GT does not quantize",
    "smaller dtypes: model.half(), model.bfloat16() or gt.autocast",
)
_DEVICES = "GT has no devices to choose", "gt.workers(n) and gt.signal place the work"
_STORAGE = "the memory of a tensor is its worker's", "x.numpy() copies a tensor's values here"
_COMPILER = "GT does not compile Python", "gt.compile, or call the function as it is"
_SYMBOLS = "sizes are ints in GT", "int, float, max and min"
_LIBRARY = "a kernel of a library that PyTorch calls", "the function of gt.nn.functional"
_DTYPE = "GT has no such dtype", "gt.int8, gt.uint8, gt.int32, gt.float16 or gt.bfloat16"
_EXPORT = (
    "GT does not export programs",
    "gt.save(model.state_dict(), path), and export the model in PyTorch",
)
_CUSTOM = "operations are registered in another way", "gt.custom_op, or gt.autograd.Function"
_MEASURE = "GT does not have this tool", "gt top, gt trace, and gt.profiler"

#: Patterns of names in `gt`, each with the reason for which a name is missing, and a hint.
NAMES = (
    (r"q(u?int\d+(x\d)?|scheme|_.*)|quint.*|int_repr|(de)?quantize.*|quantized_.*", _QUANTIZED),
    (r"fake_quantize.*|fused_moving_avg.*|fbgemm_.*|per_(tensor|channel)_.*", _QUANTIZED),
    (r"sparse_\w+|(c?col|c?row|crow)_indices.*|[hs]spmm|sspaddmm|saddmm|hsmm|smm|dsmm", _SPARSE),
    (r"jagged", ("GT has no nested tensors", "gt.nn.utils.rnn.pad_sequence pads them")),
    (r"\w*Storage", _STORAGE),
    (r"(sym|Sym)_?\w+", _SYMBOLS),
    (r"(cudnn|miopen|mkldnn)_\w+|\w+_(cell|relu|tanh)|gru|lstm|batch_norm_\w+", _LIBRARY),
    (r"u?int[1-7]|uint(16|32|64)|bits\w*|b?complex32|chalf|float[48]_\w+", _DTYPE),
    (r"Script\w+|\w+Type|Graph\w*|CompilationUnit|Node|Value|Block", _COMPILER),
    (r"parse_\w+|import_ir_\w+", _COMPILER),
    (r"cond|while_loop", ("the graph of a program is not recorded", "an if of Python")),
    (r"(is|set)_warn_always.*", ("warnings are Python's", 'warnings.simplefilter("always")')),
    (r"Event|Stream|get_device_module", _DEVICES),
    (r"(kl_div|\w+_loss|binary_cross_entropy_with_logits|embedding_bag|instance_norm)",
     ("PyTorch's takes numbers for its options", "the function of that name in gt.nn.functional")),
)  # fmt: skip

#: Patterns of modules below `gt`, likewise. Below a module without a folder Python itself refuses.
MODULES = (
    (r"library|classes|ops\.\w+", _CUSTOM),
    (r"mtia|numa|(xpu|cuda)\..*", _DEVICES),
    (r"monitor|utils\.(benchmark\.|throughput_benchmark|bundled_inputs|show_pickle).*", _MEASURE),
    (r"nn\.(intrinsic|quantizable|quantized|qat)(\..*)?|(ao|quantization)\..*", _QUANTIZED),
    (r"nn\.grad", ("gradients of convolutions are computed by autograd", "gt.autograd.grad")),
    (r"nn\.parallel\.\w+", ("one process drives all workers", "gt.signal shards tensors")),
    (r"utils\.(mkldnn|model_dump)", _EXPORT),
    (r"(_dynamo|_inductor|utils\.jit|utils\.viz)(\..*)?", _COMPILER),
    (r"distributed\..*", ("one process drives all workers", "gt.signal shards tensors over them")),
    (r"optim\.functional", ("PyTorch keeps it for its own use", "the optimizers of gt.optim")),
)


def why(name: str, patterns: tuple[tuple[str, tuple[str, str]], ...] = NAMES) -> str | None:
    """Return why a name of PyTorch is missing and what to use instead, or None if it is unknown.

    Args:
        name: the name without `gt.`.
        patterns: `NAMES` or `MODULES`.
    """
    for pattern, (reason, hint) in patterns:
        if re.fullmatch(pattern, name):
            return f"{reason}\n  hint: {hint}"
    return None


class LastFinder:
    """A finder of modules that comes last, and raises an error for those of PyTorch."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise an error that says what to use instead; return None for unknown modules.

        Args:
            name: the module's full name, such as "gt.library", which no other finder has found.
            path: the folders of its package.
            target: the module that is loaded again.
        """
        text = why(name[3:], MODULES) if name.startswith("gt.") else None
        if text is not None:
            raise ModuleNotFoundError(f"GT has no module '{name}': {text}", name=name)
