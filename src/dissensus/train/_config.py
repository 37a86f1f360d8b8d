"""What a run is: data, model and training as frozen dataclasses, checked when they are made. Free of torch."""

from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar, Self

from dissensus.catalogue import MODELS
from dissensus.data import PARTITIONERS
from dissensus.errors import InputError, one_of, unknown

OPTIMIZERS = ("adam", "adamax", "rmsprop")
DTYPES = ("float32", "float64")
# Datasets that are generated, and so have options of their own.
GENERATED = ("csbm", "arxiv-synthetic")

_KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}


def _setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


class _Section:
    """A part of the configuration; in a dictionary the options, whose names it does not know, stand among its own."""

    section: ClassVar[str]

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
        """Refuse values of the right type that make no sense."""

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

    def as_dict(self) -> dict[str, Any]:
        """Plain values; settings that are None are left out."""
        values: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        options = values.pop("options", {})
        return {name: value for name, value in values.items() if value is not None} | options


@dataclass(frozen=True)
class DataConfig(_Section):
    """Which graph, and which of its splits; ``options`` are those of a generated graph."""

    section: ClassVar[str] = "data"

    name: str = field(metadata={"help": "name of a dataset, or path of a graph"})
    split: int = _setting(1, "which split")
    largest_component: bool = _setting(False, "keep the largest connected component alone")
    undirected: bool | None = _setting(None, "add the reverse of every edge")
    fingerprint: str | None = _setting(None, "hash of the data, which must then agree")
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _check_options(cls, values: Mapping[str, Any], options: Mapping[str, Any], known: list[str]) -> None:
        if values.get("name") not in GENERATED:
            super()._check_options(values, options, known)

    def _check(self) -> None:
        self._at_least(0, "split")


@dataclass(frozen=True)
class ModelConfig(_Section):
    """Which model; ``options`` are those of its class, and are checked when it is made."""

    section: ClassVar[str] = "model"

    name: str = _setting("bimp", "name of a model")
    hidden_channels: int = _setting(64, "width of the hidden state")
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def _check_options(cls, values: Mapping[str, Any], options: Mapping[str, Any], known: list[str]) -> None:
        """Only the model's class knows them."""

    def _check(self) -> None:
        one_of("model", self.name, MODELS)
        self._at_least(1, "hidden_channels")


@dataclass(frozen=True)
class TrainConfig(_Section):
    """How to train, and what to select by."""

    section: ClassVar[str] = "train"

    epochs: int = _setting(200, "passes over the graph")
    optimizer: str = _setting("adam", f"one of {', '.join(OPTIMIZERS)}")
    lr: float = _setting(0.01, "learning rate")
    weight_decay: float = _setting(5e-4, "weight of the squared norm of the parameters")
    patience: int = _setting(0, "stop after so many epochs without a better validation; 0: never")
    select_time: bool = _setting(False, "select on validation over solver time up to 3T too, not over epochs alone")
    seed: int = _setting(1, "seed of weights and dropout")
    device: str = _setting("cpu", "device of torch, such as cpu or cuda")
    dtype: str = _setting("float32", f"one of {', '.join(DTYPES)}")
    # None rather than a value, so that a run without them is the same run as before there were any.
    consistency: float | None = _setting(
        None, "weight of agreeing, on all nodes, with the sharpened prediction of the epoch before"
    )
    clusters: int | None = _setting(None, "train on so many clusters of nodes in turn, not on the whole graph at once")
    clusters_per_step: int | None = _setting(None, "clusters, joined at random, of one step of the optimizer (1)")
    partitioner: str | None = _setting(None, f"what makes the clusters, one of {', '.join(PARTITIONERS)} (greedy)")

    def _check(self) -> None:
        one_of("optimizer", self.optimizer, OPTIMIZERS)
        one_of("dtype", self.dtype, DTYPES)
        self._at_least(1, "epochs")
        self._at_least(0, "patience", "weight_decay", "seed")
        if self.consistency is not None:
            self._at_least(0, "consistency")
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

    def __post_init__(self) -> None:
        if self.train.select_time and not MODELS[self.model.name].continuous:
            raise InputError(f"{self.model.name} has layers, not a time to select: set train.select_time to false")
        if self.train.select_time and self.model.options.get("depth") == "equilibrium":
            raise InputError(
                "an equilibrium has no time to select: set train.select_time to false, or leave model.depth out"
            )
        if self.train.clusters is not None and self.model.options.get("option_attention") == "node":
            raise InputError(
                "model.option_attention=node is tied to the nodes of the whole graph, so it cannot train on clusters: "
                "use gram or identity, or leave out train.clusters"
            )

    @classmethod
    def from_dict(cls, values: Mapping[str, Mapping[str, Any]]) -> Self:
        """A configuration from plain values by section; unknown sections and settings are refused."""
        check_sections(values)
        if "name" not in values.get("data", {}):
            raise InputError("data.name is missing: give the name of a dataset or the path of a graph")
        return cls(**{name: kind.from_dict(values.get(name, {})) for name, kind in SECTIONS.items()})

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Plain values by section, every default filled in: :meth:`from_dict` makes the same configuration of them."""
        return {name: getattr(self, name).as_dict() for name in SECTIONS}


SECTIONS: dict[str, Any] = {kind.section: kind for kind in (DataConfig, ModelConfig, TrainConfig)}


def check_sections(values: Mapping[str, Any]) -> None:
    """Refuse sections that do not exist, and those that hold no settings by name."""
    for name, section in values.items():
        one_of("section", name, SECTIONS)
        if not isinstance(section, Mapping):
            raise InputError(f"{name} is {section!r}: it is a section, so set something in it, such as train.epochs")


def settings(section: str) -> dict[str, tuple[type, Any, str]]:
    """The settings of a section: name -> (type, default, help)."""
    return {entry.name: (_kind(entry), entry.default, entry.metadata["help"]) for entry in _settings(SECTIONS[section])}


def _settings(section: Any) -> list[Field[Any]]:
    return [entry for entry in fields(section) if entry.default_factory is MISSING]


def _kind(entry: Field[Any]) -> type:
    required: dict[Any, type] = {str: str, int: int, float: float, bool: bool}
    optional: dict[Any, type] = {bool | None: bool, str | None: str, int | None: int, float | None: float}
    return {**required, **optional}[entry.type]
