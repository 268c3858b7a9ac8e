"""Layers with arguments and inputs, to compare PyTorch and GT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Make = Callable[[np.random.Generator], np.ndarray]


def floats(*shape: int) -> Make:
    """Numbers of a normal distribution, whose gradients are compared, too."""
    return lambda rng: rng.normal(size=shape).astype("float32")


def positive(*shape: int) -> Make:
    """Numbers between 0.1 and 0.9."""
    return lambda rng: rng.uniform(0.1, 0.9, size=shape).astype("float32")


def ints(high: int, *shape: int) -> Make:
    """Whole numbers below a limit."""
    return lambda rng: rng.integers(0, high, size=shape)


def signs(*shape: int) -> Make:
    """1 and -1, as floats."""
    return lambda rng: (rng.integers(0, 2, size=shape) * 2 - 1).astype("float32")


def bits(*shape: int) -> Make:
    """1 and 0, as floats."""
    return lambda rng: rng.integers(0, 2, size=shape).astype("float32")


def exactly(values: Any, dtype: str = "int64") -> Make:
    """The given numbers."""
    return lambda rng: np.array(values, dtype)


@dataclass
class Case:
    """A layer's name, arguments (arrays become tensors) and inputs."""

    name: str
    args: tuple
    inputs: list[Make]
    options: dict = field(default_factory=dict)
    #: How many of the inputs have gradients; targets have none.
    trained: int = 1
    #: Whether it is compared in evaluation mode, because it is random in training mode.
    evaluated: bool = False

    def __str__(self) -> str:
        told = [*map(repr, self.args), *(f"{key}={value}" for key, value in self.options.items())]
        return f"{self.name}({', '.join(told)})"


def case(name: str, *args: Any, on: Any, trained: int = 1, evaluated: bool = False, **options):
    """Return a case; `on` is one input or a list of them."""
    inputs = on if isinstance(on, list) else [on]
    return Case(name, args, inputs, options, trained, evaluated)


WEIGHTS = np.array([0.2, 1.0, 2.0, 0.5], "float32")

LINEAR = [
    case("Identity", 1, two=2, on=floats(3)),
    case("Linear", 4, 3, on=floats(5, 4)),
    case("Linear", 4, 3, False, on=floats(2, 5, 4)),
    case("Bilinear", 3, 4, 2, on=[floats(5, 3), floats(5, 4)], trained=2),
    case("Bilinear", 3, 4, 2, bias=False, on=[floats(5, 3), floats(5, 4)], trained=2),
    case("Flatten", on=floats(2, 3, 4)),
    case("Flatten", 0, 1, on=floats(2, 3, 4)),
    case("Unflatten", 1, (2, 3), on=floats(2, 6)),
    case("CosineSimilarity", on=[floats(3, 4), floats(3, 4)], trained=2),
    case("PairwiseDistance", 1.5, keepdim=True, on=[floats(3, 4), floats(3, 4)], trained=2),
    case("Embedding", 7, 3, 2, scale_grad_by_freq=True, on=ints(7, 2, 5), trained=0),
    case("Embedding", 7, 3, -1, 1.0, 1.5, on=ints(7, 2, 5), trained=0),
    case("EmbeddingBag", 7, 3, on=ints(7, 2, 5), trained=0),
    case("EmbeddingBag", 7, 3, 1.0, 1.0, mode="sum", padding_idx=1, on=ints(7, 2, 5), trained=0),
    case(
        "EmbeddingBag", 7, 3, mode="max", include_last_offset=True,
        on=[ints(7, 6), exactly([0, 2, 6])], trained=0,
    ),
    case(
        "EmbeddingBag", 7, 3, mode="sum",
        on=[ints(7, 6), exactly([0, 2]), floats(6)], trained=0,
    ),
]  # fmt: skip

