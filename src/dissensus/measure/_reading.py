"""Run a model and record the outputs of its layers, without changing the model."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from dissensus import train
from dissensus.errors import InputError, unknown

Forward = Callable[[nn.Module, Data], Any]


def check_data(data: Data) -> Data:
    """Return ``data`` if it has features and edges."""
    for name in ("x", "edge_index"):
        if getattr(data, name, None) is None:
            raise InputError(f"data.{name} is missing: give a PyG Data with x and edge_index, as dataset.split(1) is")
    return data


def call(model: nn.Module, data: Data, forward: Forward | None) -> Any:
    """The output on ``data``: ``forward(model, data)``, or by default that of a call as in training (``train.fit``)."""
    return forward(model, data) if forward is not None else model(data.x, data.edge_index, **further(model, data))


def further(function: Callable[..., Any], data: Data) -> dict[str, Any]:
    """The fields of ``data`` besides ``x`` and ``edge_index`` that a module or a function names as arguments."""
    return train.inputs(function, train.fields_of(data, data.x.device, data.x.dtype))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Context manager for evaluation mode; afterwards every module is back in its own mode."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def select_layers(model: nn.Module, layers: str | Sequence[str] | None) -> dict[str, nn.Module]:
    """The modules that count as layers, by name (see :func:`watch`)."""
    modules = {name or type(module).__name__: module for name, module in model.named_modules()}
    children = _children(model)
    if layers is None:
        convolutions = {name: module for name, module in modules.items() if isinstance(module, MessagePassing)}
        selected = convolutions or children
    elif layers == "children":
        selected = children
    else:
        names = [layers] if isinstance(layers, str) else list(layers)
        for name in names:
            if name not in modules:
                raise unknown("layer", name, modules)
        selected = {name: modules[name] for name in names}
    if not selected:
        raise InputError(f"{type(model).__name__} has no layers to read: name some modules with layers=")
    return selected


def _children(model: nn.Module) -> dict[str, nn.Module]:
    """The top-level children. A list or dictionary of modules, which is never called, is replaced by its members."""
    found: dict[str, nn.Module] = {}
    for name, child in model.named_children():
        if isinstance(child, nn.ModuleList | nn.ModuleDict):
            found |= {f"{name}.{inner}": module for inner, module in _children(child).items()}
        else:
            found[name] = child
    return found


@contextmanager
def recording(
    layers: dict[str, nn.Module], nodes: int, transform: Callable[[Tensor], Tensor]
) -> Iterator[list[tuple[str, Tensor]]]:
    """Context manager with a list, to which forward hooks append ``(name, transform(state))`` for every layer call."""
    records: list[tuple[str, Tensor]] = []
    calls: Counter[str] = Counter()

    def hook_for(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            state = _state_in(output, nodes)
            if state is not None:
                calls[name] += 1
                records.append((name if calls[name] == 1 else f"{name}#{calls[name]}", transform(state)))

        return hook

    handles = [module.register_forward_hook(hook_for(name)) for name, module in layers.items()]
    try:
        yield records
    finally:
        for handle in handles:
            handle.remove()


def _state_in(output: Any, nodes: int) -> Tensor | None:
    """The first tensor in an output (which may be a tuple or dictionary) with one row for each node."""
    if isinstance(output, Tensor):
        is_state = output.is_floating_point() and output.dim() == 2 and output.size(0) == nodes and output.size(1) > 0
        return output if is_state else None
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, list | tuple):
        return next((state for item in output if (state := _state_in(item, nodes)) is not None), None)
    return None
