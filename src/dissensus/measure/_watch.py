"""Read a model's hidden states, layer by layer or in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dissensus.errors import InputError
from dissensus.measure._reading import Forward, call, check_data, evaluating, recording, select_layers, weights_for
from dissensus.measure._summary import summary


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Hidden states of one run: ``names[k]`` names ``states[k]``, a tensor ``[n, channels]``, in the order of the run.

    ``times`` are the times (or layer numbers) of the states where the model was read through its trajectory, else None.
    """

    names: tuple[str, ...]
    states: tuple[Tensor, ...]
    edge_index: Tensor
    times: tuple[float, ...] | None = None

    def table(self) -> list[dict[str, str | float]]:
        """One row for each state: its name as ``layer``, ``time`` if there are times, and all of :func:`summary`."""
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

    Works on any module through forward hooks; the model is run in evaluation mode without gradients and left as it was,
    even if it raises. With ``times``, a model that has ``trajectory(x, edge_index, times)`` is read through that
    instead. So is, without any of ``times``, ``layers`` and ``forward``, a model that has ``milestones`` too, at these
    times. Of :mod:`dissensus.nn` those are the models whose layers are no modules: the continuous ones at quarters of
    their time (with ``depth="equilibrium"`` that is the transient), SGC and DGC at quarters of their layers.

    Args:
        model: any ``torch.nn.Module``.
        data: graph with ``x [n, in_channels]`` and ``edge_index``; its ``edge_weight``, if there is one, goes to a
            model whose ``forward`` (or ``trajectory``) has an argument of that name; the measures of the states count
            all edges alike.
        times: times, or layer numbers of a discrete model, at which to read the trajectory.
        layers: which modules are layers. By default every ``MessagePassing`` module, or the top-level children if there
            is none; ``"children"`` for the top-level children (in place of a ``ModuleList`` or ``ModuleDict`` its
            members); or names as in ``model.named_modules()`` (the model itself goes by the name of its class).
        forward: how to run the model, called as ``forward(model, data)``; by default ``model(data.x,
            data.edge_index)``, with ``edge_weight`` as above.

    Returns:
        The ``states`` [n, channels] of the run and their ``names`` (and ``times``, if read from a trajectory); its
        ``table()`` has all of :func:`summary` for each. There is one for each *call* of a layer: the second call of
        ``conv`` is named ``conv#2``. Of
        an output with several parts, such as a state and attention weights, the first part with a row for each node is
        kept; an output without one, such as a pooled graph, is left out.
    """
    check_data(data)
    nodes = int(data.x.size(0))
    if times is None and layers is None and forward is None and hasattr(model, "trajectory"):
        times = getattr(model, "milestones", None) or None
    if times is not None:
        return _along_trajectory(model, data, [float(t) for t in times], layers, forward)
    selected = select_layers(model, layers)
    # Cloned, as the next layer may well be an activation that works in place.
    with evaluating(model), recording(selected, nodes, Tensor.clone) as records:
        call(model, data, forward)
    if not records:
        raise InputError(
            f"none of the layers {', '.join(selected)} put out a state of {nodes} rows; choose others with layers="
        )
    names, states = zip(*records, strict=True)
    return Trace(names, states, data.edge_index)


def _along_trajectory(
    model: nn.Module,
    data: Data,
    times: list[float],
    layers: str | Sequence[str] | None,
    forward: Forward | None,
) -> Trace:
    trajectory: Any = getattr(model, "trajectory", None)
    if not callable(trajectory):
        raise InputError(f"{type(model).__name__} has no trajectory; leave times= out to read its layers through hooks")
    if layers is not None or forward is not None:
        raise InputError(
            "times= reads the model's trajectory, where layers= and forward= have no meaning; leave them out"
        )
    with evaluating(model):
        states = trajectory(data.x, data.edge_index, times, **weights_for(trajectory, data))
    return Trace(tuple(f"t={t:g}" for t in times), tuple(states), data.edge_index, tuple(times))
