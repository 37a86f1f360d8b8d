"""Continuous-depth models with few channels, and the velocity of their states."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from dissensus import nn

IN, HIDDEN, OUT = 5, 4, 3


def make(name: str, **options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.create(
        name, in_channels=IN, hidden_channels=HIDDEN, out_channels=OUT, **{"attention_channels": 4, **options}
    )
    return model.double().eval()


def slope(model: Any, data: Any) -> tuple[Tensor, Tensor, Tensor]:
    """A_a, the start and the field's value there, by a single tiny Euler step of the whole model."""
    with torch.no_grad():
        start = model.trajectory(data.x, data.edge_index, [0.0])[0]
        end = model.trajectory(data.x, data.edge_index, [1e-3])[0]
    return model.graphs(data.x, data.edge_index)[0].to_dense(), start, (end - start) / 1e-3


EULER = {"method": "euler", "step_size": 1e-3}
