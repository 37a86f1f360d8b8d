"""The base of all models: a recorded configuration, saving and loading, and what a model tells its users.

A model tells what it can do, so that nothing outside :mod:`dissensus.nn` needs to know its name:

- ``continuous`` (class attribute): its depth is integration time rather than a number of layers;
- ``has_solver_time``: there is a solver time to select over;
- ``prepare(data)``: takes what the model needs from a graph before it trains on it;
- ``graph_buffers`` (class attribute): buffers as large as the graph that the model was prepared for, None before;
- ``bound_nodes``: the node count of the one graph that it can run on;
- ``complete(options, num_nodes)``: the constructor's options that only the graph can tell.
"""

from __future__ import annotations

import inspect
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dissensus.errors import InputError
from dissensus.graph import SparseFeatures
from dissensus.graph import features as checked_features
from dissensus.runtime import exporting


class _Signature:
    """What ``help``, ``inspect`` and notebooks show of a model's class: every keyword of the constructor."""

    def __get__(self, model: Any, cls: type) -> inspect.Signature:
        if model is not None:  # calling a model is another thing than making one
            raise AttributeError("__signature__")
        return constructor(cls)


class Model(torch.nn.Module):
    """Base of all models: node features [n, in_channels] and a graph to scores [n, out_channels].

    Attributes:
        config: the arguments that the constructor was called with and the defaults of all others, as plain values.
        continuous: whether the depth is integration time rather than a number of layers.
        graph_buffers: names of buffers whose size comes with a graph; they are None before.
    """

    __signature__ = _Signature()
    continuous: ClassVar[bool] = False
    graph_buffers: ClassVar[tuple[str, ...]] = ()
    config: dict[str, Any]
    in_channels: int
    normalize_features: bool | str

    def __new__(cls, *args: Any, **options: Any) -> Self:
        following = super().__new__
        # A mixin beside the model may record the arguments as well.
        model = following(cls) if following is object.__new__ else following(cls, *args, **options)
        if args or options:  # copy and pickle give none: they restore the attributes themselves
            object.__setattr__(model, "config", _config(constructor(cls), args, options))
        return model

    def __repr__(self) -> str:
        parameters = list(constructor(type(self)).parameters.values())
        sizes = ", ".join(str(self.config[parameter.name]) for parameter in parameters[:3])
        changed = (
            f", {p.name}={self.config[p.name]!r}"
            for p in parameters[3:]
            if p.name in self.config and self.config[p.name] != p.default
        )
        return f"{type(self).__name__}({sizes}{''.join(changed)})"

    @property
    def has_solver_time(self) -> bool:
        """Whether the scores are read at a solver time, which can be selected on validation data."""
        return self.continuous

    @property
    def bound_nodes(self) -> int | None:
        """The node count of the one graph that the model can run on, in that graph's node order; None: any graph."""
        return None

    def prepare(self, data: Data) -> None:
        """Take what the model needs from a graph before it runs on it, such as ``data.train_mask``; nothing here.

        Training calls this with the PyG ``Data`` of the split, and with every batch before the forward pass on it.
        """

    @classmethod
    def complete(cls, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """``options`` of the constructor with those added that only a graph can tell; here there are none."""
        return dict(options)

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in self.children():
            _reset(module)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        for name in self.graph_buffers:
            saved = state_dict.get(f"{prefix}{name}")
            device = next(self.parameters(), torch.empty(0)).device
            setattr(self, name, None if saved is None else torch.empty_like(saved, device=device))
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    @abstractmethod
    def trajectory(
        self,
        x: Tensor | SparseFeatures,
        edge_index: Tensor,
        times: Sequence[float],
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """Hidden states at given times, or after given layers: [len(times), n, channels]."""

    @property
    def milestones(self) -> tuple[float, ...]:
        """Depths from start to end at which :meth:`trajectory` shows how the states change.

        Empty for a model whose layers are modules: these are read one by one.
        """
        return ()

    def graphs(self, x: Tensor | SparseFeatures, edge_index: Tensor, edge_weight: Tensor | None = None) -> Any:
        """The learned graphs (A_a as sparse CSR [n, n], A_o dense [o, o]); None where a model has none."""
        return None

    def check_features(self, x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
        """Features as the encoder takes them (sparse where that is faster), or an error that says what is wrong."""
        if exporting() and self.training:
            raise InputError("the model is in training mode, but exported for inference: call model.eval() first")
        checked = checked_features(x, normalize=self.normalize_features)
        own, given = next(self.parameters()).dtype, checked.dtype
        if own not in (torch.float32, torch.float64):
            raise InputError(f"the model has dtype {own}: use model.float() or model.double()")
        if given != own:
            raise InputError(f"x has dtype {given}, the model {own}: convert x with x.to({own})")
        if checked.shape[1] != self.in_channels:
            raise InputError(
                f"x has {checked.shape[1]} features, the model was made for in_channels={self.in_channels}: "
                "give features of that width, or make the model with the width of x"
            )
        return checked

    def save(self, path: str | PathLike[str]) -> None:
        """Write parameters and configuration to one safetensors file."""
        from safetensors.torch import save_file

        if not Path(path).parent.is_dir():
            raise InputError(f"there is no folder {Path(path).parent}: make it first")
        tensors = {key: value.contiguous() for key, value in self.state_dict().items()}
        metadata = {"class": type(self).__name__, "config": json.dumps(self.config)}
        save_file(tensors, str(path), metadata=metadata)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A model of this class from a file that :meth:`save` wrote, on the CPU, in evaluation mode."""
        metadata, tensors = read_file(path)
        if metadata["class"] != cls.__name__:
            raise InputError(f"{path} holds a {metadata['class']}, not a {cls.__name__}: load it with nn.load")
        try:
            model = cls(**json.loads(metadata["config"]))
            for dtype in {t.dtype for t in tensors.values() if t.is_floating_point()}:
                model.to(dtype)
            model.load_state_dict(tensors)
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{path} does not fit a {cls.__name__} of this version ({error}): save the model again"
            ) from error
        return model.eval()


def quarters(steps: int) -> list[int]:
    """Up to five of the steps 0 to ``steps``, a quarter of them apart, both ends included."""
    return sorted({round(steps * k / 4) for k in range(5)})


def _reset(module: torch.nn.Module) -> None:
    # A module with reset_parameters resets its parts as well: descending further would undo its initialisation.
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    for part in module.children():
        _reset(part)


def constructor(cls: type) -> inspect.Signature:
    """The signature of ``cls(...)``, with ``**options`` spelled out: the keywords of the base class that takes them."""
    parameters: list[inspect.Parameter] = []
    for base in cls.__mro__:
        if "__init__" not in base.__dict__ or base in (torch.nn.Module, object):
            continue
        _, *own = inspect.signature(base.__dict__["__init__"]).parameters.values()
        names = {parameter.name for parameter in parameters[:-1]}
        inherited = [_by_keyword(p) for p in own if p.kind is not p.VAR_POSITIONAL and p.name not in names]
        parameters = [*parameters[:-1], *inherited] if parameters else own
        if not parameters or parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
            break
    return inspect.Signature(parameters)


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter if parameter.kind is parameter.VAR_KEYWORD else parameter.replace(kind=parameter.KEYWORD_ONLY)


def _config(signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    config = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            config |= config.pop(name)
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in config.items()}


def read_file(path: str | PathLike[str]) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a saved model, or an error that says why the file is none."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise InputError(f"there is no file {path}: name the one that model.save or 'dissensus train --save' wrote")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file ({error}): save the model again") from None
    if not {"class", "config"} <= metadata.keys():
        raise InputError(f"{path} holds no dissensus model (its configuration is missing): save it with model.save")
    return metadata, tensors
