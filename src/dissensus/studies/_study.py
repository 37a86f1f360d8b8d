"""What a study is: the runs it needs, the rows that their results become, and how these are shown."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from dissensus import data
from dissensus.errors import InputError, one_of
from dissensus.runs import Record, RunConfig, grid, key
from dissensus.studies._printed import Printed, printed
from dissensus.studies._views import View
from dissensus.train import TARGET, preset_names, read_preset, resolve

Row = dict[str, Any]

# Splits 1-20 are set aside for tuning, so what is reported by default comes from others.
REPORT_SPLITS = tuple(range(101, 121))
QUICK_EPOCHS = 3
# The choices of a request that narrow the runs of a study.
CHOICES = ("preset", "models", "datasets", "splits", "seeds", "depths", "only")


@dataclass(frozen=True)
class Request:
    """What the caller asks for; None leaves a choice to the study.

    Attributes:
        preset: where the settings of models come from, in place of the study's own.
        models, datasets, splits, seeds, depths: what to run.
        only: of the axes of a study (depth, change, saturation and so on) only these values.
        quick: a tiny version of everything, to see that it works.
        synthetic: a generated graph in place of a dataset that cannot be had.
    """

    preset: str | None = None
    models: tuple[str, ...] | None = None
    datasets: tuple[str, ...] | None = None
    splits: tuple[int, ...] | None = None
    seeds: tuple[int, ...] | None = None
    depths: tuple[int, ...] | None = None
    only: Mapping[str, Sequence[Any]] | None = None
    quick: bool = False
    synthetic: bool = False

    def __post_init__(self) -> None:
        from dissensus import nn

        for model in self.models or ():
            nn.info(model)
        for dataset in self.datasets or ():
            one_of("dataset", dataset, data.names())
        if self.preset is not None and not self.preset.endswith(".toml"):
            one_of("preset", self.preset, preset_names())


@dataclass(frozen=True)
class StudyRuns:
    """The runs of a study: configurations, and the preset of each setting (by the hash in its rows)."""

    configs: list[RunConfig]
    presets: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Study(ABC):
    """A table or figure: which runs, which rows they become, how these are shown.

    Attributes:
        name: how it is called.
        title: its heading.
        about: what is done, in a few sentences.
        dimensions: the columns that tell its cells apart; runs that differ in split or seed alone share a cell.
        views: tables and charts.
        target: what makes a result from a configuration, see :func:`dissensus.runs.execute`.
        serial: one run at a time in this process, because time itself is measured.
        preset: where the settings of models come from, by default.
    """

    name: str
    title: str
    about: str
    dimensions: tuple[str, ...]
    views: tuple[View, ...]
    target: str
    serial: bool = False
    preset: str = "tuned"

    @abstractmethod
    def plan(self, request: Request) -> StudyRuns:
        """The runs that a request asks for."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The choices of a :class:`Request` that it heeds; the others mean nothing to it."""
        return ("seeds",)

    @property
    def has_stand_in(self) -> bool:
        """Whether a generated graph can take the place of one of its datasets."""
        return False

    @abstractmethod
    def rows(self, record: Record) -> list[Row]:
        """A finished run as rows of plain values; a failed one has its error and no numbers."""

    def validate(self, configs: Sequence[RunConfig]) -> None:  # noqa: B027 (most need none)
        """Refuse runs that cannot work, before any starts."""

    def order(self, column: str) -> tuple[str, ...]:
        """The values of a column in the order in which they are shown; others follow."""
        return ()

    def notes(self, rows: Sequence[Row]) -> list[str]:
        """What a reader of the tables must know."""
        return []

    @property
    def printed(self) -> Printed:
        """The values that the paper prints."""
        return printed(self.name)


