"""The works of operations.py for both sides: functions that return when all is computed."""

import subprocess
import sys

THREADS = 2
MILLION = 1 << 20


def works(side: str) -> dict:
    """Return the works by name; `side` is `torch` or `gt`."""
    if side == "torch":
        import torch as lib

        lib.set_num_threads(THREADS)
        found = _all(lib)
        return found
    import gt as lib

    # Fetching the last element of each result waits for its computation.
    return {name: _finished(lib, run) for name, run in _all(lib).items()}


def _finished(lib, run):
    def finish():
        for result in run():
            if isinstance(result, lib.Tensor):
                result.flatten()[-1].item()

    return finish


def _all(lib) -> dict:
    return {**_layers(lib), **_pictures(lib), **_order(lib), **_matrices(lib), **_values(lib)}


def _drawn(lib):
    import numpy as np

    random = np.random.default_rng(0)

    def tensor(*shape):
        return lib.from_numpy(random.standard_normal(shape).astype("float32"))

    return tensor


def _forward(lib, function, *operands):
    def run():
        with lib.no_grad():
            result = function(*operands)
        return result if isinstance(result, tuple) else [result]

    return run


def _both(lib, function, *operands):
    leaves = [operand.detach().requires_grad_() for operand in operands]
    with lib.no_grad():
        seed = lib.ones_like(function(*operands))

    def run():
        for leaf in leaves:
            leaf.grad = None
        result = function(*leaves)
        result.backward(seed)
        return [result, *(leaf.grad for leaf in leaves)]

    return run


def _layers(lib) -> dict:
    """Normalizations, softmax, a loss and attention: forward and backward."""
    tensor, functional = _drawn(lib), lib.nn.functional
    x, scale, shift = tensor(2048, 1024), tensor(1024), tensor(1024)
    classes = (lib.arange(2048) * 7) % 1024
    q, k, v = tensor(8, 8, 512, 64), tensor(8, 8, 512, 64), tensor(8, 8, 512, 64)

    def attention(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    return {
        "layer_norm 2048 x 1024": _both(
            lib, lambda x, w, b: functional.layer_norm(x, (1024,), w, b), x, scale, shift
        ),
        "rms_norm 2048 x 1024": _both(
            lib, lambda x, w: functional.rms_norm(x, (1024,), w), x, scale
        ),
        "softmax 2048 x 1024": _both(lib, lambda x: functional.softmax(x, -1), x),
        "cross_entropy 2048 x 1024": _both(lib, lambda x: functional.cross_entropy(x, classes), x),
        "attention, causal, 8 x 8 x 512 x 64": _both(lib, attention, q, k, v),
    }


def _pictures(lib) -> dict:
    """Convolution, pooling and batch normalization, 8 x 64 x 56 x 56."""
    tensor, functional = _drawn(lib), lib.nn.functional
    images, weight, each = tensor(8, 64, 56, 56), tensor(64, 64, 3, 3), tensor(64, 1, 3, 3)
    scale, shift = tensor(64), tensor(64)

    def normalized(x, w, b):
        return functional.batch_norm(x, None, None, w, b, training=True)

    cases = {
        "conv2d 3 x 3": (lambda x, w: functional.conv2d(x, w, padding=1), images, weight),
        "conv2d 3 x 3, stride 2": (
            lambda x, w: functional.conv2d(x, w, stride=2, padding=1),
            images,
            weight,
        ),
        "conv2d 3 x 3, depthwise": (
            lambda x, w: functional.conv2d(x, w, padding=1, groups=64),
            images,
            each,
        ),
        "max_pool2d 2": (lambda x: functional.max_pool2d(x, 2), images),
        "batch_norm": (normalized, images, scale, shift),
    }
    return {name: _both(lib, *case) for name, case in cases.items()}


def _order(lib) -> dict:
    """Sorting, cumulative sums, gathers and scatters of a million elements."""
    tensor = _drawn(lib)
    x, table = tensor(MILLION), tensor(1 << 14, 64)
    places = (lib.arange(MILLION) * 7919) % MILLION
    rows = (lib.arange(1 << 14) * 7919) % (1 << 14)
    cases = {
        "sort": lambda: lib.sort(x)[0],
        "topk(50)": lambda: lib.topk(x, 50)[0],
        "cumsum": lambda: lib.cumsum(x, 0),
        "gather": lambda: lib.gather(x, 0, places),
        "scatter_add": lambda: lib.scatter_add(x, 0, places, x),
        "index_add": lambda: lib.index_add(table, 0, rows, table),
        "embedding": lambda: lib.nn.functional.embedding(rows, table),
    }
    return {f"{name}, 1M": _forward(lib, function) for name, function in cases.items()}


def _matrices(lib) -> dict:
    """Factorizations of 512 x 512, and a Fourier transform."""
    tensor = _drawn(lib)
    a, b, x = tensor(512, 512), tensor(512, 512), tensor(MILLION)
    symmetric = a + a.T
    cases = {
        "svd 512": lambda: lib.linalg.svd(a)[1],
        "eigh 512": lambda: lib.linalg.eigh(symmetric)[0],
        "qr 512": lambda: lib.linalg.qr(a)[0],
        "solve 512": lambda: lib.linalg.solve(a, b),
        "fft of 2^20": lambda: lib.fft.fft(x).real,
    }
    return {name: _forward(lib, function) for name, function in cases.items()}


def _values(lib) -> dict:
    """Random numbers, masks, and transfers of values to and from Python."""
    import numpy as np

    tensor = _drawn(lib)
    x, few, rows = tensor(MILLION), tensor(1000), lib.zeros(64, 1 << 14)
    row = np.ones(1 << 14, "float32")

    def filled():
        for i in range(64):
            rows[i] = lib.from_numpy(row)
        return rows

    def to_numpy():
        return np.array(x) if lib.__name__ == "torch" else x.numpy()

    cases = {
        "randn, 1M": lambda: lib.randn(MILLION),
        "x[x > 0], 1M": lambda: x[x > 0],
        "buf[i] = array, 64 rows": filled,
        "for v in t: float(v), 1,000": lambda: sum(float(v) for v in few),
        "numpy() of 4 MB, writable": to_numpy,
        "np.asarray of 4 MB": lambda: np.asarray(x),
        "import to the first printed result": lambda: _first_result(lib.__name__),
    }
    return {name: _forward(lib, function) for name, function in cases.items()}


def _first_result(name: str) -> None:
    program = f"import {name}; print({name}.tensor([1.0, 2.0]) + 1)"
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
