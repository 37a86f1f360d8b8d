"""Vector fields on plain tensors, shared by the networks and the opinion-dynamics tools."""

from dissensus.dynamics._bifurcation import Bifurcation, Branch, Hysteresis, Point, bifurcation, hysteresis
from dissensus.dynamics._convert import as_matrix
from dissensus.dynamics._critical import critical_attention
from dissensus.dynamics._diffusion import ReactionDiffusion
from dissensus.dynamics._equilibrium import Stability, equilibrium, stability
from dissensus.dynamics._opinion import Opinion
from dissensus.dynamics._oscillators import Kuramoto, Oscillators
from dissensus.dynamics._saturation import SATURATIONS, Saturation, saturation
from dissensus.dynamics._simulate import Simulation, Summary, simulate
from dissensus.dynamics._system import System

__all__ = [
    "SATURATIONS",
    "Bifurcation",
    "Branch",
    "Hysteresis",
    "Kuramoto",
    "Opinion",
    "Oscillators",
    "Point",
    "ReactionDiffusion",
    "Saturation",
    "Simulation",
    "Stability",
    "Summary",
    "System",
    "as_matrix",
    "bifurcation",
    "critical_attention",
    "equilibrium",
    "hysteresis",
    "saturation",
    "simulate",
    "stability",
]
