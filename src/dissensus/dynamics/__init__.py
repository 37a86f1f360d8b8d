"""Vector fields on plain tensors, shared by the networks and the opinion-dynamics tools."""

from dissensus.dynamics._basins import basins
from dissensus.dynamics._bifurcation import bifurcation
from dissensus.dynamics._convert import as_matrix
from dissensus.dynamics._critical import critical_attention
from dissensus.dynamics._diagram import Bifurcation
from dissensus.dynamics._diffusion import ReactionDiffusion
from dissensus.dynamics._equilibrium import equilibrium, stability
from dissensus.dynamics._hysteresis import hysteresis
from dissensus.dynamics._opinion import Opinion
from dissensus.dynamics._oscillators import Kuramoto, Oscillators
from dissensus.dynamics._regimes import regimes
from dissensus.dynamics._saturation import saturation
from dissensus.dynamics._simulate import simulate
from dissensus.dynamics._simulation import Simulation
from dissensus.dynamics._system import Feedback, System

__all__ = [
    "Bifurcation",
    "Feedback",
    "Kuramoto",
    "Opinion",
    "Oscillators",
    "ReactionDiffusion",
    "Simulation",
    "System",
    "as_matrix",
    "basins",
    "bifurcation",
    "critical_attention",
    "equilibrium",
    "hysteresis",
    "regimes",
    "saturation",
    "simulate",
    "stability",
]
