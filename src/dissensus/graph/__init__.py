"""Sparse graph operators: a pattern is prepared once; products and softmax are differentiable in its values."""

from dissensus.graph._build import Graph, build
from dissensus.graph._build import check_edge_index as check_edge_index
from dissensus.graph._features import SparseFeatures, features
from dissensus.graph._features import check_normalize as check_normalize
from dissensus.graph._pattern import Pattern
from dissensus.graph._rewire import rewire

__all__ = [
    "Graph",
    "Pattern",
    "SparseFeatures",
    "build",
    "features",
    "rewire",
]
