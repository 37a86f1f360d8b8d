"""What models there are: names, equations, sources. Free of heavy imports, so that listing them is instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ModelInfo:
    """One model of the registry.

    Attributes:
        name: what :func:`dissensus.nn.create` calls it.
        equation: its dynamics, or its layer.
        source: the paper that introduced it.
        tables: where it appears in the paper on opinion dissensus.
        target: ``module:class`` inside ``dissensus.nn``.
        options: what the name fixes among the class's options.
        continuous: depth is integration time, rather than a number of layers.
    """

    name: str
    equation: str
    source: str
    tables: str
    target: str
    options: dict[str, Any] = field(default_factory=dict)
    continuous: bool = True


_WANG = "Wang et al. 2025, Resolving Oversmoothing with Opinion Dissensus"

MODELS: dict[str, ModelInfo] = {
    info.name: info
    for info in (
        ModelInfo(
            "bimp",
            "X' = -dX + tanh[u((α-1)X + (A_a+I) X (A_o+I)ᵀ)] + X(0)",
            _WANG,
            "homophilic, heterophilic, large, depth, energy, nonlinearity, runtime",
            "_bimp:BIMP",
        ),
        ModelInfo(
            "bimp-aa",
            "BIMP with A_a(X), A_o(X) recomputed along the solution",
            _WANG,
            "homophilic, heterophilic, depth",
            "_bimp:BIMP",
            {"adaptive": True},
        ),
        ModelInfo(
            "gcn",
            "X ← relu(Â X W)",
            "Kipf and Welling 2017, Semi-Supervised Classification with Graph Convolutional Networks",
            "homophilic, heterophilic, large, depth, energy",
            "_discrete:GCN",
            continuous=False,
        ),
    )
}
