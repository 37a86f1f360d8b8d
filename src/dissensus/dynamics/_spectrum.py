"""Eigenvalues by strongly connected components.

With agents in the order of who hears whom, a matrix is block triangular: its eigenvalues are those of its strongly
connected components. Taken as a whole it may be defective, as that of a chain is, and then rounding moves the
eigenvalues of n agents by about ``eps^(1/n)``, which is anything but small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.csgraph import breadth_first_order, connected_components

from dissensus.errors import SolverError

Array = np.ndarray

# Up to this size all eigenvalues of a component are computed, where vectors are asked for, too.
DENSE_UP_TO = 512
# The same without vectors.
_VALUES_DENSE_UP_TO = 1024
# Beyond it factors of random graphs fill up, and eigenvalues come to seven digits.
_FACTORED_UP_TO = 5000
# An eigenvalue this close to another one, relatively, is the same.
SAME = 1e-7
# Components of one size are solved together, at most this many numbers at once.
_AT_ONCE = 2**22


def components(matrix: scipy.sparse.csr_array) -> Array:
    """The strongly connected component of each row, numbered from 0, [n]."""
    return connected_components(matrix, connection="strong")[1]


def leading_product(first: scipy.sparse.csr_array, second: scipy.sparse.csr_array) -> float:
    r""":math:`\max \operatorname{Re}\,(\lambda + 1)(\mu + 1)` over the eigenvalues of two matrices."""
    # Without negative entries no eigenvalue is larger than the leading one, which is real (Perron, Frobenius).
    positive = all(matrix.data.min(initial=0.0) >= 0.0 for matrix in (first, second))
    factors = _eigenvalues(second, np.array([1.0]) if positive else np.array([1.0, 1j, -1.0])) + 1.0
    # Re (lambda + 1) m is largest for the lambda that lies farthest in the direction of the conjugate of m.
    products = np.outer(_eigenvalues(first, np.array([1.0]) if positive else _directions(factors)) + 1.0, factors)
    return float(products.real.max())


def _directions(values: Array) -> Array:
    """The distinct directions of complex numbers from zero, up to conjugation: unit numbers."""
    angles = np.abs(np.angle(values[values != 0]))
    return np.exp(1j * np.unique(np.round(angles, 9))) if angles.size else np.ones(1)


def _eigenvalues(matrix: scipy.sparse.csr_array, directions: Array) -> Array:
    """All eigenvalues of small components, those of large ones that lie farthest in ``directions``."""
    large = matrix.shape[0] > _VALUES_DENSE_UP_TO
    sums, positive = matrix.sum(axis=1), matrix.data.min(initial=0.0) >= 0.0
    if large and positive and (directions == 1.0).all() and np.ptp(sums) <= 1e-6 * sums.max():
        return np.atleast_1d(sums.mean())
    if large and _is_symmetric(matrix):  # never defective
        return _far(matrix, directions)
    labels = components(matrix)
    size_of = np.bincount(labels)
    # Components of one size side by side.
    order = np.lexsort((labels, size_of[labels]))
    sorted_matrix = matrix[order][:, order]
    values, start = [], 0
    for size, number in zip(*np.unique(size_of, return_counts=True), strict=True):
        step = 1 if size > _VALUES_DENSE_UP_TO else max(1, _AT_ONCE // size**2)
        for first in range(0, number, step):
            count = min(step, number - first)
            block = sorted_matrix[start : start + count * size, start : start + count * size]
            values.append(_far(block, directions) if size > _VALUES_DENSE_UP_TO else _all(block, count, size))
            start += count * size
    return np.concatenate(values)


def _all(matrix: scipy.sparse.csr_array, count: int, size: int) -> Array:
    """All eigenvalues of ``count`` components of one size, in their order."""
    coo = matrix.tocoo()
    inside = coo.row // size == coo.col // size
    row, col = coo.row[inside], coo.col[inside]
    blocks = np.zeros((count, size, size))
    blocks[row // size, row % size, col % size] = coo.data[inside]
    return np.linalg.eigvals(blocks).ravel()


def _far(matrix: scipy.sparse.csr_array, directions: Array) -> Array:
    """The eigenvalues that lie farthest in ``directions``, of a large matrix."""
    symmetric = _is_symmetric(matrix)
    if symmetric:  # all on one line, whose ends are farthest
        directions = np.unique(np.where(directions.real < 0, -1.0, 1.0))
    try:
        return np.concatenate([_farthest(matrix, direction, symmetric) for direction in directions])
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise SolverError(
            f"the leading eigenvalues of a matrix of {matrix.shape[0]} rows did not converge: scale its rows to one "
            "sum, as as_matrix(..., normalize=True) does, or take a part of the graph"
        ) from None


def _is_symmetric(matrix: scipy.sparse.csr_array) -> bool:
    return bool(abs(matrix - matrix.T).max() == 0.0)


def _farthest(matrix: scipy.sparse.csr_array, direction: complex, symmetric: bool) -> Array:
    options = {"v0": np.random.default_rng(0).random(matrix.shape[0]), "ncv": 64, "tol": 1e-9}
    turned: Any = matrix * (direction.real if direction.imag == 0 else direction)
    solver: Any = scipy.sparse.linalg.eigsh if symmetric else scipy.sparse.linalg.eigs
    # The leading eigenvalue of a positive component stands alone; a second one, amid many, would take long to settle.
    count = 1 if direction == 1.0 and matrix.data.min(initial=0.0) >= 0.0 else 2
    return solver(turned, k=count, which="LA" if symmetric else "LR", return_eigenvectors=False, **options) / direction


class LinearMap(NamedTuple):
    """A square matrix as its product with a vector, and written out where that is needed.

    Attributes:
        labels: the component of each row, [size]; entries outside of ``matrix`` may join some.
        product: the matrix times a vector.
        matrix: makes the matrix itself.
    """

    labels: Array
    product: Callable[[Array], Array]
    matrix: Callable[[], scipy.sparse.csr_array]


def leading_eigenvalue(linear: LinearMap) -> complex:
    """The eigenvalue of largest real part."""
    if not linear.labels.any():
        return complex(_connected(linear, 1)[0][0])
    return complex(_Parts.of(linear, 1).values[0])


def leading_eigenpairs(
    linear: LinearMap, count: int, *, dense_up_to: int | None = None, seed: int = 0
) -> tuple[Array, Array]:
    """Eigenvalues of largest real part, descending, with vectors: all of a small component, by Arnoldi of a large one.

    Args:
        linear: the matrix.
        count: number of eigenvalues.
        dense_up_to: size up to which all eigenvalues are computed; None is ``DENSE_UP_TO``.
        seed: of the vector that Arnoldi's iteration starts from.
    """
    if not linear.labels.any():
        return _connected(linear, count, dense_up_to=dense_up_to, seed=seed)
    parts = _Parts.of(linear, count, dense_up_to=dense_up_to, seed=seed)
    values = parts.values[:count]
    return values, np.stack([parts.vector(index) for index in range(len(values))], axis=1)


class _Parts(NamedTuple):
    """The leading eigenvalues of the components of a matrix, descending.

    Attributes:
        matrix: the matrix, [n, n].
        labels: the component of each row, [n].
        values: eigenvalues, [number].
        owners: the component of each, [number].
        vectors: for each its vector within the component.
    """

    matrix: scipy.sparse.csr_array
    labels: Array
    values: Array
    owners: Array
    vectors: list[Array]

    @classmethod
    def of(cls, linear: LinearMap, count: int, **how: Any) -> _Parts:
        matrix, labels = linear.matrix().tocsr(), linear.labels
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        ends = np.cumsum(sizes)
        alone = sizes == 1
        values = [matrix.diagonal()[order][ends[alone] - 1].astype(complex)]
        owners = [np.flatnonzero(alone)]
        vectors = [np.ones(1)] * int(alone.sum())
        sorted_matrix = matrix[order][:, order]
        for label in np.flatnonzero(~alone):
            inside = slice(ends[label] - sizes[label], ends[label])
            block = sorted_matrix[inside, inside]
            whole = LinearMap(labels[order[inside]], block.dot, partial(scipy.sparse.csr_array, block))
            found, local = _connected(whole, count, **how)
            values.append(found)
            owners.append(np.full(len(found), label))
            vectors += list(local.T)
        flat = np.concatenate(values)
        rank = _order(flat)
        return cls(matrix, labels, flat[rank], np.concatenate(owners)[rank], [vectors[k] for k in rank])

    def vector(self, index: int) -> Array:
        r"""The eigenvector of a value, of length one, [n].

        It begins in the component of the value and goes on to those who hear it: there
        :math:`(\lambda - B) v = C v_0`, with B among them and C from the component to them. Where one of theirs has the
        same eigenvalue, the matrix is defective, and its vector is the only one.
        """
        value, part = self.values[index], np.flatnonzero(self.labels == self.owners[index])
        reached = breadth_first_order(self.matrix.T, part[0], return_predecessors=False)
        rest = reached[self.labels[reached] != self.owners[index]]
        same = np.abs(self.values - value) <= SAME * abs(self.matrix).max()
        again = rest[np.isin(self.labels[rest], self.owners[same])]
        if len(again):  # the farthest, as others may lie between
            return self.vector(int(np.flatnonzero(same & (self.owners == self.labels[again[-1]]))[0]))
        vector = np.zeros(len(self.labels), dtype=complex)
        vector[part] = self.vectors[index]
        if len(rest):
            among = value * scipy.sparse.eye_array(len(rest)) - self.matrix[rest][:, rest]
            vector[rest] = scipy.sparse.linalg.spsolve(among.tocsc(), self.matrix[rest][:, part] @ vector[part])
        length = np.linalg.norm(vector)
        if not np.isfinite(length):
            raise SolverError(
                "an eigenvector overflows along the graph: take agents that all hear one another, if "
                "only through others (a strongly connected component)"
            )
        return vector / length


def _connected(linear: LinearMap, count: int, *, dense_up_to: int | None = None, seed: int = 0) -> tuple[Array, Array]:
    """The leading eigenpairs of one component."""
    size = len(linear.labels)
    count = min(count, size)
    if size <= (DENSE_UP_TO if dense_up_to is None else dense_up_to) or count >= size - 1:
        values, vectors = scipy.linalg.eig(linear.matrix().toarray())
    else:
        operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=linear.product, dtype=np.float64)
        start = np.random.default_rng(seed).random(size)
        # One more than asked for, so that a conjugate pair is not cut in an order that depends on the method.
        sought = min(count + 1, size - 2)
        try:
            how = {
                "v0": start,
                "tol": 1e-10 if size <= _FACTORED_UP_TO else 1e-7,
                "ncv": min(size, max(40, 2 * sought + 1)),
            }
            values, vectors = scipy.sparse.linalg.eigs(operator, k=sought, which="LR", maxiter=200, **how)
        except scipy.sparse.linalg.ArpackNoConvergence as error:
            values, vectors = error.eigenvalues, error.eigenvectors
            if size <= _FACTORED_UP_TO or len(values) < count:
                values, vectors = _crowded(linear.matrix().tocsc(), sought, start)
    order = _order(values)[:count]
    return values[order], vectors[:, order]


def descending(values: Array) -> Array:
    """Eigenvalues by descending real part."""
    return values[_order(values)]


def _order(values: Array) -> Array:
    """Of equal real parts the one with the larger imaginary part first, so that the order is the same everywhere."""
    return np.lexsort((-values.imag, -values.real))


def _crowded(matrix: scipy.sparse.csc_array, count: int, start: Array) -> tuple[Array, Array]:
    """Leading eigenvalues that lie close together, as on long paths: those nearest to a bound above all of them."""
    diagonal = matrix.diagonal()
    # Gershgorin's bound; a little more, as the bound itself may be an eigenvalue.
    radius = abs(matrix).sum(axis=1)
    bound = float((diagonal + radius - np.abs(diagonal)).max()) + 1e-3 * float(radius.max())
    try:
        return scipy.sparse.linalg.eigs(matrix, k=count, sigma=bound, v0=start, tol=1e-10)
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise SolverError(
            f"the leading eigenvalues of a {matrix.shape[0]} x {matrix.shape[0]} Jacobian did not converge: take a "
            "part of the graph"
        ) from None
