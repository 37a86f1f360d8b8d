"""The linear classics: one matrix, in steps or in continuous time."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, as_matrix
from dissensus.dynamics._system import weighted_pattern
from dissensus.errors import InputError
from dissensus.solve import AutogradField, Field

OpinionModel = Literal["nonlinear", "degroot", "friedkin-johnsen", "consensus", "altafini"]
MODELS = ("nonlinear", "degroot", "friedkin-johnsen", "consensus", "altafini")
STEPWISE = ("degroot", "friedkin-johnsen")


class Linear:
    """One matrix of a linear model."""

    batch = None  # no parameters of single runs

    def __init__(self, graph: AnyGraph, model: str, options: Any = None, normalize: bool = False) -> None:
        matrix = as_matrix(graph)
        if options is not None and not isinstance(options, int):
            raise InputError(f"the {model} model has no option graph: give the number of options, or leave it out")
        self.shape = self.inner = matrix.shape[0], options or 1
        self.pattern, self.values = weighted_pattern(graph, matrix, normalize)
        self.total = self.pattern.row_sums(self.values.abs()).unsqueeze(1)
        # An agent that listens to nobody keeps its opinion.
        self.alone = (self.total == 0).double()
        error = (self.total + self.alone - 1.0).abs()
        if model in STEPWISE and float(error.detach().max()) > 1e-6:
            worst = int(error.argmax())
            raise InputError(
                f"row {worst} of the {model} matrix has the absolute sum {float(self.total[worst]):g}, not 1: pass "
                "normalize=True"
            )

    def step(self, x: Tensor) -> Tensor:
        return self.pattern.spmm(self.values, x) + self.alone * x

    def pack(self, x: Tensor) -> Tensor:
        """[batch, n, o] -> [n, batch o]"""
        return x.transpose(0, 1).reshape(len(self.total), -1)

    def unpack(self, x: Tensor) -> Tensor:
        """[..., n, batch o] -> [..., batch, n, o]"""
        return x.reshape(*x.shape[:-1], -1, self.shape[1]).transpose(-3, -2)

    def field(self, batch: int = 1) -> Field:
        limit = 1.0 / max(float(self.total.detach().max()), 1e-300)
        learned = [self.values] if self.values.requires_grad else []
        return AutogradField(
            lambda t, x: self.pattern.spmm(self.values, x) - self.total * x, learned, euler_limit=limit
        )
