import gt, sys, numpy as np
sys.path.insert(0,'/work/main/examples/models')
from qwen3 import *
import qwen3, inspect
from generation import generate, filter_logits
print([n for n in dir(qwen3) if n[0].isupper()]); print(inspect.signature(Config))