@dataclass(frozen=True, kw_only=True)
class Training(Study):
    """A study whose runs are trainings: datasets x models x axes, each over splits and seeds.

    Attributes:
        models, datasets: by default.
        axes: further columns and the values they take.
        columns: those that show a setting as it is, and its name, such as ``data.labels_per_class``.
        flags: from a point (model, dataset and a value for each axis) to settings that override the preset's.
        quick_models, quick_datasets, quick_axes: the same for a quick look.
        stand_in: the generated dataset in place of each that cannot be had.
    """

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    dimensions: tuple[str, ...] = ("dataset", "model")
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    flags: Callable[[Row], dict[str, Any]] = lambda point: {}
    quick_models: tuple[str, ...] = ("bimp", "gcn")
    quick_datasets: tuple[str, ...] = ("cora",)
    quick_axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    stand_in: Mapping[str, str] = field(default_factory=dict)
    target: str = TARGET

    @property
    def takes(self) -> tuple[str, ...]:
        axes = [*(["depths"] if "depth" in self.axes else []), *(["only"] if self.axes else [])]
        return ("preset", "models", "datasets", "splits", "seeds", *axes)

    @property
    def has_stand_in(self) -> bool:
        return bool(self.stand_in)

    def plan(self, request: Request) -> StudyRuns:
        models = request.models or (self.quick_models if request.quick else self.models)
        datasets = request.datasets or (self.quick_datasets if request.quick else self.datasets)
        axes = {**self.axes, **self.quick_axes} if request.quick else self.axes
        only = {**(request.only or {}), **({"depth": request.depths} if request.depths else {})}
        for axis in only.keys() & axes.keys():
            wanted = {one_of(axis, str(value), self.order(axis)) for value in only[axis]}
            axes = {**axes, axis: tuple(value for value in self.axes[axis] if str(value) in wanted)}
        if request.preset and "preset" in axes:
            axes = {**axes, "preset": (request.preset,)}
        plan = StudyRuns([])
        for dataset, model, *values in product(datasets, models, *axes.values()):
            point = {"dataset": dataset, "model": model, **dict(zip(axes, values, strict=True))}
            preset, flags = settings(request.preset or point.get("preset", self.preset), dataset, model)
            flags |= self.flags(point)
            if request.quick:
                flags |= {"train.epochs": QUICK_EPOCHS}
            name = self.stand_in.get(dataset, dataset) if request.synthetic else dataset
            # Pinned, so that the runs of a model from a file are done again when the file has changed.
            base = resolve(name, model, preset="none", flags=flags).pinned().as_dict()
            splits, seeds = protocol(name, request)
            configs = [self.wrap(config) for config in grid(base, {"data.split": splits, "train.seed": seeds})]
            plan.presets[settings_key(base)] = preset
            plan.configs.extend(configs)
        return plan

    def wrap(self, config: RunConfig) -> RunConfig:
        """A training as the target takes it."""
        return config

    def unwrap(self, config: RunConfig) -> RunConfig:
        """The training in a configuration of the target."""
        return config

    def rows(self, record: Record) -> list[Row]:
        config, result = self.unwrap(record.config), record.result or {}
        model, train = config["model"], config["train"]
        return [
            {
                "dataset": config["data"]["name"],
                "model": model["name"],
                "depth": _whole(model.get("num_layers", model.get("time"))),
                "saturation": model.get("saturation"),
                **{name: _setting(config, path) for name, path in self.columns.items()},
                "split": config["data"]["split"],
                "seed": train["seed"],
                "status": record.status,
                **{name: result.get(name) for name in ("val", "test", "epoch", "epochs")},
                "seconds": result.get("seconds", record.seconds),
                **{name: result.get(name) for name in ("time", "selection", "parameters")},
                "hidden_channels": model["hidden_channels"],
                **{name: train[name] for name in ("optimizer", "lr", "weight_decay")},
                "settings": settings_key(config),
                "finished": record.finished,
                "error": record.error,
            }
        ]

    def validate(self, configs: Sequence[RunConfig]) -> None:
        from dissensus import train

        trainings = [self.unwrap(config) for config in configs]
        for training in {settings_key(config): config for config in trainings}.values():
            train.Config.from_dict(training).check()
        wanted = {(config["data"]["name"], config["data"]["split"]): config for config in trainings}
        for (name, split), config in sorted(wanted.items(), key=lambda item: item[0]):
            try:
                train.Config.from_dict(config).data.load().split(split)
            except (InputError, ImportError) as error:
                if name not in self.stand_in:
                    raise
                raise InputError(
                    f"{error}\nOr run the same pipeline on a generated graph of its size, whose accuracies say nothing "
                    "about the real one: --synthetic"
                ) from error

    def order(self, column: str) -> tuple[str, ...]:
        known: Mapping[str, Sequence[Any]] = {
            "model": self.models,
            "dataset": (*self.datasets, *self.stand_in.values()),
            **self.axes,
        }
        return tuple(str(value) for value in known.get(column, ()))

    def notes(self, rows: Sequence[Row]) -> list[str]:
        made = sorted({row["dataset"] for row in rows} & set(self.stand_in.values()))
        return [f"The graph {name} is generated: its accuracies say nothing about the real one." for name in made]


def protocol(dataset: str, request: Request) -> tuple[Sequence[int], Sequence[int]]:
    """The splits and the training seeds of a dataset: what was asked for, otherwise those that are reported.

    Fixed splits are used whole, with ten training seeds (five where there is one split only); of random ones
    :data:`REPORT_SPLITS`, with one.
    """
    fixed = data.info(dataset).fixed_splits
    splits: tuple[int, ...] = tuple(range(fixed)) if fixed else REPORT_SPLITS
    seeds = tuple(range(1, {0: 2, 1: 6}.get(fixed, 11)))
    if request.quick:
        splits, seeds = splits[:1], seeds[:1]
    return request.splits or splits, request.seeds or seeds


def settings_key(config: RunConfig) -> str:
    """A short hash of a training's configuration without its split and seed."""
    data = {name: value for name, value in config["data"].items() if name != "split"}
    train = {name: value for name, value in config["train"].items() if name != "seed"}
    return key({**config, "data": data, "train": train})[:12]


def settings(preset: str, dataset: str, model: str) -> tuple[str, dict[str, Any]]:
    """The preset that has settings for this pair, the default one where the wanted one has none; and the settings."""
    try:
        layer = read_preset(preset, dataset, model)
    except InputError:
        if preset.endswith(".toml"):
            raise
        preset, layer = "default", read_preset("default", dataset, model)
    return preset, {f"{section}.{name}": value for section, part in layer.items() for name, value in part.items()}


def _setting(config: RunConfig, path: str) -> Any:
    section, name = path.split(".")
    return config[section].get(name)


def _whole(value: float | None) -> float | int | None:
    """A whole number as an int, so that it is written without a point."""
    return int(value) if value is not None and value == int(value) else value
