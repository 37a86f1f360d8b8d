"""BIMP as one would write it with PyG and torchdiffeq alone: the yardstick of the benchmarks."""

import math

import torch
import torchdiffeq
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.utils import add_remaining_self_loops, scatter, softmax

from dissensus.nn import BIMP


class PlainBIMP(torch.nn.Module):
    """The equations and parameters of a given BIMP: dense features, gather and scatter, autograd through the solver."""

    def __init__(self, model: BIMP) -> None:
        super().__init__()
        self.encoder, self.decoder = model.encoder.linear, model.decoder.linear
        self.key, self.query = model.communication.key, model.communication.query
        self.option_key, self.option_query = model.options.key, model.options.query
        self.own_score = model.options.own_score
        self.heads, self.head_channels = model.communication.heads, model.communication.head_channels
        self.d, self.alpha, self.u = model.damping, model.self_reinforcement, model.attention_strength
        self.time, self.rtol, self.atol, self.config = model.time, model.rtol, model.atol, model.config
        self.evaluations = 0

    @torch.no_grad()
    def take(self, model: BIMP) -> None:
        """The parameters that the model has now."""
        self.encoder.load_state_dict(model.encoder.linear.state_dict())
        self.decoder.load_state_dict(model.decoder.linear.state_dict())
        for own, other in (
            (self.key, model.communication.key),
            (self.query, model.communication.query),
            (self.option_key, model.options.key),
            (self.option_query, model.options.query),
        ):
            own.load_state_dict(other.state_dict())
        self.own_score.copy_(model.options.own_score)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        n = x.shape[0]
        x0 = self.encoder(F.dropout(x, self.config["input_dropout"], self.training))
        (source, target), _ = add_remaining_self_loops(edge_index, num_nodes=n)
        keys = self.key(x0).view(n, self.heads, self.head_channels)
        queries = self.query(x0).view(n, self.heads, self.head_channels)
        scores = (keys[target] * queries[source]).sum(-1) / math.sqrt(self.head_channels)
        weight = softmax(scores, target, num_nodes=n).mean(1, keepdim=True)
        gram = x0.t() @ x0 / n
        option_keys, option_queries = (
            layer(gram).view(-1, self.heads, self.head_channels).transpose(0, 1)
            for layer in (self.option_key, self.option_query)
        )
        option_scores = option_keys @ option_queries.mT / math.sqrt(self.head_channels)
        options = (option_scores + self.own_score * torch.eye(gram.shape[0])).softmax(-1).mean(0)

        def field(t: Tensor, x: Tensor) -> Tensor:
            self.evaluations += 1
            y = x + x @ options.t()
            mixed = y + scatter(weight * y[source], target, dim=0, dim_size=n)
            return -self.d * x + torch.tanh(self.u * ((self.alpha - 1) * x + mixed)) + x0

        times = torch.tensor([0.0, self.time])
        state = torchdiffeq.odeint(field, x0, times, method="dopri5", rtol=self.rtol, atol=self.atol)[-1]
        return self.decoder(F.dropout(state, self.config["dropout"], self.training))
