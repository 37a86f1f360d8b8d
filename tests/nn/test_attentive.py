from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import GDC
from torch_geometric.utils import barabasi_albert_graph

from continuous_models import IN, OUT, make
from dissensus import nn
from dissensus.errors import InputError


@pytest.mark.parametrize("name", ["bimp-aa-rw", "grand-aa-rw", "grand++-aa-rw"])
def test_rewired_models_run_on_the_diffusion_of_pyg(name: str, data: Any) -> None:
    options: dict[str, Any] = {"rewire_restart": 0.2, "rewire_neighbors": 1000, "heads": 1}
    model = make(name, **options)
    with torch.no_grad():
        for layer in (model.communication.key, model.communication.query):
            layer.weight.zero_()
            layer.bias.zero_()
    found = model.graphs(data.x, data.edge_index)[0].to_dense()
    gdc = GDC(
        diffusion_kwargs={"method": "ppr", "alpha": 0.2}, sparsification_kwargs={"method": "topk", "k": 34, "dim": 0}
    )(Data(edge_index=data.edge_index, num_nodes=34))
    expected = torch.zeros(34, 34).index_put((gdc.edge_index[1], gdc.edge_index[0]), gdc.edge_attr)
    # With uniform scores the attention is the diffusion itself.
    torch.testing.assert_close(found.float(), expected, atol=1e-4, rtol=0.0)
    with pytest.raises(InputError, match="neighbors"):
        make(name, rewire_neighbors=0)
    with pytest.raises(InputError, match="restart"):
        make(name, rewire_restart=1.5)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory")
@pytest.mark.slow
def test_adaptive_graphs_respect_the_solvers_memory() -> None:
    """Each of 50 evaluations on this graph leaves about 2 MB for the derivative; 8 MB of that may be kept."""
    torch.manual_seed(0)
    edges = barabasi_albert_graph(400, 20)
    x = 0.1 * torch.rand(400, IN)
    model = nn.create("grand-aa", in_channels=IN, hidden_channels=8, out_channels=OUT, heads=8, method="euler")
    Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    model.integrate(x, edges, time=50.0, memory=2**23).state.sum().backward()
    assert _high_water() - before < 60_000


def _high_water() -> int:
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])  # type: ignore[index]
