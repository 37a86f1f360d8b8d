"""The configuration of a run: checked, frozen dataclasses for data, model and training. Does not import torch."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dissensus.data import PARTITIONERS, names
from dissensus.errors import InputError, one_of, optional, unknown
from dissensus.runtime import memoized

if TYPE_CHECKING:
    from dissensus.data import Dataset
    from dissensus.nn import ModelInfo

OPTIMIZERS = ("adam", "adamax", "rmsprop")
DTYPES = ("float32", "float64")
# Metrics of classes, of two classes, and of numbers.
CLASS_METRICS = ("accuracy", "balanced_accuracy", "macro_f1")
BINARY_METRICS = ("roc_auc", "average_precision")
ERRORS = ("mae", "rmse")
METRICS = CLASS_METRICS + BINARY_METRICS + ERRORS
# Generated datasets, which have options of their own.
GENERATED = ("csbm", "arxiv-synthetic", "shortest-path", "eccentricity", "diameter", "ring-transfer")

_KINDS = {int: "an integer", float: "a finite number", bool: "true or false", str: "a text in quotes"}


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


def is_error(metric: str) -> bool:
    """Whether a metric is an error in the target's unit (smaller is better); other metrics are in per cent."""
    return metric in ERRORS


def located(model: str) -> str:
    """The name of a model; if it is ``file.py:Class``, with the absolute path of the file."""
    path, _, name = model.rpartition(":")
    return f"{Path(path).expanduser().resolve()}:{name}" if path.endswith(".py") else model


class _Section:
    """A section of the configuration.

    In a dictionary, its options stand beside its settings: every name that is not a setting is an option.
    """

    section: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """The docstring lists the settings, in the words of the command line's help."""
        entries = {name: entry for name, entry in vars(cls).items() if isinstance(entry, Field)}
        lines = [f"    {name}: {entry.metadata['help']}." for name, entry in entries.items() if entry.metadata]
        cls.__doc__ = "\n".join([cls.__doc__ or "", "", "Args:", *lines])

    def __post_init__(self) -> None:
        for entry in _settings(type(self)):
            value: Any = getattr(self, entry.name)
            if value is None and entry.default is None:
                continue
            kind = _kind(entry)
            if kind is float and type(value) in (int, float) and isfinite(value):
                object.__setattr__(self, entry.name, float(value))
            elif kind is float or type(value) is not kind:
                raise InputError(f"{self.section}.{entry.name} is {value!r}: give {_KINDS[kind]}")
        self._check()

    def _check(self) -> None:
        """Raise an error for values that are of the right type, but invalid."""

    def _at_least(self, least: int, *names: str) -> None:
        for name in names:
            if getattr(self, name) < least:
                raise InputError(f"{self.section}.{name} is {getattr(self, name)}: give at least {least}")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        known = [entry.name for entry in _settings(cls)]
        own = {name: value for name, value in values.items() if name in known}
        options = {name: value for name, value in values.items() if name not in known}
        if not options:
            return cls(**own)
        cls._check_options(values, options, known)
        return cls(**own, options=options)  # type: ignore[call-arg]

    @classmethod
    def _check_options(cls, values: Mapping[str, Any], options: Mapping[str, Any], known: list[str]) -> None:
        raise unknown("setting", f"{cls.section}.{next(iter(options))}", [f"{cls.section}.{name}" for name in known])

    @classmethod
    def settings(cls) -> dict[str, tuple[type, Any, str]]:
        """The settings of the section: name -> (type, default, help)."""
        return {entry.name: (_kind(entry), entry.default, entry.metadata["help"]) for entry in _settings(cls)}

    def as_dict(self) -> dict[str, Any]:
        """Plain values; settings that are None are left out."""
        values: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        options = values.pop("options", {})
        return {name: value for name, value in values.items() if value is not None} | options


