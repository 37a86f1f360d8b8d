"""Discrete models beside PyG's own layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dissensus import nn

N, IN, HIDDEN, OUT = 20, 5, 8, 3


def reference(model: Any, layers: list[torch.nn.Module], activation: Any, norms: Any = None) -> Any:
    """PyG's layers with the model's parameters, which go by the same names."""
    for own, layer in zip(model.layers, layers, strict=True):
        layer.double().load_state_dict(own.state_dict())
        layer.eval()

    def forward(x: Tensor, edges: Tensor, *weight: Tensor) -> Tensor:
        for i, layer in enumerate(layers):
            x = layer(x, edges, *weight)
            if i < len(layers) - 1:
                x = activation(x if norms is None else norms[i](x))
        return x

    return forward


def make(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.create(name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT, **options)
    return model.double().eval()


def same(model: Any, other: Any, x: Tensor, *graph: Tensor) -> None:
    """Equal scores, and equal gradients of the features."""
    results = []
    for function in (model, other):
        leaf = x.clone().requires_grad_()
        out = function(leaf, *graph)
        out.square().sum().backward()
        results.append((out.detach(), leaf.grad))
    torch.testing.assert_close(results[0], results[1])
