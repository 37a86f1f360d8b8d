"""Importing the package and building a model change nothing in the process."""

import subprocess
import sys

import pytest

SNAPSHOT = """
import os, signal, sys, threading, warnings, logging, locale, gc
import torch, torch_geometric, torchdiffeq, scipy.sparse.linalg, scipy.sparse.csgraph, scipy.integrate, sklearn

found = []
sys.addaudithook(lambda event, args: found.append(args[1]) if event == "ctypes.dlsym" else None)

def snapshot():
    b = torch.backends
    return {
        "filters": list(warnings.filters),
        "environment": dict(os.environ),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads(), threading.active_count()),
        "denormals": bool(torch.tensor(1e-40) * 1.0),
        "types": (torch.get_default_dtype(), torch.get_default_device()),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "deterministic": (torch.are_deterministic_algorithms_enabled(), torch.get_deterministic_debug_mode()),
        "precision": (torch.get_float32_matmul_precision(), b.cuda.matmul.allow_tf32, b.cudnn.benchmark,
                      b.cudnn.deterministic, b.mkldnn.enabled),
        "random": torch.random.get_rng_state().tolist(),
        "signals": [signal.getsignal(number) for number in signal.valid_signals()],
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook, gc.callbacks[:], sys.path[:]),
        "logging": (logging.root.level, logging.root.handlers[:], locale.setlocale(locale.LC_ALL)),
        "mallopt": "mallopt" in found,
    }

def differences():
    after = snapshot()
    return {key: (before[key], after[key]) for key in before if before[key] != after[key]}

before = snapshot()
"""

IMPORT = (
    SNAPSHOT
    + """
import dissensus
for room in dissensus._ROOMS:
    for name in getattr(dissensus, room).__all__:
        getattr(getattr(dissensus, room), name)
import dissensus.cli
assert differences() == {}, differences()

with torch.random.fork_rng():
    for name in dissensus.nn.names():
        dissensus.nn.create(name, in_channels=3, hidden_channels=8, out_channels=2)
assert differences() == {}, differences()

with warnings.catch_warnings(record=True) as caught:  # torch says this once in a process
    warnings.simplefilter("always")
    torch.sparse_csr_tensor([0, 1], [0], [1.0])
assert any("beta" in str(warning.message) for warning in caught), [str(warning.message) for warning in caught]
"""
)

CALL = (
    SNAPSHOT
    + """
import dissensus
dissensus.nn.BIMP
warnings.simplefilter("error")
before = snapshot()
x, edge_index = torch.ones(2, 3, dtype=torch.float64), torch.tensor([[0, 1], [1, 0]])
with torch.random.fork_rng():
    model = dissensus.nn.BIMP(3, 4, 2).double()
    model(x, edge_index).sum().backward()
    model.graphs(x, edge_index)
assert differences() == {}, differences()
with dissensus.runtime.training():
    assert differences().keys() == {"denormals"} | ({"mallopt"} if sys.platform == "linux" else set()), differences()
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("code", [IMPORT, CALL], ids=["import and build", "call"])
def test_the_process_is_as_before(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
