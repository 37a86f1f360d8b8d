"""PyG-style models: ``forward(x, edge_index, edge_weight=None)``, created by name or by class."""

from dissensus.nn._acmp import ACMP
from dissensus.nn._attention import CommunicationAttention, OptionAttention
from dissensus.nn._attentive import AttentiveModel
from dissensus.nn._bimp import BIMP
from dissensus.nn._continuous import Context, ContinuousModel
from dissensus.nn._discrete import DGC, GAT, GCN, MLP, SAGE, SGC, DiscreteModel, StackedModel
from dissensus.nn._grand import GRAND
from dissensus.nn._grandpp import GRANDPlusPlus
from dissensus.nn._gread import GREAD
from dissensus.nn._model import Model
from dissensus.nn._oscillating import GraphCONGCN, GraphCONTran, KuramotoGNN
from dissensus.nn._registry import create, load, names

__all__ = [
    "ACMP",
    "BIMP",
    "DGC",
    "GAT",
    "GCN",
    "GRAND",
    "GREAD",
    "MLP",
    "SAGE",
    "SGC",
    "AttentiveModel",
    "CommunicationAttention",
    "Context",
    "ContinuousModel",
    "DiscreteModel",
    "GRANDPlusPlus",
    "GraphCONGCN",
    "GraphCONTran",
    "KuramotoGNN",
    "Model",
    "OptionAttention",
    "StackedModel",
    "create",
    "load",
    "names",
]
