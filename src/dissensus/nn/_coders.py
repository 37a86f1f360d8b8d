"""Encoders from features to opinions, decoders from opinions to scores."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import InputError, one_of
from dissensus.graph import SparseFeatures
from dissensus.kernels import dropout

ENCODERS = ("linear", "mlp")
DECODERS = ("linear", "relu", "mlp")


class Residual(torch.nn.Module):
    """Two residual layers ``X + dropout(W relu(X))`` on [n, channels]."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.dropout = dropout
        self.layers = torch.nn.ModuleList(torch.nn.Linear(channels, channels) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + dropout(layer(torch.relu(x)), self.dropout, self.training)
        return x


class Encoder(torch.nn.Module):
    """Input dropout and a linear map, followed by two residual layers for ``mlp``: [n, in] -> [n, out]."""

    def __init__(
        self, in_channels: int, out_channels: int, kind: str, input_dropout: float, dropout: float, bias: bool = True
    ) -> None:
        super().__init__()
        one_of("encoder", kind, ENCODERS)
        self.input_dropout = input_dropout
        self.linear = torch.nn.Linear(in_channels, out_channels, bias=bias)
        self.residual = Residual(out_channels, dropout) if kind == "mlp" else None

    def forward(self, x: Tensor | SparseFeatures) -> Tensor:
        if isinstance(x, SparseFeatures):
            encoded = x.dropout(self.input_dropout, self.training).linear(self.linear.weight, self.linear.bias)
        else:
            encoded = self.linear(dropout(x, self.input_dropout, self.training))
        return encoded if self.residual is None else self.residual(encoded)


class Decoder(torch.nn.Module):
    """A ReLU for ``relu``, two residual layers for ``mlp``; then dropout and a linear map: [n, in] -> [n, out]."""

    def __init__(self, in_channels: int, out_channels: int, kind: str, dropout: float) -> None:
        super().__init__()
        one_of("decoder", kind, DECODERS)
        self.dropout = dropout
        self.rectify = kind == "relu"
        self.residual = Residual(in_channels, dropout) if kind == "mlp" else None
        self.linear = torch.nn.Linear(in_channels, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        if self.rectify:
            x = torch.relu(x)
        if self.residual is not None:
            x = self.residual(x)
        return self.linear(dropout(x, self.dropout, self.training))


def check_sizes(**sizes: int) -> None:
    """Raise an error for channel counts below one."""
    for name, size in sizes.items():
        if not isinstance(size, int | np.integer) or size < 1:
            raise InputError(f"{name} is {size!r}: it must be a whole number of at least 1")


def check_heads(heads: int, channels: int, name: str = "hidden_channels") -> None:
    """Raise an error if the number of heads does not divide the number of channels."""
    check_sizes(heads=heads, **{name: channels})
    if channels % heads:
        raise InputError(
            f"heads = {heads} does not divide {name} = {channels}: choose {name} = "
            f"{heads * max(1, round(channels / heads))}"
        )


def check_dropout(**rates: float) -> None:
    """Raise an error for dropout rates outside [0, 1)."""
    for name, rate in rates.items():
        if not 0.0 <= rate < 1.0:
            raise InputError(f"{name} is {rate}: it must be in [0, 1)")
