"""Datasets by name, your own graphs, generated graphs, their splits, and clusters of their nodes.

``load(name_or_path)`` returns a :class:`Dataset`, and ``split(seed)`` of a dataset returns a PyG ``Data`` with
``train_mask``, ``val_mask`` and ``test_mask``. :func:`names` and :func:`info` do not import torch.

>>> from dissensus import data
>>> data.load("digits").split(1).train_mask.sum()
tensor(200)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dissensus.data._catalogue import folders, info, names

if TYPE_CHECKING:
    from dissensus.data._clusters import Clusters as Clusters
    from dissensus.data._clusters import clusters, partition
    from dissensus.data._dataset import Dataset, from_pyg
    from dissensus.data._load import load
    from dissensus.data._synthetic import csbm

__all__ = ["Dataset", "clusters", "csbm", "folders", "from_pyg", "info", "load", "names", "partition"]

# The methods of :func:`partition`.
PARTITIONERS = ("greedy", "metis")

_HOMES = {
    **dict.fromkeys(("Clusters", "clusters", "partition"), "_clusters"),
    "Dataset": "_dataset",
    "csbm": "_synthetic",
    "from_pyg": "_dataset",
    "load": "_load",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