@dataclass(frozen=True)
class DataConfig(_Section):
    """The graph and its split; ``options`` are those of a generated graph."""

    section: ClassVar[str] = "data"

    name: str = field(metadata={"help": "name of a dataset, or path of a graph"})
    split: int = _setting(1, "number of the split")
    largest_component: bool = _setting(False, "keep only the largest connected component")
    undirected: bool | None = _setting(None, "add the reverse of every edge")
    fingerprint: str | None = _setting(None, "hash that the data must have")
    labels_per_class: int | None = _setting(None, "number of training nodes in each class, instead of the protocol's")
    missing_features: float | None = _setting(
        None, "share (0 to 1) of the nodes outside the training set whose features are set to zero"
    )
    protocol: str | None = _setting(None, "other splits of the same data, such as tunedgnn")
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _check_options(cls, values: Mapping[str, Any], options: Mapping[str, Any], known: list[str]) -> None:
        if values.get("name") not in GENERATED:
            super()._check_options(values, options, known)

    def _check(self) -> None:
        self._at_least(0, "split")
        if self.labels_per_class is not None:
            self._at_least(1, "labels_per_class")
        if self.missing_features is not None and not 0.0 <= self.missing_features <= 1.0:
            raise InputError(f"data.missing_features is {self.missing_features}: give a share from 0 to 1")

    def load(self) -> "Dataset":
        """The dataset. The last two are cached, so that a grid of runs loads each of them once."""
        # A file may change at any time, so it is only cached if its fingerprint is given.
        cached = self.fingerprint is not None or self.name in names()
        dataset = (_load if cached else _load.__wrapped__)(json.dumps(self.as_dict() | {"split": 0}))
        if self.fingerprint not in (None, dataset.fingerprint):
            raise InputError(
                f"{self.name} has changed since this configuration was created (its hash is {dataset.fingerprint}, not "
                f"{self.fingerprint}): restore the file, or create a new configuration"
            )
        return dataset


@memoized(2)
def _load(settings: str) -> "Dataset":
    from dissensus import data

    given = json.loads(settings)
    name, _, _ = given.pop("name"), given.pop("split"), given.pop("fingerprint", None)
    return data.load(name, **given)


@dataclass(frozen=True)
class ModelConfig(_Section):
    """The model; ``options`` are those of its class, which checks them when the model is created."""

    section: ClassVar[str] = "model"

    name: str = _setting("bimp", "name of a model")
    hidden_channels: int = _setting(64, "width of the hidden state")
    fingerprint: str | None = _setting(None, "hash that the file of your own model must have")
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _check_options(cls, values: Mapping[str, Any], options: Mapping[str, Any], known: list[str]) -> None:
        """Options are checked by the model's class."""

    def _check(self) -> None:
        self._at_least(1, "hidden_channels")

    def file_hash(self) -> str | None:
        """A hash of the file that the model's class is in, if the name is ``file.py:Class``; otherwise None."""
        path = Path(located(self.name).rpartition(":")[0])
        if path.suffix != ".py" or not path.is_file():
            return None
        return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()

    def pinned(self) -> Self:
        """The same configuration; a model from a file gets the file's absolute path and hash."""
        found = self.file_hash()
        return self if found is None else replace(self, name=located(self.name), fingerprint=found)

    def info(self) -> "ModelInfo":
        """The registered model of this name. Raises an error if its file has changed since it was pinned."""
        from dissensus import nn

        if self.fingerprint not in (None, found := self.file_hash()):
            raise InputError(
                f"{self.name} has changed since this configuration was created (its hash is {found}, not "
                f"{self.fingerprint}): restore the file, or create a new configuration"
            )
        return nn.info(self.name)

    def create(self, in_channels: int, out_channels: int, num_nodes: int) -> Any:
        """The model, a ``torch.nn.Module``, for a graph of these sizes."""
        info = self.info()
        options = info.complete(self.options, num_nodes=num_nodes)
        return info.create(in_channels, self.hidden_channels, out_channels, **options)


