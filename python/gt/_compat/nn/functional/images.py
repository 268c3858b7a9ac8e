"""Functions of signals and images that are also in the namespace `gt`."""

from gt.ops.adaptive_pooling import adaptive_avg_pool1d, adaptive_max_pool1d
from gt.ops.convolutions import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from gt.ops.pixels import channel_shuffle, pixel_shuffle, pixel_unshuffle
from gt.ops.pooling import avg_pool1d, max_pool1d, max_pool2d, max_pool3d
from gt.ops.registry import COMPOSITES

from .common import NN, also_here

also_here(avg_pool1d, max_pool1d, max_pool2d, max_pool3d, adaptive_avg_pool1d, adaptive_max_pool1d)
also_here(conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d)
also_here(pixel_shuffle, pixel_unshuffle, channel_shuffle, conv_tbc)
COMPOSITES[f"{NN}.native_channel_shuffle"] = channel_shuffle
