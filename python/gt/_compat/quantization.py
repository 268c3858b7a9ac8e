"""`gt.ao.quantization` under its earlier name: the same module."""

import sys

from gt.ao import quantization

sys.modules[__name__] = quantization
