"""Print the bits of random numbers. With the argument "engine", PyTorch's engine draws them."""

import sys

import gt
from gt.engines.pytorch import PyTorchEngine

if sys.argv[1:] == ["engine"]:
    init = PyTorchEngine.__init__

    def drawing(self, *args):
        init(self, *args)
        self.draws = True

    PyTorchEngine.__init__ = drawing

gt.manual_seed(1)
total = gt.zeros(300)
for _ in range(40):
    total = gt.nn.functional.dropout(total + gt.randn(300))
    total = total + gt.randint(0, 9, (300,))
print(total.numpy().tobytes().hex())
