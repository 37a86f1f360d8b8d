"""Sparse graph operators: a pattern is prepared once; products and softmax are differentiable in its values."""

from dissensus.graph._build import Graph, build, check_edge_index
from dissensus.graph._features import SparseFeatures, check_normalize, features
from dissensus.graph._pattern import Pattern
from dissensus.graph._rewire import rewire

__all__ = [
    "Graph",
    "Pattern",
    "SparseFeatures",
    "build",
    "check_edge_index",
    "check_normalize",
    "features",
    "rewire",
]
