"""PyG-style models: ``forward(x, edge_index, edge_weight=None)``, created by name or by class."""

from dissensus.nn._attention import CommunicationAttention, OptionAttention
from dissensus.nn._bimp import BIMP
from dissensus.nn._continuous import Context, ContinuousModel
from dissensus.nn._discrete import GCN, DiscreteModel
from dissensus.nn._model import Model
from dissensus.nn._registry import create, load, names

__all__ = [
    "BIMP",
    "GCN",
    "CommunicationAttention",
    "Context",
    "ContinuousModel",
    "DiscreteModel",
    "Model",
    "OptionAttention",
    "create",
    "load",
    "names",
]
