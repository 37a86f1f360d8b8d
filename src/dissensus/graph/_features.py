"""Sparse node features, such as bags of words, in which only a few per cent of the entries are non-zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from dissensus.errors import InputError
from dissensus.graph._pattern import Pattern
from dissensus.kernels import dropout
from dissensus.runtime import exporting, on_reset

HELLINGER = "hellinger"
_NOT_FINITE = "NaN or infinite {}: clean it, e.g. with torch.nan_to_num"
_NEGATIVE = "negative {}, and the Hellinger transform takes square roots: use normalize_features=True"
# A row with a smaller norm counts as zero.
_TINY = 1e-12
# Below this fraction of non-zeros the sparse product is faster.
_SPARSE_BELOW = 0.1

# Cached results: x -> (x's version counter, the result for each value of ``normalize``)
_CACHE: Any = WeakIdKeyDictionary()
on_reset(_CACHE.clear)


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Node features [n, features] as a pattern and the values stored in it.

    Attributes:
        pattern: n x features.
        values: [entries].
    """

    pattern: Pattern
    values: Tensor

    @staticmethod
    def from_dense(x: Tensor) -> SparseFeatures:
        """The non-zeros of a dense [n, features] tensor."""
        row, col = x.nonzero(as_tuple=True)
        return SparseFeatures(Pattern(row, col, (x.shape[0], x.shape[1])), x[row, col])

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    def to_dense(self) -> Tensor:
        """[n, features]"""
        dense = self.values.new_zeros(self.shape)
        dense[self.pattern.row.long(), self.pattern.col.long()] = self.values
        return dense

    def dropout(self, p: float, training: bool) -> SparseFeatures:
        """Dropout on the stored entries. The distribution is that of dense dropout, because zeros stay zero."""
        if not training or p == 0.0:
            return self
        return SparseFeatures(self.pattern, dropout(self.values, p, training))

    def normalized(self, how: bool | str = True) -> SparseFeatures:
        """Scale every row to Euclidean norm one, as in :func:`features`; rows of zeros stay zero."""
        if not how:
            return self
        values = self.values
        if how == HELLINGER:
            if (negative := (values.detach() < 0).nonzero()).numel():
                raise self._entry_error(int(negative[0]), _NEGATIVE)
            values = _root(values)
        norms = self.pattern.row_sums(values.square()).sqrt().clamp_min(_TINY)
        return SparseFeatures(self.pattern, values / norms.index_select(0, self.pattern.row))

    def _entry_error(self, entry: int, problem: str) -> InputError:
        return _entry_error(int(self.pattern.row[entry]), int(self.pattern.col[entry]), problem)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """``X W' + b``, with W [out, features] and b [out]: [n, out]."""
        out = self.pattern.spmm(self.values.to(weight.dtype), weight.t())
        return out if bias is None else out + bias


# Features first used in inference mode must also work in training, so new tensors are created outside of that mode.
@torch.compiler.disable
@torch.inference_mode(False)
def features(x: Tensor | SparseFeatures, *, normalize: bool | str = False) -> Tensor | SparseFeatures:
    """Check node features, make them sparse if that is faster, and optionally scale rows to Euclidean norm one.

    ``normalize=True`` divides each row by its norm, ``x_ik / sqrt(sum_l x_il^2)``. ``normalize="hellinger"`` gives
    ``sqrt(x_ik / sum_l x_il)``, which reduces the weight of a few frequent words. Rows of zeros stay zero.

    Torch's sparse tensors, and dense features with few non-zeros, become :class:`SparseFeatures`. Dense features that
    require a gradient stay dense. The result is cached for as long as the tensor exists. In-place changes by torch
    operations are detected, but those through ``x.data`` or a NumPy view are not: pass a new tensor in that case.
    """
    check_normalize(normalize)
    if isinstance(x, SparseFeatures):
        return _check_finite(x).normalized(normalize)
    if not isinstance(x, Tensor):
        raise InputError(f"x is a {type(x).__name__}: pass a torch tensor of shape [nodes, features]")
    if exporting():
        return _normalized(x, normalize)
    # Inference tensors have no version counter to check, and a gradient belongs to a single forward pass.
    if x.is_inference() or x.requires_grad:
        return _convert(x, normalize)
    version, cached = _CACHE.get(x, (None, {}))
    if version != x._version:
        cached = {}
        _CACHE[x] = (x._version, cached)
    if normalize not in cached:
        converted = _convert(x, normalize)
        # None stands for x itself: a reference to it would keep it alive forever.
        cached[normalize] = None if converted is x else converted
    return x if cached[normalize] is None else cached[normalize]


def check_normalize(normalize: bool | str) -> None:
    """Raise an error unless this is a valid way to normalise features."""
    if not isinstance(normalize, bool) and normalize != HELLINGER:
        raise InputError(f'features cannot be normalised by {normalize!r}: use False, True or "{HELLINGER}"')


def _root(values: Tensor) -> Tensor:
    # The square root has no finite gradient at zero, so zeros are kept as they are.
    return torch.where(values > 0, values.clamp_min(torch.finfo(values.dtype).tiny).sqrt(), 0.0)


def _convert(x: Tensor, normalize: bool | str) -> Tensor | SparseFeatures:
    if x.dim() != 2:
        raise InputError(f"x has shape {list(x.shape)}: it must be [nodes, features]")
    if not x.is_floating_point():
        raise InputError(f"x has dtype {x.dtype}: convert it with x.float()")
    if x.layout != torch.strided:
        coo = x.to_sparse_coo().coalesce()
        row, col = coo.indices()
        return features(SparseFeatures(Pattern(row, col, (x.shape[0], x.shape[1])), coo.values()), normalize=normalize)
    bad = _first_nonfinite(x)
    if bad is not None:
        raise _entry_error(*divmod(bad, x.shape[1]), _NOT_FINITE)
    if not (x.requires_grad or x.numel() == 0 or torch.count_nonzero(x) >= _SPARSE_BELOW * x.numel()):
        return SparseFeatures.from_dense(x).normalized(normalize)
    if normalize == HELLINGER and (negative := (x.detach() < 0).nonzero()).numel():
        raise _entry_error(int(negative[0, 0]), int(negative[0, 1]), _NEGATIVE)
    return _normalized(x, normalize)


def _normalized(x: Tensor, normalize: bool | str) -> Tensor:
    if not normalize:
        return x
    if normalize == HELLINGER:
        x = _root(x)
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(_TINY)


def _check_finite(x: SparseFeatures) -> SparseFeatures:
    bad = _first_nonfinite(x.values)
    if bad is not None:
        raise x._entry_error(bad, _NOT_FINITE)
    return x


def _first_nonfinite(values: Tensor) -> int | None:
    # A finite sum proves that all entries are finite; only if it is not are the entries checked one by one.
    values = values.detach()
    if torch.isfinite(values.sum()):
        return None
    bad = (~torch.isfinite(values)).view(-1).nonzero()
    return int(bad[0]) if bad.numel() else None


def _entry_error(node: int, feature: int, problem: str) -> InputError:
    return InputError(f"x is {problem.format(f'at node {node}, feature {feature}')}")
