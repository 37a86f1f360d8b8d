"""Gradient norms by layer."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dissensus.errors import InputError, one_of
from dissensus.measure._reading import Forward, call, check_data, evaluating, recording, select_layers

Loss = Callable[[Tensor, Data], Tensor]


def gradient_norms(
    model: nn.Module,
    data: Data,
    *,
    of: str = "parameters",
    loss: Loss | None = None,
    layers: str | Sequence[str] | None = None,
    forward: Forward | None = None,
) -> dict[str, float]:
    r"""Norms of the loss gradient by layer, in evaluation mode. The model and its ``.grad`` are left unchanged.

    With ``of="parameters"`` these are :math:`\|\partial \ell / \partial \theta\|_2` for the parameters of each layer.
    The layer of a parameter is its name up to the first number (``convs.3.lin.weight`` belongs to ``convs.3``), or the
    first part of its name if there is no number (``encoder.weight`` belongs to ``encoder``). Continuous models share
    their parameters over time; to see the norm by depth, build them with several end times.

    With ``of="states"`` these are :math:`\|\partial \ell / \partial X^l\|_F` for ``"input"`` (the features) and for the
    output of each layer. Layers are chosen as in :func:`watch`.

    The norm is 0 for layers that do not influence the loss.

    Args:
        model: any ``torch.nn.Module``.
        data: graph with ``x`` and ``edge_index``, and ``y`` for the default loss.
        of: ``"parameters"`` or ``"states"``.
        loss: function called as ``loss(output, data)``. The default is the cross-entropy with ``data.y`` over
            ``data.train_mask``, or over all labelled nodes (``y >= 0``) if there is no mask.
        layers: which modules count as layers, for ``of="states"``; see :func:`watch`.
        forward: function called as ``forward(model, data)`` to run the model. The default is ``model(data.x,
            data.edge_index)``, with further fields as in :func:`watch`.
    """
    one_of("gradient", of, ["parameters", "states"])
    check_data(data)
    if loss is None:
        if getattr(data, "y", None) is None or not (data.y >= 0).any():
            raise InputError("data.y has no labels: add labels (y >= 0), or pass another loss=")
        loss = _cross_entropy
    if of == "states":
        return _state_norms(model, data, loss, layers, forward)
    if layers is not None:
        raise InputError("layers= chooses outputs, not parameters: leave it out, or use of='states'")
    return _parameter_norms(model, data, loss, forward)


def _parameter_norms(model: nn.Module, data: Data, loss: Loss, forward: Forward | None) -> dict[str, float]:
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not named:
        raise InputError(f"{type(model).__name__} has no trainable parameters: use of='states'")
    with torch.enable_grad(), evaluating(model):
        value = loss(call(model, data, forward), data)
        gradients = _gradients(value, [p for _, p in named])
    squares: dict[str, float] = {}
    for (name, _), gradient in zip(named, gradients, strict=True):
        layer = _layer_of(name)
        squares[layer] = squares.get(layer, 0.0) + float(gradient.double().square().sum())
    return {layer: square**0.5 for layer, square in squares.items()}


def _state_norms(
    model: nn.Module, data: Data, loss: Loss, layers: str | Sequence[str] | None, forward: Forward | None
) -> dict[str, float]:
    selected = select_layers(model, layers)
    data = data.clone()
    data.x = data.x.detach().requires_grad_()
    with (
        torch.enable_grad(),
        evaluating(model),
        recording(selected, int(data.x.size(0)), lambda state: state) as records,
    ):
        value = loss(call(model, data, forward), data)
        states = [("input", data.x), *records]
        gradients = _gradients(value, [state for _, state in states])
    return {name: float(g.double().norm()) for (name, _), g in zip(states, gradients, strict=True)}


def _gradients(value: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    if not value.requires_grad:
        return [torch.zeros_like(x) for x in inputs]
    gradients = torch.autograd.grad(value, inputs, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]


def _layer_of(parameter: str) -> str:
    parts = parameter.split(".")
    numbers = [k for k, part in enumerate(parts) if part.isdigit()]
    return ".".join(parts[: numbers[0] + 1]) if numbers else parts[0]


def _cross_entropy(output: Tensor, data: Data) -> Tensor:
    y = data.y.view(-1)
    mask = data.train_mask if getattr(data, "train_mask", None) is not None else y >= 0
    return nn.functional.cross_entropy(output[mask], y[mask])
