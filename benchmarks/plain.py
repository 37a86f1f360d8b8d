"""Continuous models as one would write them with PyG and torchdiffeq alone: the yardstick of the benchmarks.

Dense features, gather and scatter on ``edge_index``, torchdiffeq's solver, autograd through everything. Each takes the
equations and a copy of the parameters of one of our models.
"""

import copy
import math
from abc import abstractmethod
from collections.abc import Callable

import torch
import torchdiffeq
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import add_remaining_self_loops, scatter, softmax

from dissensus import nn
from dissensus.errors import InputError

Vector = Callable[[Tensor, Tensor], Tensor]


class Plain(torch.nn.Module):
    """Encode, attend, integrate, decode; ``field`` returns f(t, x) and the tensors that f depends on.

    None of these may depend on another: the adjoint would count what passes through both twice. Hence the copies of x0.
    """

    def __init__(self, model: nn.ContinuousModel) -> None:
        super().__init__()
        model = copy.deepcopy(model)
        self.encoder, self.decoder = model.encoder.linear, model.decoder.linear
        self.communication = model.communication
        self.time, self.rtol, self.atol = model.time, model.rtol, model.atol
        self.adjoint = model.gradient == "adjoint"
        self.dropout, self.input_dropout = model.config["dropout"], model.config["input_dropout"]
        self.evaluations = 0
        self.take(model)

    def take(self, model: nn.ContinuousModel) -> None:
        """What a subclass needs of the model beside its coders and attention."""

    @abstractmethod
    def field(self, x0: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[Vector, list[Tensor]]:
        """The vector field, and the tensors that it depends on."""

    def start(self, x0: Tensor) -> Tensor:
        return x0

    def read(self, state: Tensor) -> Tensor:
        return state

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x0 = self.encoder(F.dropout(x, self.input_dropout, self.training))
        (source, target), _ = add_remaining_self_loops(edge_index, num_nodes=x.shape[0])
        start = self.start(x0)
        weight = self.attend(self.read(start), source, target)
        function, needed = self.field(self.read(start), weight, source, target)

        def counted(t: Tensor, x: Tensor) -> Tensor:
            self.evaluations += 1
            return function(t, x)

        times = torch.tensor([0.0, self.time], dtype=x.dtype)
        options = {"method": "dopri5", "rtol": self.rtol, "atol": self.atol}
        if self.adjoint:
            needed = [p for p in needed if p.requires_grad]
            states = torchdiffeq.odeint_adjoint(counted, start, times, adjoint_params=tuple(needed), **options)
        else:
            states = torchdiffeq.odeint(counted, start, times, **options)
        return self.decoder(F.dropout(self.read(states[-1]), self.dropout, self.training))

    def attend(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """The head-mean attention of every edge, [edges, 1]."""
        layer, n = self.communication, x.shape[0]
        keys = layer.key(x).view(n, layer.heads, layer.head_channels)
        queries = layer.query(x).view(n, layer.heads, layer.head_channels)
        if layer.kind == "scaled_dot":
            scores = (keys[target] * queries[source]).sum(-1) / math.sqrt(layer.head_channels)
        elif layer.kind == "exp_kernel":
            distance = (keys[target] - queries[source]).square().sum(-1)
            scores = layer.variance.square() * torch.exp(-distance / (2.0 * layer.length.square()))
        else:
            raise InputError(f"the plain version has no attention {layer.kind!r}: use scaled_dot or exp_kernel")
        if layer.normalizer == "softmax":
            return softmax(scores, target, num_nodes=n).mean(1, keepdim=True)
        positive = (scores + torch.sqrt(scores.square() + 4.0)) / 2.0
        total = scatter(positive, target, dim=0, dim_size=n)
        return (positive / total[target]).mean(1, keepdim=True)


def aggregate(x: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """A x, [n, channels]."""
    return scatter(weight * x[source], target, dim=0, dim_size=x.shape[0])


class PlainBIMP(Plain):
    def take(self, model: nn.BIMP) -> None:
        self.options = model.options
        self.d, self.alpha, self.u = model.damping, model.self_reinforcement, model.attention_strength

    def field(self, x0: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[Vector, list[Tensor]]:
        options, inputs = self.option_graph(x0), x0.clone()

        def field(t: Tensor, x: Tensor) -> Tensor:
            y = x + x @ options.t()
            mixed = y + aggregate(y, weight, source, target)
            return -self.d * x + torch.tanh(self.u * ((self.alpha - 1) * x + mixed)) + inputs

        return field, [inputs, weight, options]

    def option_graph(self, x0: Tensor) -> Tensor:
        layer = self.options
        vectors = x0.t() if layer.kind == "node" else x0.t() @ x0 / x0.shape[0]
        keys, queries = (
            linear(vectors).view(-1, layer.heads, layer.head_channels).transpose(0, 1)
            for linear in (layer.key, layer.query)
        )
        scores = keys @ queries.mT / math.sqrt(layer.head_channels)
        if layer.own_score is not None:
            scores = scores + layer.own_score * torch.eye(x0.shape[1], dtype=x0.dtype)
        return scores.softmax(-1).mean(0)


class PlainGRAND(Plain):
    def take(self, model: nn.GRAND) -> None:
        self.time_scale, self.source, self.detach = model.time_scale, model.source, model.detach_source

    def field(self, x0: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[Vector, list[Tensor]]:
        scale = self.time_scale()
        force = self.force(x0.detach() if self.detach else x0)

        def field(t: Tensor, x: Tensor) -> Tensor:
            change = scale * (aggregate(x, weight, source, target) - x)
            return change if force is None else change + force

        return field, [p for p in (weight, scale, force) if isinstance(p, Tensor)]

    def force(self, x0: Tensor) -> Tensor | None:
        return None if self.source is None else self.source * x0


class PlainGRANDPlusPlus(PlainGRAND):
    def take(self, model: nn.GRANDPlusPlus) -> None:
        self.time_scale, self.detach = model.time_scale, model.detach_source
        self.scale, self.sources = model.source_scale, model.sources

    def force(self, x0: Tensor) -> Tensor:
        mask = torch.ones(x0.shape[0], dtype=torch.bool) if self.sources is None else self.sources
        return self.scale * (x0 - x0[mask].mean(0)) * mask.unsqueeze(1)


class PlainGraphCON(Plain):
    def take(self, model: nn.GraphCONTran) -> None:
        self.stiffness, self.damping = model.stiffness, model.damping

    def start(self, x0: Tensor) -> Tensor:
        return torch.stack([x0, x0])

    def read(self, state: Tensor) -> Tensor:
        return state[0]

    def field(self, x0: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[Vector, list[Tensor]]:
        def field(t: Tensor, x: Tensor) -> Tensor:
            y, v = x
            force = aggregate(y, weight, source, target) - self.stiffness * y - self.damping * v
            return torch.stack([v, force])

        return field, [weight]


class PlainKuramoto(Plain):
    def take(self, model: nn.KuramotoGNN) -> None:
        self.coupling, self.detach = model.coupling, model.detach_source

    def start(self, x0: Tensor) -> Tensor:
        return x0.clamp(0.0, math.pi)

    def field(self, x0: Tensor, weight: Tensor, source: Tensor, target: Tensor) -> tuple[Vector, list[Tensor]]:
        omega = x0.detach() if self.detach else x0.clone()

        def field(t: Tensor, x: Tensor) -> Tensor:
            pull = scatter(weight * torch.sin(x[source] - x[target]), target, dim=0, dim_size=x.shape[0])
            return omega + self.coupling * pull

        return field, [omega, weight]


_PLAIN: dict[type, type[Plain]] = {
    nn.BIMP: PlainBIMP,
    nn.GRAND: PlainGRAND,
    nn.GRANDPlusPlus: PlainGRANDPlusPlus,
    nn.GraphCONTran: PlainGraphCON,
    nn.KuramotoGNN: PlainKuramoto,
}


def plain(model: nn.ContinuousModel) -> Plain:
    """The plain version of a model, with a copy of its parameters."""
    return _PLAIN[type(model)](model)
