"""Questions about modes, types and devices at the top of training scripts."""

import torch
import torch.multiprocessing as mp
from published import report
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")
torch.set_float32_matmul_precision("highest")
report(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled())

torch.use_deterministic_algorithms(True, warn_only=True)
report(torch.are_deterministic_algorithms_enabled())
torch.set_deterministic_debug_mode("error")
report(torch.get_deterministic_debug_mode())
torch.set_deterministic_debug_mode(0)

torch.set_default_dtype(torch.float64)
report(torch.zeros(3).dtype == torch.float64, nn.Linear(2, 2).weight.dtype == torch.float64)
torch.set_default_dtype(torch.float32)

with torch.device("cpu"):
    inside = torch.arange(3.0)
with device:
    report(torch.ones(2) * inside.to(device)[1])

torch.manual_seed(3)
state = torch.get_rng_state()
drawn = torch.rand(3)
torch.set_rng_state(state)
report(torch.equal(drawn, torch.rand(3)))

report(torch.is_tensor(drawn), torch.is_storage(drawn), torch.typename(3))
report(torch.finfo(torch.float16).max, torch.iinfo(torch.int8).min)
report(torch.promote_types(torch.int32, torch.float16) == torch.float16)
report(mp.cpu_count() > 0, torch.initial_seed() >= 0)

largest = torch.tensor([[1.0, 5.0], [7.0, 2.0]], device=device).max(dim=1)
report(isinstance(largest, torch.return_types.max), largest.values, largest.indices)
report(torch.functional.norm(largest.values))

try:
    raise torch.cuda.OutOfMemoryError("batch of 8")
except torch.OutOfMemoryError as error:
    report(str(error))
result = nn.Linear(4, 2).load_state_dict({"weight": torch.zeros(2, 4), "x": torch.ones(1)}, False)
report(repr(result))