CONVOLUTIONS = [
    case("Conv1d", 4, 6, 3, 2, 1, 1, 2, on=floats(2, 4, 9)),
    case("Conv1d", 2, 3, 3, padding="same", padding_mode="circular", on=floats(2, 2, 9)),
    case("Conv2d", 2, 4, (3, 2), stride=(1, 2), padding=(1, 0), bias=False, on=floats(2, 2, 6, 7)),
    case("Conv2d", 2, 4, 3, dilation=2, padding=2, padding_mode="reflect", on=floats(2, 6, 7)),
    case("Conv2d", 2, 4, 4, padding="same", padding_mode="replicate", on=floats(2, 2, 6, 7)),
    case("Conv3d", 2, 3, 2, padding="valid", on=floats(2, 2, 4, 4, 4)),
    case("ConvTranspose1d", 4, 6, 3, 2, 1, 1, 2, on=floats(2, 4, 5)),
    case("ConvTranspose2d", 2, 3, (3, 2), stride=2, dilation=2, on=floats(2, 2, 4, 5)),
    case("ConvTranspose3d", 2, 3, 2, bias=False, on=floats(2, 2, 3, 3, 3)),
    case("Fold", (4, 5), 2, 1, 1, 1, on=floats(2, 12, 30)),
    case("Unfold", (2, 3), padding=1, stride=2, on=floats(2, 2, 5, 6)),
    case("PixelShuffle", 2, on=floats(2, 8, 3, 3)),
    case("PixelUnshuffle", 2, on=floats(2, 2, 4, 4)),
    case("ChannelShuffle", 2, on=floats(2, 4, 3, 3)),
    case("Upsample", None, 2, "bilinear", True, on=floats(1, 2, 3, 3)),
    case("Upsample", (5,), mode="linear", on=floats(1, 2, 3)),
    case("Upsample", scale_factor=(2.0, 3.0), on=floats(1, 2, 3, 3)),
    case("UpsamplingNearest2d", scale_factor=2, on=floats(1, 2, 3, 3)),
    case("UpsamplingBilinear2d", 7, on=floats(1, 2, 3, 3)),
]

SPACE = [(9,), (8, 9), (6, 5, 7)]


def _of_axes(name: str, *args: Any, **options: Any) -> list[Case]:
    """Return the cases of `name` with 1d, 2d and 3d inputs."""
    return [
        case(f"{name}{axes}d", *args, on=floats(2, 4, *SPACE[axes - 1]), **options)
        for axes in (1, 2, 3)
    ]


POOLING = [
    *_of_axes("MaxPool", 3, 2, 1, ceil_mode=True),
    *_of_axes("MaxPool", 2, dilation=2, return_indices=True),
    *_of_axes("AvgPool", 3, 2, 1),
    *_of_axes("AvgPool", 2, ceil_mode=True, count_include_pad=False),
    case("AvgPool2d", 2, divisor_override=3, on=floats(1, 2, 4, 4)),
    *_of_axes("LPPool", 2, 3, 2),
    *_of_axes("AdaptiveAvgPool", 3),
    *_of_axes("AdaptiveMaxPool", 2, return_indices=True),
    case("AdaptiveAvgPool2d", (3, None), on=floats(2, 3, 7, 5)),
    case("FractionalMaxPool2d", 2, (3, 4), _random_samples=np.full((2, 4, 2), 0.3, "f4"),
         on=floats(2, 4, 8, 9)),
    case("FractionalMaxPool3d", 2, output_ratio=0.5, return_indices=True,
         _random_samples=np.full((2, 4, 3), 0.3, "f4"), on=floats(2, 4, 6, 6, 6)),
    case("MaxUnpool1d", 2, on=[floats(1, 2, 2), exactly([[[1, 2], [0, 3]]])]),
    case("MaxUnpool2d", 2, 2, on=[floats(1, 1, 1, 2), exactly([[[[1, 6]]]])]),
    case("MaxUnpool3d", 2, on=[floats(1, 1, 1, 1, 1), exactly([[[[[5]]]]])]),
]  # fmt: skip

PADDINGS = [
    *_of_axes("CircularPad", 1),
    *_of_axes("ReflectionPad", 2),
    *_of_axes("ReplicationPad", 1),
    *_of_axes("ZeroPad", 1),
    *_of_axes("ConstantPad", 1, 2.5),
    case("ZeroPad2d", (1, 2, 0, -1), on=floats(1, 2, 4, 4)),
    case("CircularPad1d", (1, 2), on=floats(2, 4)),
]

