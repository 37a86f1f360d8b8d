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
        tables: where it appears in the paper on opinion dissensus: tables, figures, or its theory.
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
_GRAND = "Chamberlain et al. 2021, GRAND: Graph Neural Diffusion"
_GRANDPP = "Thorpe et al. 2022, GRAND++: Graph Neural Diffusion with A Source Term"
_GRAPHCON = "Rusch et al. 2022, Graph-Coupled Oscillator Networks"
_GREAD = "Choi et al. 2023, GREAD: Graph Neural Reaction-Diffusion Networks"
_REWIRED = "with graph diffusion, Gasteiger et al. 2019, Diffusion Improves Graph Learning"
_ADAPTIVE: dict[str, Any] = {"adaptive": True}
_ADAPTIVE_REWIRED: dict[str, Any] = {"adaptive": True, "rewire": True}
_BOTH = "homophilic, heterophilic, depth"

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
            _BOTH,
            "_bimp:BIMP",
            _ADAPTIVE,
        ),
        ModelInfo(
            "bimp-aa-rw", "BIMP-aa on the rewired graph", f"{_WANG}; {_REWIRED}", _BOTH, "_bimp:BIMP", _ADAPTIVE_REWIRED
        ),
        ModelInfo(
            "grand-l",
            "X' = (A - I)X, optionally σ(a)(A - I)X + bX(0)",
            _GRAND,
            "homophilic, heterophilic, large, depth, energy, runtime",
            "_grand:GRAND",
        ),
        ModelInfo(
            "grand-aa", "X' = (A(X) - I)X, recomputed along the solution", _GRAND, _BOTH, "_grand:GRAND", _ADAPTIVE
        ),
        ModelInfo(
            "grand-aa-rw",
            "GRAND-aa on the rewired graph",
            f"{_GRAND}; {_REWIRED}",
            _BOTH,
            "_grand:GRAND",
            _ADAPTIVE_REWIRED,
        ),
        ModelInfo(
            "grand++-l",
            "X' = (A - I)X + B, B = X(0) minus its mean at the training nodes, 0 elsewhere",
            _GRANDPP,
            "homophilic, heterophilic, depth, energy, runtime",
            "_grandpp:GRANDPlusPlus",
        ),
        ModelInfo(
            "grand++-aa",
            "GRAND++ with A(X) recomputed along the solution",
            _GRANDPP,
            _BOTH,
            "_grandpp:GRANDPlusPlus",
            _ADAPTIVE,
        ),
        ModelInfo(
            "grand++-aa-rw",
            "GRAND++-aa on the rewired graph",
            f"{_GRANDPP}; {_REWIRED}",
            _BOTH,
            "_grandpp:GRANDPlusPlus",
            _ADAPTIVE_REWIRED,
        ),
        ModelInfo(
            "kuramoto",
            "X_i' = X_i(0) + K Σ_j a_ij sin(X_j - X_i)",
            "Nguyen et al. 2024, From Coupled Oscillators to Graph Neural Networks",
            "homophilic, heterophilic, large, depth, energy, runtime",
            "_oscillating:KuramotoGNN",
        ),
        ModelInfo(
            "graphcon-tran",
            "Y' = V, V' = AY - γY - αV",
            _GRAPHCON,
            "homophilic, depth, energy, runtime",
            "_oscillating:GraphCONTran",
        ),
        ModelInfo(
            "graphcon-gcn",
            "Y' = V, V' = relu(ÂYWᵀ + b) - γY - αV",
            _GRAPHCON,
            "heterophilic",
            "_oscillating:GraphCONGCN",
        ),
        ModelInfo("gread-f", "X' = σ(a)(A - I)X + σ(b) X(1 - X)", _GREAD, "theory", "_gread:GREAD", {"reaction": "f"}),
        ModelInfo(
            "gread-fb",
            "X' = σ(a)(A - I)X + σ(b)((I - A)X + X)",
            _GREAD,
            "theory",
            "_gread:GREAD",
            {"reaction": "fb"},
        ),
        ModelInfo(
            "acmp",
            "X_i' = σ(a) Σ_j (a_ij - β)(X_j - X_i) + σ(d) X_i(1 - X_i²)",
            "Wang et al. 2023, ACMP: Allen-Cahn Message Passing with Attractive and Repulsive Forces",
            "",
            "_acmp:ACMP",
        ),
        ModelInfo(
            "gcn",
            "X ← relu(ÂXW)",
            "Kipf and Welling 2017, Semi-Supervised Classification with Graph Convolutional Networks",
            "homophilic, heterophilic, large, depth, energy",
            "_discrete:GCN",
            continuous=False,
        ),
        ModelInfo(
            "gcn-pairnorm",
            "X ← relu(PairNorm(ÂXW))",
            "Zhao and Akoglu 2020, PairNorm: Tackling Oversmoothing in GNNs",
            "homophilic, heterophilic, depth, energy",
            "_discrete:GCN",
            {"norm": "pair"},
            continuous=False,
        ),
        ModelInfo(
            "gcn-group",
            "X ← relu(GroupNorm(ÂXW))",
            "Zhou et al. 2020, Towards Deeper Graph Neural Networks with Differentiable Group Normalization",
            "homophilic, heterophilic, depth, energy",
            "_discrete:GCN",
            {"norm": "group"},
            continuous=False,
        ),
        ModelInfo(
            "gat",
            "X ← elu(‖_h A_h(X) X W_h)",
            "Veličković et al. 2018, Graph Attention Networks",
            "homophilic, heterophilic, large, depth, energy",
            "_discrete:GAT",
            continuous=False,
        ),
        ModelInfo(
            "sage",
            "X_i ← relu(W₁ mean_j X_j + W₂ X_i)",
            "Hamilton et al. 2017, Inductive Representation Learning on Large Graphs",
            "homophilic, heterophilic, depth, energy",
            "_discrete:SAGE",
            continuous=False,
        ),
        ModelInfo(
            "sgc",
            "Âᴷ X W",
            "Wu et al. 2019, Simplifying Graph Convolutional Networks",
            "theory",
            "_discrete:SGC",
            continuous=False,
        ),
        ModelInfo(
            "dgc",
            "((1 - T/K) I + (T/K) Â)ᴷ X W",
            "Wang et al. 2021, Dissecting the Diffusion Process in Linear Graph Convolutional Networks",
            "theory",
            "_discrete:DGC",
            continuous=False,
        ),
        ModelInfo("mlp", "X ← relu(XW)", "Rosenblatt 1958, The Perceptron", "", "_discrete:MLP", continuous=False),
    )
}
