"""The few operations that nearly all the time is spent in, on plain tensors and without autograd.

Each is one function named for what it computes. Which of torch's routines does the work is decided inside the function,
by the type and the place of its tensors, and nowhere else.
"""

from dissensus.kernels._dense import linear_combination
from dissensus.kernels._dropout import dropout
from dissensus.kernels._sparse import sampled_product, sparse_product

__all__ = ["dropout", "linear_combination", "sampled_product", "sparse_product"]
