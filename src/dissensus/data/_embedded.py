"""Two real graphs that are part of the package."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dissensus.data._dataset import Dataset, from_fields, from_pyg

NEIGHBOURS = 8


def digits() -> Dataset:
    """Handwritten digits: 1797 images of 8 x 8 pixels in ten classes, each connected to its 8 nearest images.

    The images are the test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI Machine
    Learning Repository, 1998, CC BY 4.0), as in scikit-learn's ``load_digits``. Features are grey levels divided by 16.
    Two images are connected in both directions if one is among the 8 nearest of the other by Euclidean distance. Ties
    go to the image with the lower index, so the graph is the same on every machine.
    """
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as archive:
        images, labels = torch.from_numpy(archive["images"]), torch.from_numpy(archive["labels"])
    return from_fields(
        {"x": images / 16.0, "edge_index": nearest(images.long(), NEIGHBOURS), "y": labels.long()},
        name="digits",
        where="digits",
    )


def nearest(points: Tensor, k: int) -> Tensor:
    """The symmetrised k-nearest-neighbour graph of integer ``points`` ``[n, d]`` as ``edge_index`` ``[2, edges]``.

    Squared distances ``|p|^2 + |q|^2 - 2 p.q`` of integers are exact, and ties go to the lower index.
    """
    n = len(points)
    norms = points.square().sum(1)
    distance = norms[:, None] + norms[None, :] - 2 * points @ points.T
    rank = distance * n + torch.arange(n)
    rank.fill_diagonal_(torch.iinfo(torch.long).max)
    joined = torch.zeros(n, n, dtype=torch.bool)
    joined.scatter_(1, rank.topk(k, largest=False).indices, True)
    return (joined | joined.T).nonzero().T.contiguous()


def karate() -> Dataset:
    """Zachary's karate club (1977): 34 members, 4 communities found by modularity, one-hot features, from PyG."""
    from torch_geometric.datasets import KarateClub

    graph = KarateClub()[0]
    # PyG only marks four training nodes, which is not a split.
    del graph.train_mask
    return from_pyg(graph, name="karate")
