"""Discrete-depth models, at any depth, on PyG's layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GCNConv

from dissensus.errors import InputError
from dissensus.graph import SparseFeatures, check_edge_index
from dissensus.nn._coders import check_dropout, check_sizes
from dissensus.nn._model import Model


class DiscreteModel(Model):
    """A stack of layers ``X <- dropout(relu(layer(X)))``; the last layer gives the scores.

    Args:
        in_channels: width of the node features.
        hidden_channels: width of the hidden states.
        out_channels: number of classes.
        num_layers: depth.
        dropout: after every layer but the last.
        input_dropout: on the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int,
        dropout: float,
        input_dropout: float,
    ) -> None:
        super().__init__()
        check_sizes(
            in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels, num_layers=num_layers
        )
        check_dropout(dropout=dropout, input_dropout=input_dropout)
        self.in_channels, self.num_layers = in_channels, num_layers
        self.dropout, self.input_dropout = dropout, input_dropout
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = torch.nn.ModuleList(self.layer(a, b) for a, b in zip(widths, widths[1:], strict=False))

    def layer(self, in_channels: int, out_channels: int) -> torch.nn.Module:
        """One layer of the stack."""
        return GCNConv(in_channels, out_channels)

    def forward(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Scores of the classes: features [n, in_channels] and ``edge_index`` [2, edges] -> [n, out_channels]."""
        return self._states(x, edge_index, edge_weight)[-1]

    def _states(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None) -> list[Tensor]:
        x = self.check_features(x)
        x = x.to_dense() if isinstance(x, SparseFeatures) else x
        check_edge_index(edge_index, x.shape[0])
        states = [F.dropout(x, self.input_dropout, self.training)]
        for i, layer in enumerate(self.layers):
            x = layer(states[-1], edge_index, edge_weight)
            if i < self.num_layers - 1:
                x = F.dropout(torch.relu(x), self.dropout, self.training)
            states.append(x)
        return states

    def trajectory(
        self, x: Tensor | SparseFeatures, edge_index: Tensor, times: Sequence[float], edge_weight: Tensor | None = None
    ) -> Tensor:
        """Hidden states after the layers ``times`` in 1..num_layers-1: [len(times), n, hidden_channels]."""
        states = self._states(x, edge_index, edge_weight)
        wrong = [t for t in times if not (1 <= t < self.num_layers and t == int(t))]
        if wrong or not len(times):
            raise InputError(
                f"times = {list(times)}: name hidden layers, whole numbers from 1 to {self.num_layers - 1}"
            )
        return torch.stack([states[int(t)] for t in times])


class GCN(DiscreteModel):
    r"""Graph convolutional network of Kipf and Welling (2017), :math:`X \leftarrow \mathrm{relu}(\hat A X W)`."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        num_layers: int = 2,
        dropout: float = 0.5,
        input_dropout: float = 0.5,
    ) -> None:
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            num_layers=num_layers,
            dropout=dropout,
            input_dropout=input_dropout,
        )
