"""Read the hidden states of a model, by layer or by time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dissensus.errors import InputError
from dissensus.measure._reading import Forward, call, check_data, evaluating, further, recording, select_layers
from dissensus.measure._summary import summary


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The hidden states of one run: ``states[k]`` is a tensor ``[n, channels]`` with the name ``names[k]``.

    ``times`` has the times (or layer numbers) of the states if they were read from a trajectory, and is None otherwise.
    """

    names: tuple[str, ...]
    states: tuple[Tensor, ...]
    edge_index: Tensor
    times: tuple[float, ...] | None = None

    def table(self) -> list[dict[str, str | float]]:
        """One row for each state, with its ``layer`` name, its ``time`` if there are times, and :func:`summary`."""
        rows: list[dict[str, str | float]] = []
        for k, (name, state) in enumerate(zip(self.names, self.states, strict=True)):
            time = {} if self.times is None else {"time": self.times[k]}
            rows.append({"layer": name, **time, **summary(state, self.edge_index)})
        return rows

    def __len__(self) -> int:
        return len(self.states)

    def __repr__(self) -> str:
        lines = [f"  {name}: {list(state.shape)}" for name, state in zip(self.names, self.states, strict=True)]
        return "\n".join(["Trace(", *lines, ")"])


@torch.no_grad()
def watch(
    model: nn.Module,
    data: Data,
    *,
    times: Sequence[float] | Tensor | None = None,
    layers: str | Sequence[str] | None = None,
    forward: Forward | None = None,
) -> Trace:
    """Run ``model`` once on ``data`` and keep its hidden states.

    This works on any module through forward hooks. The model is run in evaluation mode without gradients and is not
    changed, even if it raises an error.

    If ``times`` is given, the states come from the model's ``trajectory(x, edge_index, times)`` instead. This is also
    the default for models of :mod:`dissensus.nn` whose layers are not modules: continuous models are read at quarters
    of their time (with ``depth="equilibrium"`` this shows the transient), SGC and DGC at quarters of their layers.

    Args:
        model: any ``torch.nn.Module``.
        data: graph with ``x [n, in_channels]`` and ``edge_index``. Its further fields (``edge_weight``, ``edge_attr``,
            ``batch``, ...) are passed to models whose forward names them; measures of the states do not use them.
        times: times, or layer numbers of a discrete model, at which to read the trajectory.
        layers: which modules count as layers: a list of names as in ``model.named_modules()``, where the model itself
            has the name of its class; or ``"children"`` for the top-level children, with a ``ModuleList`` or
            ``ModuleDict`` replaced by its members. The default is every ``MessagePassing`` module, or ``"children"`` if
            there is none.
        forward: function called as ``forward(model, data)`` to run the model. The default is ``model(data.x,
            data.edge_index)``, with further fields as above.

    Returns:
        A trace with ``states``, their ``names``, and ``times`` if they were read from a trajectory. ``table()`` has
        :func:`summary` for each state. There is one state for each *call* of a layer: the second call of ``conv`` is
        named ``conv#2``. If an output has several parts, such as a state and attention weights, the first part with one
        row per node is kept; outputs without one, such as a pooled graph, are left out.
    """
    check_data(data)
    nodes = int(data.x.size(0))
    if times is None and layers is None and forward is None and hasattr(model, "trajectory"):
        times = getattr(model, "milestones", None) or None
    if times is not None:
        return _along_trajectory(model, data, [float(t) for t in times], layers, forward)
    selected = select_layers(model, layers)
    # Cloned, because the next layer may be an activation that works in place.
    with evaluating(model), recording(selected, nodes, Tensor.clone) as records:
        call(model, data, forward)
    if not records:
        raise InputError(
            f"none of the layers {', '.join(selected)} returned a state with {nodes} rows: choose others with layers="
        )
    names, states = zip(*records, strict=True)
    return Trace(names, states, data.edge_index)


def _along_trajectory(
    model: nn.Module, data: Data, times: list[float], layers: str | Sequence[str] | None, forward: Forward | None
) -> Trace:
    trajectory: Any = getattr(model, "trajectory", None)
    if not callable(trajectory):
        raise InputError(f"{type(model).__name__} has no trajectory: leave times= out to read its layers through hooks")
    if layers is not None or forward is not None:
        raise InputError("times= reads the model's trajectory, which does not use layers= and forward=: leave them out")
    with evaluating(model):
        states = trajectory(data.x, data.edge_index, times, **further(trajectory, data))
    return Trace(tuple(f"t={t:g}" for t in times), tuple(states), data.edge_index, tuple(times))
