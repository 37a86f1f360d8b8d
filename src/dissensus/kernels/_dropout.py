"""Dropout."""

import torch
from torch import Tensor


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Like ``torch.nn.functional.dropout``, but several times faster on a CPU. Differentiable."""
    if not training or p == 0.0:
        return x
    return x * torch.rand_like(x).ge_(p).div_(1.0 - p)
