"""Small models to be watched, and a graph for them."""

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected


def make_data(nodes: int = 12, channels: int = 5, dtype: torch.dtype = torch.float32) -> Data:
    generator = torch.Generator().manual_seed(0)
    around = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    across = torch.stack([torch.arange(0, nodes, 3), (torch.arange(0, nodes, 3) + 5) % nodes])
    return Data(
        x=torch.randn(nodes, channels, generator=generator, dtype=torch.float64).to(dtype),
        edge_index=to_undirected(torch.cat([around, across], 1)),
        y=torch.arange(nodes) % 3,
    )


class Stack(nn.Module):
    """A plain stack of GCN layers with dropout and an activation that works in place."""

    def __init__(self, depth: int, channels: int = 5) -> None:
        super().__init__()
        self.convs = nn.ModuleList(pyg.GCNConv(channels, channels) for _ in range(depth))
        self.out = nn.Linear(channels, 3)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = self.dropout(conv(x, edge_index).relu_())
        return self.out(x)


class Flow(nn.Module):
    """A model with a trajectory: x doubles in every unit of time."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def trajectory(self, x: Tensor, edge_index: Tensor, times: list[float]) -> Tensor:
        return torch.stack([self.dropout(x) * 2.0**t for t in times])
