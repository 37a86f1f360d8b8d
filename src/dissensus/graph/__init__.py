"""The sparse operator of one graph: a pattern prepared once, products and softmax differentiable in its values."""

from dissensus.graph._build import Graph, build, check_edge_index
from dissensus.graph._cache import clear_cache
from dissensus.graph._features import SparseFeatures, check_normalize, dropout, features
from dissensus.graph._pattern import (
    Pattern,
    inner,
    product,
    product_vjp,
    row_normalize,
    row_softmax,
    row_sums,
    saturated_product,
    sddmm,
    spmm,
)
from dissensus.graph._rewire import check_rewiring, rewire

__all__ = [
    "Graph",
    "Pattern",
    "SparseFeatures",
    "build",
    "check_edge_index",
    "check_normalize",
    "check_rewiring",
    "clear_cache",
    "dropout",
    "features",
    "inner",
    "product",
    "product_vjp",
    "rewire",
    "row_normalize",
    "row_softmax",
    "row_sums",
    "saturated_product",
    "sddmm",
    "spmm",
]