@dataclass(frozen=True)
class TrainConfig(_Section):
    """How a model is trained, and how its best epoch is selected."""

    section: ClassVar[str] = "train"

    epochs: int = _setting(200, "passes over the graph")
    optimizer: str = _setting("adam", f"one of {', '.join(OPTIMIZERS)}")
    lr: float = _setting(0.01, "learning rate")
    weight_decay: float = _setting(5e-4, "weight decay of the optimizer")
    patience: int = _setting(0, "stop after this number of epochs without a better validation metric; 0: never")
    select_time: bool = _setting(False, "also select the solver time, up to 3T, on validation")
    seed: int = _setting(1, "seed of weights and dropout")
    device: str = _setting("cpu", "torch device, such as cpu or cuda")
    dtype: str = _setting("float32", f"one of {', '.join(DTYPES)}")
    # These defaults are None, which `as_dict` leaves out, so that stored runs without these settings are still found.
    consistency: float | None = _setting(
        None, "weight of a loss on all nodes: the cross-entropy with the sharpened predictions of the previous epoch"
    )
    node_dropout: float | None = _setting(
        None, "probability that all features of a node are set to zero in a training step (default: 0)"
    )
    clusters: int | None = _setting(
        None, "train on clusters of nodes instead of the whole graph: the number of clusters"
    )
    clusters_per_step: int | None = _setting(
        None, "number of random clusters that form the batch of one optimizer step (default: 1)"
    )
    partitioner: str | None = _setting(
        None, f"algorithm that makes the clusters, one of {', '.join(PARTITIONERS)} (default: greedy)"
    )
    metric: str | None = _setting(
        None, f"metric to select by and to report, one of {', '.join(METRICS)} (default: the dataset's)"
    )

    def _check(self) -> None:
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        one_of("dtype", self.dtype, DTYPES)
        if self.metric is not None:
            one_of("metric", self.metric, METRICS)
        self._at_least(1, "epochs")
        self._at_least(0, "patience", "weight_decay", "seed")
        if self.consistency is not None:
            self._at_least(0, "consistency")
        if self.node_dropout is not None and not 0.0 <= self.node_dropout < 1.0:
            raise InputError(f"train.node_dropout is {self.node_dropout}: give a probability from 0 to below 1")
        if self.lr <= 0:
            raise InputError(f"train.lr is {self.lr}: give a positive learning rate")
        self._check_clusters()

    def _check_clusters(self) -> None:
        if self.clusters is None:
            for name in ("clusters_per_step", "partitioner"):
                if getattr(self, name) is not None:
                    raise InputError(f"train.{name} is for training on clusters: set train.clusters as well")
            return
        self._at_least(1, "clusters")
        if self.consistency is not None:
            raise InputError("train.consistency needs the whole graph in every step: leave it out, or train.clusters")
        if self.clusters_per_step is not None and not 1 <= self.clusters_per_step <= self.clusters:
            raise InputError(
                f"train.clusters_per_step is {self.clusters_per_step}: give at least 1 and at most the {self.clusters} "
                "of train.clusters"
            )
        if self.partitioner is not None:
            one_of("partitioner", self.partitioner, PARTITIONERS)


@dataclass(frozen=True)
class Config:
    """One run: everything that its result depends on.

    >>> Config.from_dict({"data": {"name": "cora"}, "model": {"name": "gcn", "num_layers": 4}}).model.options
    {'num_layers': 4}
    """

    data: DataConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def pinned(self) -> Self:
        """The same configuration, with the absolute paths and the content hashes of the files that it names.

        Worker processes, stores and saved models identify graphs and models from files by path and hash, because a file
        may change. The hash of a model is that of its file alone, not of modules that the file imports.
        """
        data = self.data
        if data.name not in names():
            path = str(Path(data.name).expanduser().resolve())
            data = replace(data, name=path, fingerprint=data.load().fingerprint)
        return replace(self, data=data, model=self.model.pinned())

    def check(self) -> None:
        """Raise an error for model options, a device or a partitioner that cannot be used (this imports torch)."""
        import torch

        from dissensus.train._fit import check_model, device_of

        device_of(self.train.device)
        if self.train.partitioner == "metis":
            optional("pymetis", "partition")
        with torch.random.fork_rng(devices=[]):
            try:
                model = self.model.create(1, 2, 1)
            except TypeError as error:
                raise InputError(f"an option of {self.model.name} is of the wrong type: {error}") from error
        check_model(model, self.train)

    @staticmethod
    def sections() -> dict[str, Any]:
        """The classes of the sections: ``data``, ``model``, ``train``."""
        return dict(SECTIONS)

    @classmethod
    def from_dict(cls, values: Mapping[str, Mapping[str, Any]]) -> Self:
        """A configuration from plain values by section. Unknown sections and settings raise an error."""
        check_sections(values)
        if "name" not in values.get("data", {}):
            raise InputError("data.name is missing: give the name of a dataset or the path of a graph")
        return cls(**{name: kind.from_dict(values.get(name, {})) for name, kind in SECTIONS.items()})

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values by section, including defaults; :meth:`from_dict` restores the configuration from them."""
        return {name: getattr(self, name).as_dict() for name in SECTIONS}


# The sections by name.
SECTIONS: dict[str, Any] = {kind.section: kind for kind in (DataConfig, ModelConfig, TrainConfig)}


def check_sections(values: Mapping[str, Any]) -> None:
    """Raise an error for unknown sections, and for sections that are not mappings."""
    for name, section in values.items():
        one_of("section", name, SECTIONS)
        if not isinstance(section, Mapping):
            raise InputError(
                f"{name} is {section!r}, but it is a section: set one of its settings, such as train.epochs"
            )


def _settings(section: Any) -> list[Field[Any]]:
    return [entry for entry in fields(section) if entry.default_factory is MISSING]


def _kind(entry: Field[Any]) -> type:
    required: dict[Any, type] = {str: str, int: int, float: float, bool: bool}
    optional: dict[Any, type] = {bool | None: bool, str | None: str, int | None: int, float | None: float}
    return {**required, **optional}[entry.type]
