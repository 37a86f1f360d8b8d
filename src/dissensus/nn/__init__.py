"""PyG-style models: ``forward(x, edge_index, edge_weight=None)``, created by name or by class.

The baselines are made by name, ``create("gcn", in_channels=...)``; :func:`names` lists them, ``info(name).cls`` is the
class of one. A model of one's own is registered beside them with :func:`register`, or named as ``file.py:Class``.
"""

# ruff: noqa: F401 (classes that are not in __all__ can still be had by their names)
# names() lists the models in the order of these imports.
# isort: off
from dissensus.nn._registry import ModelInfo, create, info, load, names, register
from dissensus.nn._model import Model
from dissensus.nn._attention import CommunicationAttention, OptionAttention
from dissensus.nn._continuous import ContinuousModel
from dissensus.nn._bimp import BIMP
from dissensus.nn._grand import GRAND
from dissensus.nn._grandpp import GRANDPlusPlus
from dissensus.nn._oscillating import GraphCONGCN, GraphCONTran, KuramotoGNN
from dissensus.nn._gread import GREAD
from dissensus.nn._acmp import ACMP
from dissensus.nn._conv import OpinionConv
from dissensus.nn._discrete import DiscreteModel
from dissensus.nn._stacked import GAT, GCN, MLP, SAGE
from dissensus.nn._decoupled import APPNP, DGC, GPRGNN, SGC
from dissensus.nn._residual import GCNII, JKNet, ResidualModel
from dissensus.nn._recurrent import ADGN, G2
from dissensus.nn._propagation import FeaturePropagation, LabelPropagation
# isort: on

__all__ = [
    "BIMP",
    "CommunicationAttention",
    "ContinuousModel",
    "Model",
    "ModelInfo",
    "OpinionConv",
    "OptionAttention",
    "create",
    "info",
    "load",
    "names",
    "register",
]
