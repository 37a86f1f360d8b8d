"""Measures of oversmoothing, on any state ``[n, channels]``, any trajectory ``[steps, n, channels]`` and any PyG model.

- Of a state and its graph: :func:`dirichlet_energy` (raw or relative) and :func:`mad`.
- Of a state alone: :func:`effective_rank`, :func:`numerical_rank`, :func:`rank_one_distance` and
  :func:`channel_correlation`.
- All of these scalars at once: :func:`summary`.
- Of a curve: :func:`decay_rate`.
- Of a model: :func:`watch`, :func:`gradient_norms`, :func:`filter_response`, and :func:`depths` for all measures over
  depth.

No n x n matrix is formed on large graphs. Zero states, consensus, isolated nodes and graphs without edges have defined
values, which each function documents. A state with infinite or undefined entries has the value NaN.
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
