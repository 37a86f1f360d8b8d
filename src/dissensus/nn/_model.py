"""The base class of all models: a recorded configuration, saving and loading, and a description of what a model can do.

Code outside :mod:`dissensus.nn` asks the model what it can do instead of testing for its name:

- ``continuous`` (class attribute): whether depth is integration time rather than a number of layers;
- ``has_solver_time``: whether the solver time can be selected on validation data; such a model has a ``time`` and
  ``scores_over_time(x, edge_index, end, callback)``;
- ``prepare(data)``: takes what the model needs from a graph before training on it;
- ``graph_buffers`` (class attribute): names of buffers whose size depends on the graph; None until ``prepare``;
- ``bound_nodes``: number of nodes of the only graph that the model can run on;
- ``complete(options, num_nodes)``: adds constructor options that depend on the graph.
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
    """The signature that ``help``, ``inspect`` and notebooks show for a model class, with every keyword."""

    def __get__(self, model: Any, cls: type) -> inspect.Signature:
        if model is not None:  # the signature is that of the constructor, not of forward
            raise AttributeError("__signature__")
        return constructor(cls)


class Model(torch.nn.Module):
    """Base class of all models, which map node features [n, in_channels] and a graph to scores [n, out_channels].

    Attributes:
        config: all arguments of the constructor, defaults included, as plain values.
        continuous: whether the depth is integration time rather than a number of layers.
        graph_buffers: names of buffers whose size depends on the graph; they are None until :meth:`prepare` is called.
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
        if args or options:  # copy and pickle pass no arguments, because they restore the attributes themselves
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
        """Number of nodes of the only graph that the model can run on; None if it can run on any graph."""
        return None

    def prepare(self, data: Data) -> None:
        """Take what the model needs from a graph before running on it, such as ``data.train_mask``.

        Training calls this with the PyG ``Data`` of the split, and with every batch before its forward pass. Most
        models need nothing.
        """

    @classmethod
    def complete(cls, options: Mapping[str, Any], num_nodes: int) -> dict[str, Any]:
        """Add the constructor options that depend on the graph, such as its number of nodes; most models have none."""
        return dict(options)

    def reset_parameters(self) -> None:
        """Reset all learnable parameters."""
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
        """The learned graphs: A_a as sparse CSR [n, n] and A_o as dense [o, o]. None if the model learns no graph."""
        return None

    def check_features(self, x: Tensor | SparseFeatures) -> Tensor | SparseFeatures:
        """Check the features and convert them to what the encoder takes: sparse if that is faster."""
        if exporting() and self.training:
            raise InputError("the model is in training mode, but export is for inference: call model.eval() first")
        checked = checked_features(x, normalize=self.normalize_features)
        own, given = next(self.parameters()).dtype, checked.dtype
        if own not in (torch.float32, torch.float64):
            raise InputError(f"the model has dtype {own}: use model.float() or model.double()")
        if given != own:
            raise InputError(f"x has dtype {given}, but the model has {own}: convert x with x.to({own})")
        if checked.shape[1] != self.in_channels:
            raise InputError(
                f"x has {checked.shape[1]} features, but the model has in_channels={self.in_channels}: "
                "give features of that width, or create the model with the width of x"
            )
        return checked

    def save(self, path: str | PathLike[str]) -> None:
        """Write parameters and configuration to one safetensors file."""
        from safetensors.torch import save_file

        if not Path(path).parent.is_dir():
            raise InputError(f"there is no folder {Path(path).parent}: create it first")
        tensors = {key: value.contiguous() for key, value in self.state_dict().items()}
        metadata = {"class": type(self).__name__, "config": json.dumps(self.config)}
        save_file(tensors, str(path), metadata=metadata)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Load a model of this class from a file written by :meth:`save`, to the CPU and in evaluation mode."""
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
    """At most five steps between 0 and ``steps``, evenly spaced, both ends included."""
    return sorted({round(steps * k / 4) for k in range(5)})


def _reset(module: torch.nn.Module) -> None:
    # A module with reset_parameters also resets its submodules: descending further would undo its initialisation.
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    for part in module.children():
        _reset(part)


def constructor(cls: type) -> inspect.Signature:
    """The signature of ``cls(...)``, with ``*args`` and ``**options`` replaced by parameters of the base class."""
    positional: list[inspect.Parameter] = []
    named: list[inspect.Parameter] = []
    rest: list[inspect.Parameter] = []
    by_position = True
    for base in cls.__mro__:
        if "__init__" not in base.__dict__ or base in (torch.nn.Module, object):
            continue
        _, *own = inspect.signature(base.__dict__["__init__"]).parameters.values()
        names = {parameter.name for parameter in (*positional, *named)}
        rest = [p for p in own if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        for parameter in own:
            if parameter in rest or parameter.name in names:
                continue
            if by_position and parameter.kind is not parameter.KEYWORD_ONLY:
                positional.append(parameter)
            else:
                named.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
        by_position = by_position and any(p.kind is p.VAR_POSITIONAL for p in rest)
        if not any(p.kind is p.VAR_KEYWORD for p in rest):
            break
    return inspect.Signature(
        [
            *positional,
            *(p for p in rest if p.kind is p.VAR_POSITIONAL),
            *named,
            *(p for p in rest if p.kind is p.VAR_KEYWORD),
        ]
    )


def _config(signature: inspect.Signature, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    bound = signature.bind(*args, **options)
    bound.apply_defaults()
    config = dict(bound.arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            config |= config.pop(name)
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in config.items()}


def read_file(path: str | PathLike[str]) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a saved model."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise InputError(f"there is no file {path}: give a file written by model.save or 'dissensus train --save'")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise InputError(f"{path} is not a safetensors file ({error}): save the model again") from None
    if not {"class", "config"} <= metadata.keys():
        raise InputError(f"{path} holds no dissensus model (its configuration is missing): save it with model.save")
    return metadata, tensors
