"""Modules, losses and activations for neural networks."""

from typing import TYPE_CHECKING

from gt._absent import add_absent_modules
from gt.nn import functional, init
from gt.nn.functional import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    cross_entropy_loss,
    embedding,
    gelu,
    layer_norm,
    log_softmax,
    mse_loss,
    relu,
    sigmoid,
    silu,
    softplus,
    tanh,
)

from .activation import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
    RReLU,
    Softshrink,
    Threshold,
)
from .adaptive_pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    FractionalMaxPool2d,
    FractionalMaxPool3d,
    MaxUnpool1d,
    MaxUnpool2d,
    MaxUnpool3d,
)
from .adaptive_softmax import (
    AdaptiveLogSoftmaxWithLoss,
)
from .attention import MultiheadAttention
from .batch_normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    SyncBatchNorm,
)
from .classification_loss import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    LinearCrossEntropyLoss,
    LinearCrossEntropyOptions,
    MultiLabelSoftMarginLoss,
    NLLLoss,
    NLLLoss2d,
)
from .containers import (
    ModuleDict,
    ModuleList,
    Sequential,
)
from .convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
)
from .distance import (
    CosineSimilarity,
    PairwiseDistance,
)
from .dropout import (
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from .flatten import (
    Flatten,
    Unflatten,
)
from .folding import (
    Fold,
    Unfold,
)
from .instance_normalization import (
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
)
from .lazy import (
    UninitializedBuffer,
    UninitializedParameter,
)
from .lazy_convolution import (
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
)
from .linear import (
    Bilinear,
    Identity,
    LazyLinear,
    Linear,
)
from .loss import (
    CTCLoss,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    PoissonNLLLoss,
    SmoothL1Loss,
)
from .margin_loss import (
    CosineEmbeddingLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiMarginLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from .module import (
    Module,
)
from .normalization import (
    CrossMapLRN2d,
    GroupNorm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from .padding import (
    CircularPad1d,
    CircularPad2d,
    CircularPad3d,
    ConstantPad1d,
    ConstantPad2d,
    ConstantPad3d,
    ReflectionPad1d,
    ReflectionPad2d,
    ReflectionPad3d,
    ReplicationPad1d,
    ReplicationPad2d,
    ReplicationPad3d,
    ZeroPad1d,
    ZeroPad2d,
    ZeroPad3d,
)
from .parallel import DataParallel
from .parameter import (
    Buffer,
    Parameter,
)
from .parameter_containers import (
    ParameterDict,
    ParameterList,
)
from .pixels import (
    ChannelShuffle,
    PixelShuffle,
    PixelUnshuffle,
)
from .pooling import (
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from .recurrent import GRU, LSTM, RNN, RNNBase
from .recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from .smooth_activation import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    LogSigmoid,
    Mish,
    Sigmoid,
    SiLU,
    Softplus,
    Softsign,
    Tanh,
    Tanhshrink,
)
from .softmax import (
    LogSoftmax,
    Softmax,
    Softmax2d,
    Softmin,
)
from .sparse import (
    Embedding,
    EmbeddingBag,
)
from .transformer import Transformer, TransformerDecoder, TransformerEncoder
from .transformer_layers import TransformerDecoderLayer, TransformerEncoderLayer
from .transposed_convolution import (
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from .upsampling import (
    Upsample,
    UpsamplingBilinear2d,
    UpsamplingNearest2d,
)

from . import utils  # isort: skip
from gt._public import missing_name, show_callers

# fmt: off
if TYPE_CHECKING:
    from gt.optim import SGD, Adam, AdamW

__all__ = [
    "Adam", "AdamW", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Buffer", "CELU", "CTCLoss",
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d",
    "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "CrossMapLRN2d", "DataParallel", "Dropout", "Dropout1d", "Dropout2d",
    "Dropout3d", "ELU", "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "GELU", "GLU", "GaussianNLLLoss", "GroupNorm",
    "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss",
    "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss",
    "LPPool1d", "LPPool2d", "LPPool3d", "LayerNorm", "LazyBatchNorm1d", "LazyBatchNorm2d",
    "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d",
    "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear", "LeakyReLU", "Linear", "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "MSELoss",
    "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PReLU",
    "PairwiseDistance", "Parameter", "ParameterDict", "ParameterList", "PixelShuffle",
    "PixelUnshuffle", "PoissonNLLLoss", "RMSNorm", "RReLU", "ReLU", "ReLU6", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "SELU", "SGD", "Sequential", "SiLU", "Sigmoid", "SmoothL1Loss",
    "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "UninitializedBuffer",
    "UninitializedParameter", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "cross_entropy", "cross_entropy_loss", "dropout",
    "embedding", "functional", "gelu", "init", "layer_norm", "log_softmax", "mse_loss", "relu",
    "sigmoid", "silu", "softmax", "softplus", "tanh", "utils",
    "GRU", "GRUCell", "LSTM", "LSTMCell", "MultiheadAttention", "RNN", "RNNBase", "RNNCell",
    "RNNCellBase", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer",
]
# fmt: on

# The modules of the same names have taken their places.
dropout, softmax = functional.dropout, functional.softmax


add_absent_modules(
    __name__,
    {"attention.flex_attention": "BlockMask create_block_mask create_mask flex_attention"},
    "gt.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask)",
)
add_absent_modules(
    __name__,
    {
        "quantized": "Conv2d FloatFunctional Linear QFunctional",
        "quantized.dynamic": "LSTM Linear",
        "qat": "Conv2d Linear",
    },
    "compute in a smaller dtype: model.half(), model.bfloat16() or gt.autocast",
)


def __getattr__(name: str) -> object:
    """Import what few programs use, or return an optimizer by its name in early versions."""
    if name in ("common_types", "modules"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in ("SGD", "Adam", "AdamW"):
        from gt import optim

        return getattr(optim, name)
    raise missing_name(globals(), name)


show_callers(globals())
