"""Graphs that the tests of several models run on."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub

from continuous_models import IN
from pyg_models import IN as CHANNELS
from pyg_models import N


@pytest.fixture
def ring_graph() -> Data:
    """A connected undirected graph on 12 nodes with 5 features and 3 classes."""
    torch.manual_seed(0)
    ring = torch.stack([torch.arange(12), (torch.arange(12) + 1) % 12])
    extra = torch.tensor([[0, 2, 5], [6, 9, 11]])
    edges = torch.cat([ring, extra], 1)
    train = torch.zeros(12, dtype=torch.bool)
    train[:6] = True
    return Data(
        x=torch.rand(12, 5) + 0.1,
        edge_index=torch.cat([edges, edges.flip(0)], 1),
        y=torch.arange(12) // 4,
        train_mask=train,
    )


@pytest.fixture
def graph() -> tuple[Tensor, Tensor, Tensor]:
    """Features, directed edges (one node listens to nobody, one has a self-loop) and weights."""
    generator = torch.Generator().manual_seed(0)
    adjacency = torch.rand(N, N, generator=generator) < 0.2
    adjacency.fill_diagonal_(False)
    adjacency[:, 7] = False
    adjacency[3, 3] = True
    edges = adjacency.nonzero().t().contiguous()
    return (
        torch.randn(N, CHANNELS, generator=generator, dtype=torch.float64),
        edges,
        0.2 + torch.rand(edges.shape[1], generator=generator, dtype=torch.float64),
    )


@pytest.fixture(scope="module")
def data() -> Any:
    data = KarateClub()[0]
    data.x = 0.3 * torch.randn(34, IN, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return data
