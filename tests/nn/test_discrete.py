"""The discrete models against PyG's own layers, and their particulars."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dissensus import measure
from dissensus.errors import InputError
from pyg_models import HIDDEN, OUT, N, make


def test_batches_are_checked(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    x, edges, _ = graph
    with pytest.raises(InputError, match="batch"):
        make("gcn-pairnorm")(x, edges, batch=torch.arange(N).flip(0))


def test_layers_can_be_watched(graph: tuple[Tensor, Tensor, Tensor]) -> None:
    from torch_geometric.data import Data

    x, edges, _ = graph
    for name in ("gcn", "gat", "sage"):
        trace = measure.watch(make(name, num_layers=4), Data(x=x, edge_index=edges))
        assert [tuple(state.shape) for state in trace.states] == [(N, HIDDEN)] * 3 + [(N, OUT)]
