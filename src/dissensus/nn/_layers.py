"""PyG's layers on our sparse products: the same parameters and results, without gathering messages edge by edge."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from dissensus.graph import SparseFeatures, dropout, row_softmax, spmm
from dissensus.nn._propagation import Propagation, project


class Convolution(GCNConv):
    r""":math:`\hat A X W^\top + b`; the propagation is :math:`\hat A`."""

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        return propagation(project(self.lin, x)) + self.bias


class Sage(SAGEConv):
    r""":math:`\operatorname{mean}_{j} X_j W_1^\top + b + X W_2^\top`; the propagation takes the mean."""

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        return propagation(project(self.lin_l, x)) + self.lin_l.bias + project(self.lin_r, x)


class Attention(GATConv):
    r""":math:`A^{(h)} X W_h^\top`, heads side by side or averaged, with
    :math:`a^{(h)}_{ij} = \operatorname{softmax}_j \operatorname{leakyrelu}(u_h^\top W_h x_i + v_h^\top W_h x_j)`.

    Positive edge weights (the propagation's values) multiply before normalising.
    """

    def attention(self, projected: Tensor, propagation: Propagation) -> Tensor:
        """[entries, heads], from the projected states [n, heads, channels]."""
        pattern = propagation.pattern
        by_source, by_target = ((projected * a).sum(-1) for a in (self.att_src, self.att_dst))
        scores = by_source.index_select(0, pattern.col) + by_target.index_select(0, pattern.row)
        return row_softmax(pattern, F.leaky_relu(scores, self.negative_slope), propagation.values)

    def projected(self, x: Tensor | SparseFeatures) -> Tensor:
        """[n, heads, channels]"""
        return project(self.lin, x).view(-1, self.heads, self.out_channels)

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:
        projected = self.projected(x)
        weights = dropout(self.attention(projected, propagation), self.dropout, self.training)
        heads = [spmm(propagation.pattern, weights[:, h], projected[:, h]) for h in range(self.heads)]
        return (torch.cat(heads, 1) if self.concat else torch.stack(heads).mean(0)) + self.bias


class Dense(torch.nn.Linear):
    r""":math:`X W^\top + b`, whatever the graph."""

    def forward(self, x: Tensor | SparseFeatures, propagation: Propagation) -> Tensor:  # type: ignore[override]
        return project(self, x) + self.bias
