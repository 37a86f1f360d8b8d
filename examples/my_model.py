"""A model of one's own, trained and studied like the package's:

dissensus train karate --model examples/my_model.py:MyNet
"""

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv

from dissensus import nn


@nn.register("my-net", equation="X ← relu(ÂXW) + X", source="an example of this package")
class MyNet(torch.nn.Module):
    """Residual graph convolutions: [n, in_channels] -> [n, out_channels]."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.encoder = torch.nn.Linear(in_channels, hidden_channels)
        convs = (GCNConv(hidden_channels, hidden_channels) for _ in range(num_layers))
        self.layers = torch.nn.ModuleList(convs)
        self.decoder = torch.nn.Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None):
        x = self.encoder(torch.nn.functional.dropout(x, self.dropout, self.training))
        for layer in self.layers:
            x = layer(x, edge_index, edge_weight).relu() + x
        return self.decoder(torch.nn.functional.dropout(x, self.dropout, self.training))
