"""The kernels of _kernels.c, where the package was built with them. Whoever calls them has a way with torch alone."""

from __future__ import annotations

import ctypes
import math
import os
import warnings
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import torch  # before the kernels, which are to share its threads
from torch import Tensor

_POINTER, _INT, _COUNT, _FLOAT = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_float
# threads, rows, channels, then the matrix and the dense factor
_PRODUCT: list[Any] = [_INT, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER]


# Of the kernels that this module was written for.
_INTERFACE = 1


def _load() -> ctypes.CDLL | None:
    """The library, unless there is none, or DISSENSUS_NATIVE is 0."""
    if os.environ.get("DISSENSUS_NATIVE", "1") == "0":
        return None
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_kernels{suffix}")
        try:
            library = ctypes.CDLL(str(path))
        except OSError:  # not there, or for another system
            continue
        if ctypes.c_int.in_dll(library, "dissensus_interface").value != _INTERFACE:
            warnings.warn(
                "the compiled kernels are of another version, and torch does their work: build them again by "
                "`pip install -e .`",
                stacklevel=2,
            )
            return None
        library.dissensus_product.argtypes = [*_PRODUCT, _FLOAT, *[_POINTER] * 5]
        library.dissensus_saturate.argtypes = [
            *_PRODUCT,
            *[_POINTER] * 3,
            *[_FLOAT] * 3,
            _POINTER,
            _POINTER,
            _INT,
            _POINTER,
            _POINTER,
            _POINTER,
        ]
        library.dissensus_combine.argtypes = [_INT, _COUNT, _INT, *[_POINTER] * 6]
        for function in (library.dissensus_product, library.dissensus_saturate, library.dissensus_combine):
            function.restype = None
        library.dissensus_squares.argtypes = [_INT, _COUNT, _INT, *[_POINTER] * 4, _FLOAT, _FLOAT]
        library.dissensus_squares.restype = ctypes.c_double
        return library
    return None


_library = _load()


def serves(*tensors: Tensor | None) -> bool:
    """Whether there are kernels, and they take these tensors: contiguous, in float32, on the CPU."""
    if _library is None:
        return False
    for t in tensors:
        if t is not None and not (t.dtype == torch.float32 and t.is_cpu and t.is_contiguous()):
            return False
    return True


def product(
    rowptr: Tensor,
    col: Tensor,
    values: Tensor,
    x: Tensor,
    out: Tensor,
    *,
    add: Tensor | None = None,
    scale: float = 1.0,
    by_values: tuple[Tensor, Tensor, Tensor] | None = None,
) -> None:
    """``out = scale (A x + add)``.

    Args:
        rowptr, col, values: A in CSR.
        x: [columns, channels].
        out: [rows, channels]; may be ``add``, not ``x``.
        add: [rows, channels].
        scale: a factor.
        by_values: a dense y, [rows, channels], the place of each entry, [entries], and a sum, [entries], to which
            ``scale <x_j, y_i>`` is added at the place of the entry (i, j).
    """
    assert _library is not None
    y, order, total = by_values or (None, None, None)
    rows, channels = out.shape
    _library.dissensus_product(
        torch.get_num_threads(), rows, channels, rowptr.data_ptr(), col.data_ptr(), values.data_ptr(), x.data_ptr(),
        scale, _address(add), out.data_ptr(), _address(y), _address(order), _address(total),
    )  # fmt: skip


def saturate(
    rowptr: Tensor,
    col: Tensor,
    values: Tensor,
    x: Tensor,
    out: Tensor,
    *,
    add: Tensor | None,
    state: Tensor,
    own: float,
    value: tuple[float, float, Tensor, Tensor] | None = None,
    then: tuple[Terms, Sequence[float], Tensor] | None = None,
) -> None:
    """``out = sigmoid(A x + add + own state)``.

    Args:
        rowptr, col, values: A in CSR.
        x: [columns, channels].
        out: [rows, channels]; of the others it may be where the value is written, which then remains.
        add: [rows, channels].
        state: [rows, channels].
        own: a factor.
        value: numbers f and d, a tensor b, and where to write ``f out + b - d state``.
        then: terms, the last of which is ``out``, weights for the first of them up to that, and where to write their
            sum.
    """
    assert _library is not None
    outer, damping, source, result = value or (0.0, 0.0, None, None)
    terms, weights, total = then or (None, (), None)
    count = len(weights)
    rows, channels = out.shape
    _library.dissensus_saturate(
        torch.get_num_threads(), rows, channels, rowptr.data_ptr(), col.data_ptr(), values.data_ptr(), x.data_ptr(),
        _address(add), out.data_ptr(), state.data_ptr(), own, outer, damping, _address(source), _address(result),
        count, terms and terms.addresses, (_FLOAT * count)(*weights), _address(total),
    )  # fmt: skip


class Terms:
    """Tensors of one size, ``others`` and then those of a ``stack``, of which linear combinations are made."""

    def __init__(self, others: Sequence[Tensor], stack: Tensor) -> None:
        self._kept = others, stack
        self._size = others[0].numel()
        first, count = stack.data_ptr(), stack.shape[0]
        addresses = [v.data_ptr() for v in others] + [first + 4 * self._size * j for j in range(count)]
        self.addresses = (_POINTER * len(addresses))(*addresses)

    def combine(
        self,
        weights: Sequence[float],
        out: Tensor,
        *,
        k: Tensor | None = None,
        also: tuple[Sequence[float], Tensor] | None = None,
    ) -> None:
        """``out = sum_j w_j s_j`` over as many terms as weights, times ``k (1 - k)`` where k is given.

        With ``also = (v, total)`` as many terms are added to a total: ``total += sum_j v_j s_j``.
        """
        assert _library is not None
        count, (others, total) = len(weights), also or (None, None)
        _library.dissensus_combine(
            torch.get_num_threads(), self._size, count, self.addresses, (_FLOAT * count)(*weights), _address(k),
            out.data_ptr(), others and (_FLOAT * count)(*others), _address(total),
        )  # fmt: skip

    def relative_rms(self, weights: Sequence[float], x: Tensor, new: Tensor, atol: float, rtol: float) -> float:
        """The root mean square of ``sum_j w_j s_j / (atol + rtol max(|x|, |new|))``."""
        assert _library is not None
        count = len(weights)
        squares = _library.dissensus_squares(
            torch.get_num_threads(), self._size, count, self.addresses, (_FLOAT * count)(*weights), x.data_ptr(),
            new.data_ptr(), atol, rtol,
        )  # fmt: skip
        return math.sqrt(squares / max(self._size, 1))


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
