"""Measures of oversmoothing, on any state ``[n, channels]``, any trajectory ``[steps, n, channels]`` and any PyG model.

On a state and its graph: :func:`dirichlet_energy` (raw or relative), :func:`mad`. On a state alone:
:func:`effective_rank`, :func:`numerical_rank`, :func:`rank_one_distance`, :func:`channel_correlation`. All scalar ones
at once: :func:`summary`. On a curve: :func:`decay_rate`. On a model: :func:`watch`, :func:`gradient_norms`,
:func:`filter_response`, and :func:`depths` for everything over depth.

Nothing of size n x n is formed on a large graph. Zero states, consensus, isolated nodes and graphs without edges have
defined values, given with each measure; a state that is not finite has the value NaN.
"""

from dissensus.measure._channels import channel_correlation, effective_rank, numerical_rank, rank_one_distance
from dissensus.measure._decay import decay_rate
from dissensus.measure._depths import depths
from dissensus.measure._edges import dirichlet_energy, mad
from dissensus.measure._gradients import gradient_norms
from dissensus.measure._response import filter_response
from dissensus.measure._summary import summary
from dissensus.measure._watch import watch

__all__ = [
    "channel_correlation",
    "decay_rate",
    "depths",
    "dirichlet_energy",
    "effective_rank",
    "filter_response",
    "gradient_norms",
    "mad",
    "numerical_rank",
    "rank_one_distance",
    "summary",
    "watch",
]
