"""States to measure, and every measure of them."""

import torch
from hypothesis import settings
from torch import Tensor
from torch_geometric.utils import to_undirected

from dissensus import measure

STATE_ONLY = {
    "effective_rank": measure.effective_rank,
    "numerical_rank": measure.numerical_rank,
    "rank_one_distance": measure.rank_one_distance,
    "channel_correlation": measure.channel_correlation,
}


quick = settings(max_examples=60, deadline=None, derandomize=True)


def every_measure(x: Tensor, edge_index: Tensor) -> dict[str, Tensor]:
    return {
        "dirichlet_energy": measure.dirichlet_energy(x, edge_index),
        "relative_dirichlet_energy": measure.dirichlet_energy(x, edge_index, relative=True),
        "mad": measure.mad(x, edge_index),
        **{name: function(x) for name, function in STATE_ONLY.items()},
    }


def random_state(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


RING = to_undirected(torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9]))
