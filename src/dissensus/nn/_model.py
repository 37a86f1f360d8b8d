"""What every model has: a recorded configuration, saving and loading, a readable ``repr``."""

from __future__ import annotations

import functools
import inspect
import json
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from dissensus.errors import InputError
from dissensus.graph import SparseFeatures
from dissensus.graph import features as checked_features


class Model(torch.nn.Module):
    """Base of all models: node features [n, in_channels] and a graph to scores [n, out_channels].

    The arguments a model was made with are kept in ``config`` (plain values, every default filled in).
    """

    config: dict[str, Any]
    in_channels: int
    normalize_features: bool | str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:
            cls.__init__ = _recording(cls.__init__, cls.__base__.__init__)  # type: ignore[method-assign,misc]

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        sizes = ", ".join(str(self.config[k]) for k in ("in_channels", "hidden_channels", "out_channels"))
        changed = (
            f", {key}={value!r}"
            for key, value in self.config.items()
            if key in signature
            and signature[key].kind is inspect.Parameter.KEYWORD_ONLY
            and value != signature[key].default
        )
        return f"{type(self).__name__}({sizes}{''.join(changed)})"

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        for module in self.children():
            _reset(module)

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
    # A module that knows how to reset itself also knows its parts: descending further would undo what it chose.
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()
        return
    for part in module.children():
        _reset(part)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _recording(init: Any, inherited: Any) -> Any:
    signature = _with_inherited(inspect.signature(init), inspect.signature(inherited))

    @functools.wraps(init)
    def recorded(self: Model, *args: Any, **kwargs: Any) -> None:
        args, kwargs = tuple(map(_plain, args)), {key: _plain(value) for key, value in kwargs.items()}
        if "config" not in self.__dict__:  # the outermost constructor speaks
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            values = dict(list(bound.arguments.items())[1:])
            object.__setattr__(self, "config", values)
        init(self, *args, **kwargs)

    recorded.__signature__ = signature  # type: ignore[attr-defined]
    return recorded


def _with_inherited(own: inspect.Signature, inherited: inspect.Signature) -> inspect.Signature:
    """The signature with ``**options`` spelled out: those of the class it is handed on to."""
    parameters = list(own.parameters.values())
    if not parameters or parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return own
    handed_on = [p for p in inherited.parameters.values() if p.kind is p.KEYWORD_ONLY and p.name not in own.parameters]
    return own.replace(parameters=parameters[:-1] + handed_on)


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
