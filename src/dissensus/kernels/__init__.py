"""The few operations that take nearly all the time, on plain tensors and without autograd.

Each function chooses torch's fastest routine for the dtype and device of its tensors and for the processor. No other
code makes that choice.
"""

from dissensus.kernels._blocks import is_large as is_large
from dissensus.kernels._dense import dense_product as dense_product
from dissensus.kernels._dense import linear_combination
from dissensus.kernels._dropout import dropout
from dissensus.kernels._sparse import csr_matrix as csr_matrix
from dissensus.kernels._sparse import sampled_product, sparse_product

__all__ = ["dropout", "linear_combination", "sampled_product", "sparse_product"]