NORMALIZATIONS = [
    *_of_axes("BatchNorm", 4),
    *_of_axes("BatchNorm", 4, evaluated=True),
    *_of_axes("BatchNorm", 4, 1e-3, None, False),
    *_of_axes("BatchNorm", 4, track_running_stats=False, bias=False),
    case("BatchNorm1d", 3, on=floats(6, 3)),
    case("SyncBatchNorm", 4, on=floats(3, 4, 2)),
    *_of_axes("InstanceNorm", 4),
    *_of_axes("InstanceNorm", 4, affine=True, track_running_stats=True),
    *_of_axes("InstanceNorm", 4, track_running_stats=True, evaluated=True),
    case("InstanceNorm1d", 4, on=floats(4, 5)),
    case("GroupNorm", 2, 4, on=floats(2, 4, 3)),
    case("GroupNorm", 2, 4, 1e-3, False, on=floats(2, 4, 3)),
    case("GroupNorm", 2, 4, bias=False, on=floats(2, 4, 3)),
    case("LayerNorm", 4, on=floats(3, 4)),
    case("LayerNorm", (3, 4), 1e-3, bias=False, on=floats(2, 3, 4)),
    case("LayerNorm", [4], elementwise_affine=False, on=floats(3, 4)),
    case("RMSNorm", 4, on=floats(3, 4)),
    case("RMSNorm", (3, 4), 1e-3, False, on=floats(2, 3, 4)),
    case("LocalResponseNorm", 2, 1e-2, on=floats(2, 5, 3)),
    # PyTorch's gradient is not that of its result: it fails gradcheck.
    case("CrossMapLRN2d", 3, 1e-2, on=floats(2, 2, 3, 3), trained=0),
]

ACTIVATIONS = [
    *[
        case(name, on=floats(4, 6))
        for name in "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU "
        "LogSigmoid Mish PReLU ReLU ReLU6 SELU Sigmoid SiLU Softplus Softshrink Softsign Tanh "
        "Tanhshrink".split()
    ],
    case("RReLU", on=floats(4, 6), evaluated=True),
    case("Threshold", 0.1, 20.0, on=floats(4, 6)),
    case("PReLU", 3, 0.5, on=floats(2, 3, 4)),
    case("Hardtanh", -0.5, 2.0, on=floats(4, 6)),
    case("GELU", "tanh", on=floats(4, 6)),
    case("GLU", 0, on=floats(4, 6)),
    case("ELU", 0.5, on=floats(4, 6)),
    case("CELU", 0.5, on=floats(4, 6)),
    case("Softplus", 2.0, 1.0, on=floats(4, 6)),
    case("LeakyReLU", 0.5, on=floats(4, 6)),
    *[case(name, 1, on=floats(4, 6)) for name in ("Softmax", "Softmin", "LogSoftmax")],
    case("Softmax2d", on=floats(2, 3, 2, 2)),
    *[
        case(name, 0.3, on=floats(2, 3, 4), evaluated=True)
        for name in ("Dropout", "Dropout1d", "AlphaDropout", "FeatureAlphaDropout")
    ],
    case("Dropout2d", 0.3, on=floats(2, 3, 4, 4), evaluated=True),
    case("Dropout3d", on=floats(2, 3, 4, 4, 4), evaluated=True),
]

PAIR = [floats(4, 5), floats(4, 5)]
TRIPLE = [floats(4, 5), floats(4, 5), floats(4, 5)]

