"""Vector fields on plain tensors, shared by the networks and the opinion-dynamics tools."""

from dissensus.dynamics._critical import critical_attention
from dissensus.dynamics._opinion import Opinion
from dissensus.dynamics._saturation import SATURATIONS, Saturation, saturation

__all__ = ["SATURATIONS", "Opinion", "Saturation", "critical_attention", "saturation"]