LOSSES = [
    *[
        case(name, reduction=reduction, on=inputs, trained=trained)
        for reduction in ("mean", "sum", "none")
        for name, inputs, trained in [
            ("L1Loss", PAIR, 2),
            ("MSELoss", PAIR, 2),
            ("SmoothL1Loss", PAIR, 2),
            ("HuberLoss", PAIR, 2),
            ("KLDivLoss", [floats(4, 5), positive(4, 5)], 1),
            ("PoissonNLLLoss", [floats(4, 5), positive(4, 5)], 1),
            ("GaussianNLLLoss", [*PAIR, positive(4, 5)], 3),
            ("BCELoss", [positive(4, 5), bits(4, 5)], 1),
            ("BCEWithLogitsLoss", [floats(4, 5), bits(4, 5)], 1),
            ("HingeEmbeddingLoss", [floats(4, 5), signs(4, 5)], 1),
            ("SoftMarginLoss", [floats(4, 5), signs(4, 5)], 1),
            ("MultiLabelSoftMarginLoss", [floats(4, 5), bits(4, 5)], 1),
            ("MultiLabelMarginLoss", [floats(2, 4), exactly([[1, 3, -1, 0], [0, -1, 1, 2]])], 1),
            ("MultiMarginLoss", [floats(4, 5), ints(5, 4)], 1),
            ("CosineEmbeddingLoss", [*PAIR, signs(4)], 2),
            ("MarginRankingLoss", [floats(4), floats(4), signs(4)], 2),
            ("TripletMarginLoss", TRIPLE, 3),
            ("TripletMarginWithDistanceLoss", TRIPLE, 3),
            ("NLLLoss", [floats(5, 4), ints(4, 5)], 1),
            ("CrossEntropyLoss", [floats(5, 4), ints(4, 5)], 1),
        ]
    ],
    case("KLDivLoss", reduction="batchmean", log_target=True, on=PAIR, trained=2),
    case("SmoothL1Loss", beta=0.3, on=PAIR),
    case("HuberLoss", "sum", 0.3, on=PAIR),
    case("PoissonNLLLoss", False, True, on=[positive(4, 5), positive(4, 5)]),
    case("GaussianNLLLoss", full=True, eps=0.5, on=[*PAIR, positive(4, 5)]),
    case("BCELoss", WEIGHTS, on=[positive(3, 4), bits(3, 4)]),
    case("BCEWithLogitsLoss", WEIGHTS, pos_weight=WEIGHTS, on=[floats(3, 4), bits(3, 4)]),
    case("NLLLoss", WEIGHTS, None, 1, on=[floats(5, 4), ints(4, 5)]),
    case("NLLLoss2d", on=[floats(2, 4, 3, 3), ints(4, 2, 3, 3)]),
    case("CrossEntropyLoss", WEIGHTS, on=[floats(5, 4), exactly([0, -100, 2, 3, 1])]),
    case("CrossEntropyLoss", WEIGHTS, None, 2, None, "sum", 0.1,
         on=[floats(2, 4, 3), ints(4, 2, 3)]),
    case("CrossEntropyLoss", on=[floats(5, 4), positive(5, 4)]),
    case("LinearCrossEntropyLoss", 6, 4, bias=True, on=[floats(5, 6), ints(4, 5)]),
    case("LinearCrossEntropyLoss", 6, 4, out_features=(2,), weight=WEIGHTS, label_smoothing=0.1,
         on=[floats(5, 6), ints(4, 5, 2)]),
    case("MultiLabelSoftMarginLoss", WEIGHTS, on=[floats(3, 4), bits(3, 4)]),
    case("MultiMarginLoss", 2, 0.5, WEIGHTS, on=[floats(3, 4), ints(4, 3)]),
    case("HingeEmbeddingLoss", 2.0, on=[floats(4, 5), signs(4, 5)]),
    case("CosineEmbeddingLoss", 0.2, on=[*PAIR, signs(4)], trained=2),
    case("MarginRankingLoss", 0.3, on=[floats(4), floats(4), signs(4)], trained=2),
    case("TripletMarginLoss", 0.7, 1.0, swap=True, on=TRIPLE, trained=3),
    case("TripletMarginWithDistanceLoss", margin=2.0, swap=True, on=TRIPLE, trained=3),
    case("CTCLoss", on=[lambda rng: np.log(rng.dirichlet(np.ones(4), (8, 2))).astype("f4"),
                        exactly([[1, 2, 3], [2, 2, 1]]), exactly([8, 8]), exactly([3, 2])]),
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [5, 10], 2.0, True,
         on=[floats(6, 8), exactly([0, 6, 12, 19, 4, 9])]),
]  # fmt: skip

#: Layers that infer their sizes from the first input.
LAZY = [
    case("LazyLinear", 3, on=floats(5, 4)),
    *[
        case(f"Lazy{name}{axes}d", 4, 2, 2, bias=bias, on=floats(2, 3, *SPACE[axes - 1]))
        for name in ("Conv", "ConvTranspose")
        for axes in (1, 2, 3)
        for bias in (True, False)
    ],
    *_of_axes("LazyBatchNorm"),
    *_of_axes("LazyBatchNorm", 1e-3, affine=False),
    *_of_axes("LazyInstanceNorm", affine=True, track_running_stats=True),
]

ALL = LINEAR + CONVOLUTIONS + POOLING + PADDINGS + NORMALIZATIONS + ACTIVATIONS + LOSSES + LAZY
